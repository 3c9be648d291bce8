"""DP-EBM's curator: what it enforces is at least what a row can do, whatever is asked of it.

`test_planted_faults` plants faults, which the checks here have to find.
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm import curator as curator_module
from dprepro.methods.dp_ebm.curator import DPEBMCurator
from dprepro.methods.dp_ebm.losses import LogisticLoss, SquaredLoss
from dprepro.methods.dp_ebm.queries import CellCounts, FitSettings, LeafSums, MergeCells, Steps
from dprepro.privacy.composition import calibrate_two_phases
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, histogram_sensitivity

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), ("0", "1"))
RANGE = Domain(DOMAIN.features, (10.0, 12.0))
SOUND = SquaredLoss.sound(RANGE)
FAR = replace(SOUND, start=0.4)
"""Starts so far from some targets that residuals reach the clip at once."""
LOSSES = [LogisticLoss(), LogisticLoss(adaptive=True), SOUND, FAR]
STEPS, RATE = 6, 0.5
CUTS = np.array([[2, 255], [1, 255]] * 3, np.uint8)


def rows(n=30):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(n), "c": rng.choice(["a", "b"], n)})
    return frame, rng.integers(0, 2, n).astype(np.float32)


def made(loss, gone=None, adjacency=ADD_REMOVE, public=(), gaps=(), epsilon=1.0):
    """Return a curator of all rows but one, with 4 bins of x told, and the counts it released."""
    frame, labels = rows()
    # Far out of range: the curator has to bring them back.
    targets = 1e4 * (2 * labels - 1.0)
    if gone is not None:
        frame, targets = frame.drop(index=gone), np.delete(targets, gone)
    noise = calibrate_two_phases(
        "gdp", epsilon, 1e-6, binning_queries=2, boosting_queries=STEPS, binning_share=0.1
    )
    ledger = Ledger(epsilon, 1e-6, adjacency, assumed_public=list(public), gaps=list(gaps))
    domain = DOMAIN if isinstance(loss, LogisticLoss) else RANGE
    settings = FitSettings(2, RATE, STEPS, noise)
    curator = DPEBMCurator(Private(Rows(frame, targets)), domain, loss, settings, ledger, 0)
    charged = histogram_sensitivity(adjacency).stated
    counts = [curator.cell_counts(CellCounts(charged, 1.0, k, adjacency)) for k in range(2)]
    return curator, counts


def told(curator):
    curator.tell(MergeCells(0, np.array([0, 1, 2, 3, 3])))
    curator.tell(MergeCells(1, np.array([0, 1, 1])))
    return curator


def boosted(loss, gone=None, adjacency=ADD_REMOVE, cuts=CUTS):
    curator, _ = made(loss, gone, adjacency)
    counts = [np.full(4, 8.0), np.full(2, 15.0)]
    return told(curator).leaf_sums(LeafSums.of(loss, adjacency, RATE), Steps(cuts, 2, counts))


def worst_shift(loss, cuts=CUTS):
    """Return the largest move of the first step's leaf sums, over the charged sensitivity.

    Both worlds draw the same noise, so that it cancels.
    """
    query = LeafSums.of(loss, ADD_REMOVE, RATE)
    whole = boosted(loss, cuts=cuts).value[0]
    others = (boosted(loss, gone, cuts=cuts).value[0] for gone in range(30))
    return max(np.linalg.norm(whole - other) for other in others) / query.charged


def noise_of_counts():
    """Return the noise in the released histograms, so much of it that no two should be equal."""
    _, counts = made(LogisticLoss(), epsilon=1e-4)
    frame, _ = rows()
    exact = [
        curator_module.histogram(frame[f.name], f, 2)[1].astype(float) for f in DOMAIN.features
    ]
    return np.concatenate([c.value - e for c, e in zip(counts, exact, strict=True)])


def noise_of_steps(seed=0):
    """Return the noise of each step, (T, L): a table whose residuals are all 0 adds no sums."""
    loss = SquaredLoss(clip=0.5)
    frame, _ = rows()
    noise = calibrate_two_phases(
        "gdp", 1.0, 1e-6, binning_queries=2, boosting_queries=STEPS, binning_share=0.1
    )
    private, settings = (
        Private(Rows(frame.iloc[:0], np.zeros(0))),
        FitSettings(2, RATE, STEPS, noise),
    )
    ledger = Ledger(1.0, 1e-6, ADD_REMOVE)
    curator = told(DPEBMCurator(private, RANGE, loss, settings, ledger, seed))
    counts = [np.full(4, 8.0), np.full(2, 15.0)]
    return curator.leaf_sums(LeafSums.of(loss, ADD_REMOVE, RATE), Steps(CUTS, 2, counts)).value


def every_number_has_noise_of_its_own(noise):
    return bool((noise != 0).all()) and np.unique(noise).size == noise.size


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_row_moves_a_step_by_more_than_is_charged(loss):
    assert 0.3 < worst_shift(loss) <= 1 + 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_all_that_is_released_is_whole_numbers_of_a_public_unit(loss):
    _, counts = made(loss)
    for release in counts:
        np.testing.assert_array_equal(release.value, np.rint(release.value))
    release = boosted(loss)
    unit = LeafSums.of(loss, ADD_REMOVE, RATE).unit
    assert unit == RATE * 2.0**-20
    np.testing.assert_array_equal(release.value, np.rint(release.value / unit) * unit)
    for shape in release.shapes:
        whole = np.ldexp(shape, loss.score_bits)
        np.testing.assert_array_equal(whole, np.rint(whole))
        assert np.abs(whole).max() > 1000


@pytest.mark.parametrize("gone", range(0, 30, 3))
def test_no_row_moves_a_histogram_by_more_than_is_charged(gone):
    (_, whole), (_, less) = made(LOSSES[0]), made(LOSSES[0], gone)
    for one, other in zip(whole, less, strict=True):
        assert np.linalg.norm(one.value - other.value) == pytest.approx(1.0)


def test_all_released_numbers_have_noise_of_their_own():
    assert every_number_has_noise_of_its_own(noise_of_counts())
    assert every_number_has_noise_of_its_own(noise_of_steps())


def test_the_noise_of_a_step_is_as_large_as_the_ledger_states():
    noise = np.concatenate([noise_of_steps(seed).ravel() for seed in range(40)])
    phases = calibrate_two_phases(
        "gdp", 1.0, 1e-6, binning_queries=2, boosting_queries=STEPS, binning_share=0.1
    )
    stated = phases.boosting * 0.5 * RATE  # the clip, and the learning rate
    assert noise.std() == pytest.approx(stated, rel=0.12)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_functions_follow_from_the_noisy_sums_and_the_noisy_counts_alone(loss):
    """The counts given are not those of the rows: exact ones would give other functions."""
    release = boosted(loss)
    functions = [np.zeros(4), np.zeros(2)]
    for step, (low, high) in enumerate(release.value):
        function, cut = functions[step % 2], CUTS[step, 0]
        for leaf, total in ((np.s_[:cut], low), (np.s_[cut:], high)):
            function[leaf] += total / (function[leaf].size * (8.0, 15.0)[step % 2])
    for shape, function in zip(release.shapes, functions, strict=True):
        np.testing.assert_allclose(shape, function, atol=STEPS * 2.0**-24)


def test_the_number_of_rows_is_told_only_where_the_ledger_takes_it_as_public():
    with pytest.raises(PrivateRowsError, match="number of rows"):
        made(LOSSES[0])[0].number_of_rows()
    assert made(LOSSES[0], adjacency=ZERO_OUT, public=["number of rows"])[0].number_of_rows() == 30


def test_the_published_regression_needs_its_gap_and_the_ledger_has_to_list_it():
    loss = SquaredLoss.published(RANGE)
    query = LeafSums.of(loss, ADD_REMOVE, RATE)
    assert query.enforced > query.charged
    assert "label range" in query.gap
    with pytest.raises(SensitivityError, match="charge at least"):
        LeafSums(query.charged, 1.0, ADD_REMOVE, RATE, loss.residual_bound, loss.part_bits)
    steps = Steps(CUTS, 2, [np.full(4, 8.0), np.full(2, 15.0)])
    with pytest.raises(SensitivityError, match="list the gap"):
        told(made(loss)[0]).leaf_sums(query, steps)
    assert told(made(loss, gaps=[query.gap])[0]).leaf_sums(query, steps).value.shape == (STEPS, 2)


def test_what_is_not_enforced_is_refused():
    loss = LOSSES[0]
    steps = Steps(CUTS, 2, [np.full(4, 8.0), np.full(2, 15.0)])
    with pytest.raises(SensitivityError, match="ledger states its guarantee under"):
        told(made(loss)[0]).leaf_sums(LeafSums.of(loss, REPLACE_ONE, RATE), steps)
    with pytest.raises(SensitivityError, match="residuals are at most"):
        told(made(loss)[0]).leaf_sums(LeafSums(RATE, 1.0, ADD_REMOVE, RATE, 0.25, 20), steps)
    with pytest.raises(SensitivityError, match=r"2\^-10, but the curator in units of 2\^-20"):
        told(made(loss)[0]).leaf_sums(LeafSums(RATE, 1.0, ADD_REMOVE, RATE, 1.0, 10), steps)
    with pytest.raises(SensitivityError, match="no bins yet"):
        made(loss)[0].leaf_sums(LeafSums.of(loss, ADD_REMOVE, RATE), steps)
    with pytest.raises(SensitivityError, match="cuts must ascend"):
        boosted(loss, cuts=CUTS[:, ::-1].copy())
    with pytest.raises(SensitivityError, match="cuts must ascend"):
        boosted(loss, cuts=np.vstack([CUTS[:-1], CUTS[-1:, ::-1]]))
    with pytest.raises(SensitivityError, match="cuts must ascend from 1 on"):
        boosted(loss, cuts=CUTS * np.array([0, 1], np.uint8))


def test_counts_for_another_relation_are_refused():
    curator, _ = made(LOSSES[0])
    with pytest.raises(SensitivityError, match="ledger states its guarantee under"):
        curator.cell_counts(CellCounts(math.sqrt(2), 1.0, 0, REPLACE_ONE))


def test_no_more_is_answered_than_was_planned():
    curator, _ = made(LOSSES[0])
    with pytest.raises(BudgetError):
        curator.cell_counts(CellCounts(1.0, 1.0, 0, ADD_REMOVE))
    steps = Steps(CUTS, 2, [np.full(4, 8.0), np.full(2, 15.0)])
    query = LeafSums.of(LOSSES[0], ADD_REMOVE, RATE)
    told(curator).leaf_sums(query, steps)
    with pytest.raises(BudgetError):
        curator.leaf_sums(query, steps)


def test_a_loss_from_elsewhere_does_not_see_the_rows():
    class Spy(LogisticLoss):
        def whole(self, targets):
            seen.append(targets)
            return super().whole(targets)

    seen = []
    with pytest.raises(SensitivityError, match="only LogisticLoss and SquaredLoss"):
        made(Spy())
    assert not seen


@pytest.mark.parametrize(
    "loss",
    [SquaredLoss(clip=0.5, adaptive=True), LogisticLoss(start=85.7), LogisticLoss(start=-65)],
)
def test_a_loss_whose_residuals_would_leave_their_bound_is_refused(loss):
    """Half of what is enforced would be charged; a part would be -2048."""
    with pytest.raises(
        SensitivityError, match=r"only the residuals of labels|no residual is known"
    ):
        made(loss)
