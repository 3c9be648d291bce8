"""The curator: what a row moves, by exhaustion; how the budget is divided; each node asked once."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.privatree.bins import Cuts
from dprepro.methods.privatree.curator import (
    NOISY_SIZE,
    RANGES,
    UNIT,
    Budget,
    Cut,
    Descend,
    ExactRows,
    LeafLabels,
    NodeSize,
    PrivaTreeCurator,
    gini_sensitivity,
    impurity,
)
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b", "c"))), ("0", "1"))
BINS = [Bins.of(feature, 4) for feature in DOMAIN.features]
CUTS = Cuts.of(BINS)


def of_counts(labels: int, most: int) -> np.ndarray:
    """Return all counts of so many labels, each up to `most`: int64 (cases, labels)."""
    return np.array(list(itertools.product(range(most + 1), repeat=labels)))


def curator(as_published=False, epsilon=1.0, depth=2, adjacency=ZERO_OUT):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(40), "c": rng.choice(["a", "b", "c"], 40)})
    ledger = Ledger(epsilon, 0.0, adjacency, gaps=[NOISY_SIZE] if as_published else [])
    rows = Private(Rows(frame, (frame["x"] > 0.5).to_numpy().astype(int)))
    return PrivaTreeCurator(rows, DOMAIN, depth, 4, 0.01, as_published, ledger, 0)


@pytest.mark.parametrize(("labels", "most"), [(2, 40), (3, 12), (4, 6)])
def test_a_row_moves_every_impurity_between_0_and_2_and_nearly_2(labels, most):
    """By exhaustion, also after rounding, which adds nothing."""
    counts, whole = of_counts(labels, most), round(2 / UNIT)
    moves = np.stack(
        [impurity(counts + row) - impurity(counts) for row in np.eye(labels, dtype=int)]
    )
    assert moves.min() == 0
    assert moves.max() <= whole
    assert moves.max() > whole * (1 - 2 / most)


def test_an_impurity_is_the_rows_times_their_gini_impurity():
    counts = of_counts(2, 30)[1:]
    rows = counts.sum(axis=1)
    gini = 1 - ((counts / rows[:, None]) ** 2).sum(axis=1)
    np.testing.assert_allclose(impurity(counts) * UNIT, rows * gini, atol=UNIT)
    many = np.array([2**30, 2**30 - 1])
    assert impurity(many) * UNIT == pytest.approx(2 * many.prod() / many.sum(), rel=1e-12)
    assert impurity(np.zeros(2, int)) == 0


def test_scores_of_neighbours_move_apart_by_less_than_2():
    """All pairs of small tables and a row more: half of the range of moves is what is charged."""
    cells = list(itertools.product(range(4), range(3), range(2)))
    rng, largest = np.random.default_rng(1), 0.0
    for _ in range(100):
        some = [cells[i] for i in rng.integers(len(cells), size=rng.integers(0, 5))]
        for one in cells:
            moves = np.subtract(*(scores([*some, *more]) for more in ([one], [])))
            largest = max(largest, float(np.ptp(moves)) * UNIT / 2)
    assert 0.7 < largest < Cut(1.0, 1.0, 0, divided=False).enforced == 1.0


def scores(rows):
    codes = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2).T
    return ExactRows(codes, np.array([row[2] for row in rows], np.int64), CUTS).scores(0, False)[0]


def test_scores_are_those_of_both_sides_of_each_cut():
    exact = ExactRows(np.array([[0, 1, 1, 3], [0, 0, 2, 2]]), np.array([0, 0, 1, 1]), CUTS)
    # x: after bins 0, 1, 2 and 3; c: after a, b and c. 2ab/n for each side.
    wanted = [-4 / 3, -2 / 3 * 2, -4 / 3, -2, 0, 0, -2]
    wanted[1] = -(2 * 2 * 1 / 3)
    np.testing.assert_allclose(exact.scores(0, False)[0] * UNIT, wanted, atol=2 * UNIT)
    np.testing.assert_allclose(
        exact.scores(0, True)[0] * 2.0**-30, np.array(wanted) / 4, atol=4 * UNIT
    )
    exact.descend(np.array([1]))
    assert exact.labels().tolist() == [[2, 1], [0, 1]]
    assert [int(exact.size(place)[0]) for place in range(2)] == [3, 1]


def test_the_gini_impurity_of_a_node_moves_by_what_the_paper_says_at_its_true_size():
    counts = of_counts(4, 6)  # left with label 0 and 1, right likewise
    sides = counts.reshape(-1, 2, 2)
    rows = counts.sum(axis=1)

    def gini(sides):
        n = np.maximum(sides.sum(axis=2), 1)
        of_sides = n - (sides**2).sum(axis=2) / n
        return np.where(sides.sum(axis=2) == 0, 0, of_sides).sum(axis=1) / np.maximum(
            sides.sum(axis=(1, 2)), 1
        )

    more = sides.copy()
    more[:, 0, 0] += 1
    moves = np.abs(gini(more) - gini(sides))
    assert np.all(moves[rows > 0] <= gini_sensitivity(rows[rows > 0]) + 1e-12)
    assert moves.max() == pytest.approx(gini_sensitivity(1)) == 0.5
    assert np.all(np.diff(gini_sensitivity(np.arange(1, 100))) < 0)


def test_labels_get_what_the_accepted_error_asks_for_and_levels_the_rest():
    assert Budget.of(1.0, 4, 100, 0.01) == Budget(0.125, 0.5)  # too few rows: one half
    many = Budget.of(1.0, 4, 100_000, 0.01)
    assert many.leaves == pytest.approx(16 / (math.e * 1000))
    assert 4 * many.level + many.leaves == pytest.approx(1.0)


def test_the_worst_share_of_wrong_labels_is_what_was_accepted():
    """Rows in the minority of a leaf times the chance of its label, over the gap of the counts."""
    budget = Budget.of(10.0, 4, 50_000, 0.01)
    rows = 50_000 / 16

    def lost(gap):  # expected rows lost against the majority, of two labels by permute-and-flip
        return -gap * math.exp(-budget.leaves * gap) / 2

    worst = -minimize_scalar(lost, bounds=(0, rows), method="bounded").fun
    assert worst / rows <= 0.01


@pytest.mark.parametrize("as_published", [False, True])
def test_the_ledger_adds_up_to_epsilon(as_published):
    ledger = curator(as_published)._source.ledger
    assert ledger.spent_epsilon() == pytest.approx(1.0)
    assert [entry.uses for entry in ledger.entries] == ([2, 2, 1] if as_published else [2, 1])
    assert (RANGES in ledger.unaccounted) is as_published
    cuts, labels = ledger.entries[-2:]
    level = (1 - 0.5) / 2
    assert cuts.scale == pytest.approx(2 / (level / 2 if as_published else level))
    assert labels.scale == pytest.approx(1 / 0.5)


def test_each_node_is_cut_once_on_its_level_and_labels_come_last():
    made = curator()
    root = Cut(1.0, 1.0, 0, divided=False)
    with pytest.raises(BudgetError, match="labels follow"):
        made.labels(LeafLabels(0.5, 1.0))
    with pytest.raises(BudgetError, match="node 1 is not on level 0"):
        made.cut(Cut(1.0, 1.0, 1, divided=False))
    answer = made.cut(root)
    assert 0 <= answer.value[0] < len(CUTS)
    with pytest.raises(BudgetError, match="answered before"):
        made.cut(root)
    made.tell(Descend(answer.value))
    with pytest.raises(BudgetError, match="node 0 is not on level 1"):
        made.cut(root)
    with pytest.raises(BudgetError, match="told once"):
        made.tell(Descend(answer.value))
    made.tell(Descend(np.repeat(answer.value, 2)))
    assert made.labels(LeafLabels(0.5, 1.0)).value.shape == (4,)
    with pytest.raises(BudgetError, match="answered before"):
        made.labels(LeafLabels(0.5, 1.0))
    with pytest.raises(BudgetError, match="told once"):
        made.tell(Descend(np.repeat(answer.value, 4)))


def test_too_little_is_charged_only_by_the_gap_that_the_ledger_lists():
    with pytest.raises(SensitivityError, match="charge at least"):
        Cut(0.9, 1.0, 0, divided=False)
    with pytest.raises(SensitivityError, match="charge at least"):
        LeafLabels(0.4, 1.0)
    with pytest.raises(SensitivityError, match="charge at least"):
        Cut(0.1, 1.0, 0, divided=True)
    little = Cut(0.1, 1.0, 0, divided=True, gap=NOISY_SIZE)
    assert curator(as_published=True).cut(little).scale == pytest.approx(0.1 * 2 / (0.25 / 2))
    with pytest.raises(SensitivityError, match="has to list the gap"):
        curator().cut(little)


def test_without_the_gap_in_its_ledger_nothing_is_as_published():
    rows = Private(Rows(pd.DataFrame({"x": [0.5], "c": ["a"]}), np.array([1])))
    with pytest.raises(SensitivityError, match="has to list the gap"):
        PrivaTreeCurator(rows, DOMAIN, 2, 4, 0.01, True, Ledger(1.0, 0.0, ZERO_OUT), 0)


def test_sizes_are_asked_for_as_published_alone_and_have_noise():
    with pytest.raises(BudgetError, match="only as published"):
        curator().size(NodeSize(1.0, 1.0, 0))
    made = curator(as_published=True)
    answer = made.size(NodeSize(1.0, 1.0, 0))
    assert answer.scale == pytest.approx(1 / (0.25 / 2))
    with pytest.raises(BudgetError, match="answered before"):
        made.size(NodeSize(1.0, 1.0, 0))


def test_the_number_of_rows_is_public():
    """It divides the budget, so that one row more is no neighbour."""
    with pytest.raises(SensitivityError, match="hold under zero-out"):
        curator(adjacency=ADD_REMOVE)


def test_as_published_one_row_moves_the_choice_by_more_than_is_paid_for():
    """Two cuts, one row of label 0 and a row of label 1 or none; the size is summed over its noise.

    Without the row both cuts are pure, and the first is taken half of the time. With it the second
    has a Gini impurity of 1/2, and the noisy size says how seldom it is taken.
    """
    epsilon = 0.01  # of the level: half for the size, half for the choice
    half = epsilon / 2
    noise = np.arange(-20_000, 20_001)
    chance = np.exp(-np.abs(noise) * half) * (1 - math.exp(-half)) / (1 + math.exp(-half))
    charged = gini_sensitivity(np.maximum(2 + noise, 1))
    second = float((chance * np.exp(-0.5 * half / (2 * charged)) / 2).sum())
    assert chance.sum() == pytest.approx(1.0, abs=1e-6)
    assert math.log(0.5 / second) > 5 * epsilon


def test_a_cut_and_labels_are_chosen_with_the_probabilities_of_permute_and_flip():
    """By the formulas of McKenna and Sheldon (2020), from the exact impurities and counts."""
    domain = Domain((CategoricalFeature("c", ("a", "b")),), ("0", "1"))
    frame = pd.DataFrame({"c": ["a"] * 6 + ["b"] * 4})
    private = Private(Rows(frame, np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0])))
    fits = 400
    first, minority = 0, 0
    for seed in range(fits):
        ledger = Ledger(2.0, 0.0, ZERO_OUT)
        made = PrivaTreeCurator(private, domain, 1, 10, 0.01, False, ledger, seed)
        cut = made.cut(Cut(1.0, 1.0, 0, divided=False)).value
        first += int(cut[0] == 0)
        made.tell(Descend(np.array([0])))
        minority += int(made.labels(LeafLabels(0.5, 1.0)).value[0] == 1)
    # Sides (4, 2) and (1, 3) against (5, 5): 2ab/n. Each choice has epsilon 1, or exp(-d / 2), for
    # cuts, and for labels exp(-d).
    apart = 5 - (8 / 3 + 3 / 2)
    wanted = {
        "first": (first, 1 - math.exp(-apart / 2) / 2),
        "minority": (minority, math.exp(-2) / 2),
    }
    for found, chance in wanted.values():
        assert found / fits == pytest.approx(
            chance, abs=4.5 * math.sqrt(chance * (1 - chance) / fits)
        )
