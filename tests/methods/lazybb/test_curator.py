"""The curator: no exchange of a row moves a choice further than is charged; no answer twice."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dprepro.methods.lazybb import calibration
from dprepro.methods.lazybb import curator as module
from dprepro.methods.lazybb.calibration import ZETA_TWICE, rates_of
from dprepro.methods.lazybb.curator import DIAGNOSTICS, LazyBBCurator, Split, Vote
from dprepro.methods.lazybb.hypotheses import Rule
from dprepro.methods.lazybb.learners import boost, make_learner
from dprepro.methods.lazybb.queries import LabelQuery, RuleQuery, SmoothQuery, SplitQuery
from dprepro.methods.lazybb.sensitivity import TOTAL
from dprepro.methods.lazybb.weights import Weighing
from dprepro.privacy.curator_base import listening
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.query import BudgetError, NoisyAnswer, Query, SensitivityError
from dprepro.privacy.sampling import ExactSampler
from tests.methods.lazybb.lab import budget, curator, rows_of

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (60, 5))
SIGNS = np.where(X[:, 1] + RNG.normal(0, 0.5, 60) > 0.5, 1, -1)
SMOOTH: Any = {"density": 0.25, "rows": 60, "dropped": 0}
ZETA = 1 / (0.25 * 60)
BASES = pytest.mark.parametrize("splits", [0, 3])


# --- what is enforced -----------------------------------------------------------------------------


class Exposed(LazyBBCurator):
    """Shows the exact qualities and weights from which it would choose, in units of the query."""

    def _pick(self, use: tuple[int, ...], quality: np.ndarray, query: SmoothQuery) -> NoisyAnswer:
        return NoisyAnswer(quality, query.unit)

    def _noisy(self, turn: int, weights: np.ndarray, query: SmoothQuery) -> NoisyAnswer:
        self.shown = weights
        return NoisyAnswer(weights, query.unit)


def queries(rows: int, dropped: int) -> list[SmoothQuery]:
    smooth: Any = {"density": 0.25, "rows": rows, "dropped": dropped}
    return [
        RuleQuery(1e9, 1.0, **smooth),
        SplitQuery(1e9, 1.0, **smooth),
        LabelQuery(1e9, 1.0, **smooth, leaves=2),
    ]


def exact_answers(
    X: np.ndarray, signs: np.ndarray, votes: list[Rule], dropped: int
) -> list[np.ndarray]:
    """Return the errors of all rules, the gains of two leaves and their weights, after votes."""
    rule_query, split_query, label_query = queries(len(X), dropped)
    made = Exposed(rows_of(X, signs), Weighing(2.0, 0.25), Ledger(1.0, 0.0, "replace-one"), 0, ())
    for rule in votes:
        made.tell(Vote(rule))
    errors = made.choose_rule(rule_query).value
    made.choose_split(split_query)
    made.tell(Split(0, 0))
    gains = made.choose_split(split_query).value
    made.label_leaves(label_query)
    answers = [errors, gains, made.shown.ravel()]
    assert all(answer.dtype == np.int64 for answer in answers)
    return answers


@pytest.mark.parametrize(("dropped", "reached"), [(0, 0.99), (55, 0.75), (58, 0.4)])
def test_no_exchange_of_a_row_moves_an_answer_by_more_than_is_enforced(
    dropped: int, reached: float
) -> None:
    """Every row of a small table, exchanged for every other, after rounds that were told.

    Answers drop no bits, or so many that rounding is most of what moves them.
    """
    rng = np.random.default_rng(1)
    largest, without_rounding = np.zeros(3), np.zeros(3)
    for _ in range(25):
        n = int(rng.integers(8, 13))
        X, signs = rng.integers(0, 2, (n, 2)), rng.choice([-1, 1], n)
        votes = [Rule(int(rng.integers(0, 2)), int(rng.choice([-1, 1]))) for _ in range(2)]
        before = exact_answers(X, signs, votes, dropped)
        asked = queries(n, dropped)
        enforced = np.array([query.enforced / query.unit for query in asked])
        ideal = np.array([1, 4, 2]) / (0.25 * n * asked[0].unit)
        for place in range(n):
            for row in np.ndindex(2, 2, 2):
                other, labels = X.copy(), signs.copy()
                other[place], labels[place] = row[:2], 2 * row[2] - 1
                after = exact_answers(other, labels, votes, dropped)
                errors, gains, weights = (b - a for a, b in zip(before, after, strict=True))
                # A choice pays for half the largest difference between two candidates' moves.
                moved = np.array([np.ptp(errors) / 2, np.ptp(gains) / 2, np.abs(weights).sum()])
                largest = np.maximum(largest, moved / enforced)
                without_rounding = np.maximum(without_rounding, moved / ideal)
    assert (largest <= 1).all()
    assert (largest[[0, 2]] > reached).all()
    assert dropped == 0 or without_rounding.max() > 1


@pytest.mark.parametrize(
    ("query", "moves"), [(RuleQuery, 1.0), (SplitQuery, 4.0), (LabelQuery, 2.0)]
)
def test_a_query_that_charges_less_than_it_enforces_cannot_be_built(
    query: Any, moves: float
) -> None:
    smooth = {**SMOOTH, "leaves": 3} if query is LabelQuery else SMOOTH
    assert query(1.0001 * moves * ZETA, 1.0, **smooth).enforced == pytest.approx(moves * ZETA)
    with pytest.raises(SensitivityError, match="charge at least"):
        query(0.99 * moves * ZETA, 1.0, **smooth)
    # What is rounded away is charged as well: a quarter of the whole weight, or more.
    coarse = {**smooth, "dropped": 58}
    with pytest.raises(SensitivityError, match="charge at least"):
        query(1.0001 * moves * ZETA, 1.0, **coarse)
    assert query(9.0, 1.0, **coarse).enforced >= moves * ZETA + 0.25
    with pytest.raises(SensitivityError, match="0 bits or more"):
        query(9.0, 1.0, **{**smooth, "dropped": -1})


def test_a_split_is_charged_for_gains_worked_out_in_doubles() -> None:
    """Twice the error of one gain: five operations in the whole and in its parts, and 3 units."""
    one_gain = 2 * (((1 + Fraction(1, 2**53)) ** 5 / (1 - Fraction(1, 2**53)) - 1) * TOTAL) + 3
    rule, split, _ = (round(query.enforced * TOTAL) for query in queries(60, 0))
    assert split - 4 * rule >= 2 * one_gain


def test_labels_of_more_leaves_than_are_charged_are_refused() -> None:
    made = curator(X, SIGNS)
    learner = make_learner(made, budget(), 3, 0.5)
    few = replace(learner, label_query=replace(learner.label_query, leaves=3))
    with pytest.raises(SensitivityError, match="has 4 leaves, the query charges for 3"):
        few.fit(made)


@BASES
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 1e9])
def test_a_budget_of_any_size_is_spent_but_for_rounding(splits: int, epsilon: float) -> None:
    """Noise of any scale can be drawn, and answers of coarser units keep within the budget."""
    made = curator(X, SIGNS, epsilon=epsilon)
    boost(made, make_learner(made, budget(epsilon=epsilon, rounds=2), splits, 0.5), 2)
    ledger = made._source.ledger
    assert ledger.spent_epsilon() == pytest.approx(epsilon)
    (entry, *_) = ledger.entries
    assert entry.sensitivity == pytest.approx((4 if splits else 1) * ZETA, rel=1e-4)


@BASES
def test_the_order_of_rows_changes_nothing(splits: int) -> None:
    """With one seed, to the bit: what is chosen from are sums of whole numbers."""
    order = RNG.permutation(60)
    chosen = []
    for rows, signs in ((X, SIGNS), (X[order], SIGNS[order])):
        made = curator(rows, signs)
        hypotheses = boost(made, make_learner(made, budget(), splits, 0.5), 20)
        chosen.append([str(hypothesis) for hypothesis in hypotheses])
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) > 3


@BASES
def test_weights_of_another_density_are_refused(splits: int) -> None:
    """Projection forgotten: a query for smoother weights than the curator's."""
    made = curator(X, SIGNS, density=0.1)
    learner = make_learner(made, budget(), splits, 0.5)
    with pytest.raises(SensitivityError, match="another density"):
        learner.fit(made)


# --- planted faults -------------------------------------------------------------------------------


@BASES
@pytest.mark.parametrize("fault", ["smooth_distance", "gain_sensitivity", "error_sensitivity"])
def test_noise_for_a_smaller_sensitivity_cannot_be_asked(
    splits: int, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct = getattr(calibration, fault)
    monkeypatch.setattr(calibration, fault, lambda *given: correct(*given) / 2)
    if (fault, splits) in (("gain_sensitivity", 0), ("error_sensitivity", 3)):
        make_learner(curator(X, SIGNS), budget(), splits, 0.5)
        return
    with pytest.raises(SensitivityError):
        make_learner(curator(X, SIGNS), budget(), splits, 0.5)


@BASES
def test_composition_forgotten_is_refused(splits: int) -> None:
    spends = replace(rates_of(budget(rounds=1), splits, 0.5, 60), rounds=20)
    with pytest.raises(BudgetError, match="divide the budget"):
        curator(X, SIGNS).enter(spends)


def test_the_authors_noise_is_entered_by_the_name_of_its_gap_alone() -> None:
    rates = rates_of(budget(calibration="code"), 3, 0.5, 60)
    curator(X, SIGNS, gaps=(ZETA_TWICE,)).enter(rates)
    with pytest.raises(SensitivityError, match="divided by zeta twice"):
        curator(X, SIGNS).enter(rates)
    with pytest.raises(BudgetError):
        curator(X, SIGNS, gaps=(ZETA_TWICE,)).enter(replace(rates, gap=None))


def labels_of(seed: int) -> np.ndarray:
    """Return the labels of four leaves whose rows say nothing, by noise alone."""
    made = curator(np.zeros((60, 5)), np.resize([1, -1], 60), seed=seed)
    return make_learner(made, budget(rounds=1), 3, 0.5).fit(made).labels


def check_labels() -> None:
    """Raise unless the labels of all leaves are those of fair coins."""
    labels = np.array([labels_of(seed) for seed in range(150)])
    assert (np.abs(labels.mean(axis=0)) < 0.35).all()
    assert np.abs(np.corrcoef(labels.T) - np.eye(4)).max() < 0.35


def test_labels_of_leaves_that_say_nothing_are_fair_coins() -> None:
    check_labels()


@pytest.mark.parametrize("fault", ["a leaf without noise", "the same noise in two leaves"])
def test_planted_faults_of_the_noise_are_caught(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    laplace = ExactSampler.laplace

    def faulty(*arguments: Any) -> np.ndarray:
        noise = laplace(*arguments)
        noise[2] = 0 if fault == "a leaf without noise" else noise[1]
        return noise

    monkeypatch.setattr(ExactSampler, "laplace", faulty)
    with pytest.raises(AssertionError):
        check_labels()


# --- what leaves the curator ----------------------------------------------------------------------


@BASES
def test_no_more_rounds_are_answered_than_the_ledger_has(splits: int) -> None:
    made = curator(X, SIGNS)
    learner = make_learner(made, budget(rounds=2), splits, 0.5)
    with pytest.raises(BudgetError, match="is not in the ledger"):
        boost(made, learner, 3)


def test_no_choice_is_made_twice() -> None:
    made = curator(X, SIGNS)
    learner = make_learner(made, budget(), 0, 0.5)
    learner.fit(made)
    with pytest.raises(BudgetError, match="answered before"):
        learner.fit(made)


def test_listeners_hear_what_is_chosen_and_told() -> None:
    heard: list[type] = []

    class Listener:
        def asked(self, query: Query, release: NoisyAnswer) -> None:
            heard.append(type(query))

        def told(self, instruction: Any) -> None:
            heard.append(type(instruction))

    with listening(Listener()):
        made = curator(X, SIGNS)
    boost(made, make_learner(made, budget(), 2, 0.5), 2)
    assert heard == [SplitQuery, Split, SplitQuery, Split, LabelQuery, Vote] * 2


def test_diagnostics_are_listed_or_refused() -> None:
    silent = curator(X, SIGNS)
    with pytest.raises(SensitivityError, match="make the curator for diagnostics"):
        silent.diagnose()
    assert DIAGNOSTICS not in silent._source.ledger.unaccounted
    open_about_it = curator(X, SIGNS, diagnostics=True)
    assert open_about_it._source.ledger.unaccounted[0] == module.DIAGNOSTICS
    boost(open_about_it, make_learner(open_about_it, budget(), 0, 0.5), 20)
    assert open_about_it.diagnose().edges.shape == (20,)
    assert open_about_it.diagnose().margins.shape == (60,)


def test_nothing_but_rules_and_trees_sees_the_rows() -> None:
    class Spy:
        columns: set[int] = set()  # noqa: RUF012

        def outputs(self, literals: Any) -> np.ndarray:
            raise AssertionError("it was given the rows")

    X, signs = np.zeros((8, 2), int), np.ones(8, int)
    made = Exposed(rows_of(X, signs), Weighing(2.0, 0.25), Ledger(1.0, 0.0, "replace-one"), 0, ())
    with pytest.raises(SensitivityError, match="only a Rule or a Tree"):
        made.tell(Vote(Spy()))
