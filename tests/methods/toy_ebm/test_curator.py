"""The toy's curator: what is charged falls short, so it answers by the names of gaps only."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.toy_ebm import estimator
from dprepro.methods.toy_ebm.curator import (
    GAPS,
    OVERSPENT,
    UNBOUNDED,
    UNIT,
    UNPAID,
    ExactMeans,
    MeanResiduals,
    Step,
    ToyBins,
    ToyCurator,
)
from dprepro.privacy.curator_base import listening
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ZERO_OUT

X = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0, 2.0, 3.0], "c": list("aabbab")})
Y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 100.0])


def curator(y=Y, epochs=3, epsilon=1e9, gaps=GAPS, unpaid=UNPAID, seed=0):
    ledger = Ledger(epsilon, 1e-5, ZERO_OUT, unaccounted=list(unpaid), gaps=list(gaps))
    return ToyCurator(Private(Rows(X, y)), 6, epochs, ledger, seed)


def query(feature=0, epoch=0):
    return MeanResiduals(1.0, 1.0, feature, epoch, gap=UNBOUNDED)


def test_a_row_moves_a_mean_by_a_whole_residual_which_no_query_can_charge_without_its_gap():
    """Zero-out brute force: more than the 1 that is charged, and no more than infinity."""
    largest = 0.0
    before = curator().mean_residuals(query()).value
    for row in range(len(Y)):
        null = np.where(np.arange(len(Y)) == row, 0.0, Y)
        moved = curator(null).mean_residuals(query()).value - before
        largest = max(largest, np.linalg.norm(moved))
    assert 1.0 < largest == pytest.approx(100.0, abs=1e-6)
    assert query().enforced == math.inf
    with pytest.raises(SensitivityError, match="charge at least"):
        MeanResiduals(1e300, 1.0, 0, 0)


@pytest.mark.parametrize("missing", [OVERSPENT, UNBOUNDED])
def test_a_ledger_that_is_silent_about_a_gap_gets_no_answer(missing):
    silent = [gap for gap in GAPS if gap != missing]
    with pytest.raises(SensitivityError, match="has to list the gap"):
        curator(gaps=silent).mean_residuals(query())


def test_each_epoch_is_answered_once_and_no_more_than_were_entered():
    made = curator(epochs=2)
    for epoch in range(2):
        made.mean_residuals(query(epoch=epoch))
    for epoch in (0, 2, -1):
        with pytest.raises(BudgetError, match="answered before"):
            made.mean_residuals(query(epoch=epoch))
    made.mean_residuals(query(feature=1))


def test_what_is_read_without_noise_is_listed():
    made = curator(unpaid=())
    ledger = made._source.ledger
    made.bins()
    made.occupied()
    assert ledger.unaccounted[1:] == list(UNPAID)
    only_asked = curator(unpaid=())
    only_asked.mean_residuals(query())
    assert UNPAID[2] in only_asked._source.ledger.unaccounted


def test_told_steps_move_the_residuals_of_their_bins():
    """The second answer is that of residuals less the step: exact up to the noise."""
    made = curator()
    before = made.mean_residuals(query(1, 0)).value
    made.tell(Step(1, np.array([0.0, 2.0, 0.5])))
    after = made.mean_residuals(query(1, 1)).value
    np.testing.assert_allclose(before - after, [0.0, 2.0, 0.5], atol=1e-6)


def test_residuals_are_whole_numbers_and_means_are_rounded_down():
    exact = ExactMeans(Rows(X, Y / 3), 6)
    whole = np.trunc(Y / 3 / UNIT).astype(np.int64)
    codes = exact.bins[1].encode(X["c"])
    for _ in range(2):
        expected = [sum(whole[codes == b].tolist()) // max((codes == b).sum(), 1) for b in range(3)]
        assert exact.means(1).tolist() == expected
        exact.subtract(Step(1, np.array([0.0, 3 * UNIT, -0.25])))
        whole -= np.array([0, 3, -(2**22)])[codes]


def test_another_order_of_the_rows_gives_the_same_bits():
    order = np.random.default_rng(0).permutation(len(Y))
    fits = [
        estimator.ToyDPEBMRegressor(n_epochs=5, random_state=0).fit(X.iloc[rows], (Y / 7)[rows])
        for rows in (np.arange(len(Y)), order)
    ]
    for one, other in zip(fits[0].shapes_, fits[1].shapes_, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one / UNIT, np.round(one / UNIT))


def test_targets_too_large_for_sums_are_cut_off():
    exact = ExactMeans(Rows(X, np.array([1e300, 1e300, -1e300, 1.0, 1.0, 1.0])), 6)
    assert exact.means(0)[0] == 2**62 // 6
    assert exact.means(1).tolist()[0] == 0
    exact.subtract(Step(0, np.full(exact.bins[0].count, -(2.0**30))))
    assert exact.means(0)[0] == 2**62 // 6


def check_noise(made, epochs):
    """Raise unless each bin of each epoch has noise of its own; return it: residuals are 0."""
    drawn = np.concatenate(
        [made.mean_residuals(query(k, epoch)).value for epoch in range(epochs) for k in range(2)]
    )
    assert np.unique(drawn).size == drawn.size
    assert (drawn != 0).all()
    return drawn


def test_every_bin_of_every_epoch_has_noise_of_its_own_with_the_stated_scale():
    made = curator(np.zeros(6), epochs=400, epsilon=0.5)
    drawn = check_noise(made, 400)
    assert drawn.std() == pytest.approx(made._source.ledger.entries[0].scale, rel=0.1)


@pytest.mark.parametrize("fault", ["a bin without noise", "the same noise in two epochs"])
def test_planted_faults_of_the_noise_are_caught(fault, monkeypatch):
    add, given = NoiseSource.add_gaussian, []

    def faulty(self, exact, scale, unit):
        noisy = add(self, exact, scale, unit)
        if fault == "a bin without noise":
            noisy[1] = exact[1] * unit
        elif given and given[-1].size == noisy.size:
            noisy = given[-1]
        given.append(noisy)
        return noisy

    monkeypatch.setattr(NoiseSource, "add_gaussian", faulty)
    with pytest.raises(AssertionError):
        check_noise(curator(np.zeros(6), epochs=3), 3)


def test_listeners_hear_queries_and_steps_of_a_whole_fit():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append((query.feature, query.epoch))

        def told(self, instruction):
            heard.append(instruction.feature)

    with listening(Listener()):
        estimator.ToyDPEBMRegressor(n_epochs=2).fit(X, Y)
    assert heard == [(0, 0), 0, (1, 0), 1, (0, 1), 0, (1, 1), 1]


def test_numeric_bins_are_quantiles_and_hold_the_ends():
    column = pd.Series([1.0, 2, 2, 2, 3, 4, 5, 9], name="x")
    feature = NumericFeature("x", 1, 9)
    bins = ToyBins.of(column, feature, 4)
    np.testing.assert_array_equal(
        bins.edges, np.unique(np.quantile(column, [0, 0.25, 0.5, 0.75, 1]))
    )
    assert bins.encode(pd.Series([-7.0, 1, 9, 70])).tolist() == [
        0,
        0,
        bins.count - 1,
        bins.count - 1,
    ]
    assert ToyBins.of(pd.Series([3.0, 3.0]), feature, 4).count == 1
    with pytest.raises(ValueError, match="'x' has missing values"):
        bins.encode(pd.Series([1.0, np.nan], name="x"))
