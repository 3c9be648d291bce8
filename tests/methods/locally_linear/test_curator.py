"""The curator: a row moves no sum by more than is charged, and cheats are caught."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from dprepro.methods.locally_linear import maps
from dprepro.methods.locally_linear.curator import (
    SHUFFLED,
    GradientQuery,
    Noise,
    Project,
    enter_planned,
)
from dprepro.methods.locally_linear.estimator import DPLLMClassifier
from dprepro.methods.locally_linear.gradients import NumericRows
from dprepro.methods.locally_linear.maps import draw_projections
from dprepro.privacy.curator_base import listening
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.private_rows import PrivateRowsError
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.subsampling import ACCOUNTANTS, sampled_sigma
from tests.methods.locally_linear.lab import (
    CLASSES,
    FEATURES,
    MAPS,
    PARAMS,
    ROWS,
    curator,
    ledger,
    rows,
    theta,
)

ALL = replace(PARAMS, batch_size=ROWS)
"""Every row is in every batch."""


def query(clip=PARAMS.clip, at=None, charged=None):
    at = theta() if at is None else at
    return GradientQuery(clip if charged is None else charged, 1.0, at, clip)


# --- what is enforced -----------------------------------------------------------------------------


def change_noise(monkeypatch, change):
    """Let all draws of a curator go through `change`, which takes and gives an iterator."""
    draw = NoiseSource.sampled_gaussian

    def changed(*arguments, **settings):
        return change(draw(*arguments, **settings))

    monkeypatch.setattr(NoiseSource, "sampled_gaussian", changed)


@pytest.fixture
def without_noise(monkeypatch):
    """Let releases be exact."""
    change_noise(monkeypatch, lambda draws: (np.zeros_like(noise) for noise in draws))


def extreme_rows():
    """Return rows that are short, long and as long as inputs can be, of all classes."""
    given = rows(12)
    sizes = np.repeat([1e-3, 1.0, 30.0, 100.0], 3)[:, None]
    longest = np.abs(given.X).max(axis=1, keepdims=True)
    return NumericRows((sizes * given.X / longest).astype("f4"), given.labels)


def check_that_no_row_moves_a_sum_by_more_than_the_clip(projected, clip):
    """Raise unless a table without one of its rows has a sum that is at most `clip` away."""
    rng = np.random.default_rng(2)
    R = draw_projections(rng, MAPS, 3, FEATURES, 0.7) if projected else None
    shape = (MAPS, CLASSES, 4 if projected else FEATURES + 1)
    given, at = extreme_rows(), rng.normal(size=shape).astype("f4")

    def released(kept):
        part = NumericRows(given.X[kept], given.labels[kept])
        made = curator(part, replace(ALL, clip=clip), shape=shape, projections=R)
        return made.answer(query(clip, at)).value.astype(float)

    whole = released(np.ones(12, bool))
    moves = [np.linalg.norm(whole - released(np.arange(12) != row)) for row in range(12)]
    assert max(moves) <= clip * (1 + 1e-5)
    assert max(moves) > 0.99 * clip


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("clip", [1e-3, 0.2, 3.0])
def test_no_row_moves_a_sum_by_more_than_the_clip(projected, clip):
    check_that_no_row_moves_a_sum_by_more_than_the_clip(projected, clip)


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("fault", ["not clipped", "clipped to sqrt(M) times as much"])
def test_planted_faults_of_clipping_are_caught(fault, monkeypatch):
    clipped = maps.score_gradients

    def faulty(scores, labels, beta, norms, clip):
        if fault == "not clipped":
            clipped(scores, labels, beta, norms, maps.NO_CLIP)
        else:
            clipped(scores, labels, beta, norms, clip * MAPS**0.5)

    monkeypatch.setattr(maps, "score_gradients", faulty)
    with pytest.raises(AssertionError):
        check_that_no_row_moves_a_sum_by_more_than_the_clip(False, 0.2)


@pytest.mark.parametrize("clip", [0.51, -0.51, np.inf, -np.inf, np.nan])
def test_a_query_that_clips_to_more_than_is_charged_cannot_be_built(clip):
    assert query(-0.5, charged=0.5).enforced == 0.5
    with pytest.raises(SensitivityError, match="charge at least what is enforced"):
        query(clip, charged=0.5)


@pytest.mark.parametrize("adjacency", ["replace-one", "add/remove-one"])
def test_a_ledger_of_another_relation_is_refused(adjacency):
    with pytest.raises(SensitivityError, match="state zero-out"):
        curator(states=ledger(adjacency))


def test_batches_are_shuffled_only_where_the_ledger_lists_the_gap():
    shuffled = replace(PARAMS, sampling="shuffle")
    with pytest.raises(SensitivityError, match="dealt out by shuffling"):
        curator(params=shuffled)
    listed = ledger(gaps=(SHUFFLED,))
    curator(params=shuffled, states=listed)
    (entry,) = listed.entries
    assert (entry.uses, entry.sampling) == (4, 1.0)


@pytest.mark.parametrize("shape", [(1, CLASSES, FEATURES + 1), (MAPS, 1, FEATURES + 1)])
def test_a_sum_of_another_shape_is_not_answered(shape):
    """Noise of the planned shape would answer one sum several times."""
    given = NumericRows(rows().X, np.zeros(ROWS, np.int64))
    with pytest.raises(ValueError, match="ask for those"):
        curator(given).answer(query(at=theta(shape)))


# --- noise ----------------------------------------------------------------------------------------


def check_noise(made):
    """Raise unless every number of every answer has noise of its own, of the stated scale."""
    releases = [made.answer(query(1e-12, charged=PARAMS.clip)) for _ in range(PARAMS.steps(ROWS))]
    values = np.stack([release.value for release in releases])
    assert {release.scale for release in releases} == {2.0 * PARAMS.clip}
    assert (np.abs(values) > 1e-9).all()
    assert np.unique(values).size == values.size == 12 * MAPS * CLASSES * (FEATURES + 1)
    assert np.std(values) == pytest.approx(2.0 * PARAMS.clip, rel=0.15)


def test_every_number_of_every_sum_has_noise_of_its_own():
    check_noise(curator())


def one_number_bare(draws):
    for noise in draws:
        noise[0, 0, -1] = 0
        yield noise


def always_the_first(draws):
    first = next(draws)
    yield first
    yield from (first for _ in draws)


def halved(draws):
    return (noise / 2 for noise in draws)


@pytest.mark.parametrize("fault", [one_number_bare, always_the_first, halved])
def test_planted_faults_of_the_noise_are_caught(fault, monkeypatch):
    change_noise(monkeypatch, fault)
    with pytest.raises(AssertionError):
        check_noise(curator())


def test_noise_follows_what_is_charged():
    one, two = curator(), curator()
    near = one.answer(query(1e-12, charged=PARAMS.clip))
    far = two.answer(query(1e-12, charged=4 * PARAMS.clip))
    assert far.scale == 4 * near.scale
    np.testing.assert_allclose(far.value, 4 * near.value, rtol=1e-5)


# --- the budget -----------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["pld", "moments"])
def test_noise_that_forgets_the_number_of_steps_is_refused(accountant):
    sigma = {
        steps: sampled_sigma(accountant, 1.0, 1e-5, rate=1 / 3, steps=steps) for steps in (1, 12)
    }
    curator(noise=Noise(sigma[12], accountant))
    states = ledger()
    with pytest.raises(BudgetError, match=r"12 sums .* find the multiplier for all of them"):
        curator(noise=Noise(sigma[1], accountant), states=states)
    assert states.entries == []


def test_what_an_accountant_finds_to_be_more_than_is_stated_is_refused(monkeypatch):
    stated = ledger().epsilon
    for spent in (stated / 2, stated):
        monkeypatch.setitem(ACCOUNTANTS, "told", lambda *given, spent=spent: spent)
        states = ledger()
        curator(noise=Noise(2.0, "told"), states=states)
        assert len(states.entries) == 1
    monkeypatch.setitem(ACCOUNTANTS, "told", lambda *given: np.nextafter(stated, np.inf))
    states = ledger()
    with pytest.raises(BudgetError, match="find the multiplier for all of them"):
        curator(noise=Noise(2.0, "told"), states=states)
    assert states.entries == []


def test_no_more_sums_are_answered_than_are_in_the_ledger():
    for params in (PARAMS, replace(PARAMS, sampling="shuffle")):
        made = curator(params=params, states=ledger(gaps=(SHUFFLED,)))
        for _ in range(params.steps(ROWS)):
            made.answer(query())
        with pytest.raises(BudgetError, match="entered for 12 sums"):
            made.answer(query())


@pytest.mark.parametrize("params", [PARAMS, replace(PARAMS, sampling="shuffle")])
def test_what_is_planned_without_rows_is_what_a_curator_enters(params):
    planned, entered = (ledger(gaps=(SHUFFLED,)) for _ in range(2))
    enter_planned(params, ROWS, Noise(2.0, None), planned, 0, ())
    curator(params=params, states=entered)
    assert planned.entries == entered.entries
    assert len(planned.entries) == 1
    assert planned.unaccounted == entered.unaccounted


# --- cheats ---------------------------------------------------------------------------------------


def model(kind=DPLLMClassifier):
    return kind(
        None, noise_multiplier=1.0, accountant="moments", n_maps=2, n_projected=3, epochs=2,
        random_state=0,
    )  # fmt: skip


class ReadsRows(DPLLMClassifier):
    """Starts from the mean of the rows as they are."""

    def _train(self, private, rows):
        self.mean_ = private.open().X.mean(axis=0)
        return super()._train(private, rows)


class MeasuresRows(DPLLMClassifier):
    """Takes them for an array, without opening them."""

    def _train(self, private, rows):
        self.mean_ = np.mean(private)
        return super()._train(private, rows)


@pytest.mark.parametrize(
    ("cheat", "says"), [(ReadsRows, "may not open"), (MeasuresRows, "opened by a curator only")]
)
def test_a_method_that_reads_rows_beside_the_curator_is_caught(cheat, says):
    with pytest.raises(PrivateRowsError, match=says):
        model(cheat).fit(*load_iris(return_X_y=True))


def test_training_that_opens_the_rows_is_caught(monkeypatch):
    def exact(made, params):
        return lambda values: made._exact.open().next_sum(values, params.clip)[0]

    monkeypatch.setattr("dprepro.methods.locally_linear.estimator.released_mean", exact)
    with pytest.raises(PrivateRowsError, match="test_curator may not open private rows"):
        model().fit(*load_iris(return_X_y=True))


def test_training_that_asks_once_more_is_caught(monkeypatch):
    def more(values, params, n, mean):
        for _ in range(params.steps(n) + 1):
            mean(values)

    monkeypatch.setattr("dprepro.methods.locally_linear.estimator.train", more)
    with pytest.raises(BudgetError, match="entered for 2 sums"):
        model().fit(*load_iris(return_X_y=True))


def test_a_curator_keeps_nothing_of_the_rows_in_the_open():
    """What it holds outside `Private` has the same size for 10 rows and for 1,000."""
    sizes = []
    for n in (10, 1000):
        made = curator(rows(n))
        made.answer(query())
        sizes.append({name: np.size(v) for name, v in vars(made).items() if name != "_exact"})
        with pytest.raises(PrivateRowsError):
            len(made._exact)
    assert sizes[0] == sizes[1]


# --- what leaves the curator ----------------------------------------------------------------------


def test_listeners_hear_projections_and_sums():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append((type(query), release.value.shape))

        def told(self, instruction):
            heard.append((type(instruction), instruction.projections.shape))

    X, y = load_iris(return_X_y=True)
    with listening(Listener()):
        model().fit(X, y)
    assert heard == [(Project, (2, 3, 4)), *[(GradientQuery, (2, 3, 4))] * 2]
