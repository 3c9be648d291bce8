"""The curator: what a row moves, by exhaustion; thirds of the budget; each answer once."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from dp_accounting import dp_event, rdp

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.synthetic.curator import (
    UNIT,
    ColumnCounts,
    ExactCells,
    Expect,
    PairChoice,
    PairCounts,
    SyntheticCurator,
)
from dprepro.privacy.composition import rho_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT

SIZES = (3, 2, 2)
CELLS = list(itertools.product(*map(range, SIZES)))
PAIRS = ((0, 1), (0, 2), (1, 2))
DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), ("0", "1"))
COLUMNS = [
    *(Bins.of(feature, 3) for feature in DOMAIN.features),
    Bins.of(CategoricalFeature("target", ("0", "1")), 3),
]


def exact(rows):
    return ExactCells(np.array(rows, np.int64).reshape(-1, 3).T, SIZES)


def expected(rng):
    """Return what noisy counts may say: several cells in one place, and no whole numbers."""
    places = (np.array([0, 1, 1]), np.arange(2), np.arange(2))
    return Expect(places, tuple(rng.uniform(0, 9, 2) for _ in SIZES), int(rng.integers(2, 30)))


def tables():
    rng = np.random.default_rng(0)
    for _ in range(60):
        yield [CELLS[i] for i in rng.integers(len(CELLS), size=rng.integers(0, 6))], rng


def curator(epsilon=1.0, adjacency=ADD_REMOVE, seed=0, x=0.2):
    frame = pd.DataFrame({"x": [0.1, x, 0.9, 0.5] * 10, "c": ["a", "b", "a", "a"] * 10})
    rows = Private(Rows(frame, np.array([0, 1, 1, 0] * 10, np.float32)))
    return SyntheticCurator(rows, DOMAIN, COLUMNS, Ledger(epsilon, 1e-6, adjacency), seed)


def independent(made):
    counts = (np.array([20.0, 10, 10]), np.array([30.0, 10]), np.array([20.0, 20]))
    made.tell(Expect(tuple(map(np.arange, SIZES)), counts, 40))


def test_a_row_moves_counts_by_exactly_the_root_of_how_many_histograms_there_are():
    for rows, _ in tables():
        for row in CELLS:
            columns, pairs = (
                np.subtract(*(ask(exact(each)) for each in ([*rows, row], rows)))
                for ask in (ExactCells.columns, lambda made: made.pairs(PAIRS[:2]))
            )
            assert np.linalg.norm(columns) == ColumnCounts(2.0, 1.0, 3).enforced == math.sqrt(3)
            assert np.linalg.norm(pairs) == PairCounts(2.0, 1.0, PAIRS[:2]).enforced


def test_a_row_moves_every_score_by_at_most_1_and_nearly_1():
    largest = 0.0
    for rows, rng in tables():
        likely = expected(rng)
        for row in CELLS:
            moves = np.subtract(*(scores(each, likely) for each in ([*rows, row], rows))) * UNIT
            assert np.abs(moves).max() <= PairChoice(1.0, 1.0, 0, (0,)).enforced == 1.0
            largest = max(largest, float(np.abs(moves).max()), float(np.ptp(moves)) / 2)
    assert largest > 0.99


def scores(rows, likely):
    made = exact(rows)
    made.expect(likely)
    return made.scores(range(3))


def test_scores_are_distances_from_what_is_expected_of_independent_columns():
    rows, likely = [(0, 0, 0), (1, 0, 0), (2, 1, 1), (2, 1, 0)], expected(np.random.default_rng(1))
    cells = np.array(rows)
    for (a, b), score in zip(PAIRS, scores(rows, likely), strict=True):
        table = np.zeros((2, 2))
        np.add.at(table, (likely.places[a][cells[:, a]], likely.places[b][cells[:, b]]), 1)
        away = np.abs(table - np.outer(likely.counts[a], likely.counts[b]) / likely.rows).sum()
        assert score * UNIT == pytest.approx(away, abs=4 * UNIT)


def test_the_ledger_has_thirds_of_rho_and_dp_accounting_adds_them_up():
    for epsilon in (0.1, 1.0, 8.0):
        ledger = curator(epsilon)._source.ledger
        columns, choices, pairs = ledger.entries
        third = rho_of(epsilon, 1e-6) / 3
        assert [each.rho * each.uses for each in ledger.entries] == pytest.approx([third] * 3)
        assert (columns.sensitivity, pairs.sensitivity) == (math.sqrt(3), math.sqrt(2))
        assert (choices.sensitivity, choices.uses) == (1.0, 2)
        accountant = rdp.RdpAccountant(1 + np.geomspace(1e-2, 1e3, 5000))
        for each in (columns, pairs):
            accountant.compose(dp_event.GaussianDpEvent(each.noise_multiplier))
        accountant.compose(dp_event.ZCDpEvent(choices.pure_epsilon**2 / 8), 2)
        assert accountant.get_epsilon(1e-6) == pytest.approx(epsilon, rel=1e-4)
        assert ledger.spent_epsilon() == pytest.approx(epsilon, rel=1e-5)


def test_under_replace_one_a_row_moves_two_cells_of_each_histogram():
    for entry in curator()._source.ledger.entries:
        factor = 2 if entry.replace_one is None else math.sqrt(2)
        assert entry.under_replace_one().sensitivity == pytest.approx(factor * entry.sensitivity)


@pytest.mark.parametrize("adjacency", [ZERO_OUT, REPLACE_ONE])
def test_other_neighbours_are_refused(adjacency):
    with pytest.raises(SensitivityError, match="hold under add/remove-one"):
        curator(adjacency=adjacency)


def test_each_answer_is_given_once_and_choices_follow_what_is_expected():
    made = curator()
    whole, choice = ColumnCounts(math.sqrt(3), 1.0, 3), PairChoice(1.0, 1.0, 0, (0, 1, 2))
    tables = PairCounts(math.sqrt(2), 1.0, PAIRS[:2])
    assert made.count_columns(whole).value.shape == (7,)
    with pytest.raises(BudgetError, match="pairs are chosen after"):
        made.choose(choice)
    independent(made)
    assert 0 <= made.choose(choice).value < 3
    assert made.count_pairs(tables).value.shape == (12,)
    for ask, query in (
        (made.count_columns, whole), (made.choose, choice), (made.count_pairs, tables),
        (made.choose, PairChoice(1.0, 1.0, 2, (0,))),
    ):  # fmt: skip
        with pytest.raises(BudgetError):
            ask(query)


def test_a_query_that_charges_too_little_cannot_be_built_nor_be_for_fewer_columns():
    for made in (
        lambda: ColumnCounts(1.7, 1.0, 3), lambda: PairChoice(0.9, 1.0, 0, (0,)),
        lambda: PairCounts(1.4, 1.0, PAIRS[:2]),
    ):  # fmt: skip
        with pytest.raises(SensitivityError, match="charge at least"):
            made()
    with pytest.raises(SensitivityError, match="for 2 columns, but rows have 3"):
        curator().count_columns(ColumnCounts(math.sqrt(2), 1.0, 2))


def test_counts_have_noise_of_the_stated_size_and_more_tables_have_more():
    counts = [
        curator(seed=seed).count_columns(ColumnCounts(math.sqrt(3), 1.0, 3)) for seed in range(200)
    ]
    noise = np.array([each.value for each in counts]) - [20, 10, 10, 30, 10, 20, 20]
    assert noise.std() == pytest.approx(counts[0].scale, rel=0.1)
    made = curator()
    all_tables = made.count_pairs(PairCounts(math.sqrt(3), 1.0, PAIRS))
    entry = made._source.ledger.entries[2]
    assert all_tables.scale == pytest.approx(entry.scale * math.sqrt(3 / 2))


def test_a_pair_is_chosen_with_the_probabilities_of_the_exponential_mechanism():
    found = np.zeros(3)
    for seed in range(600):
        made = curator(3.0, seed=seed)
        independent(made)
        found[int(made.choose(PairChoice(1.0, 1.0, 0, (0, 1, 2))).value)] += 1
    entry = made._source.ledger.entries[1]
    # x by c: 20 a in the first bin where 15 are expected, ...; by hand from the rows above.
    x, c, y = (np.array(each * 10) for each in ([0, 0, 2, 1], [0, 1, 0, 0], [0, 1, 1, 0]))
    away = []
    for (a, m), (b, k) in itertools.combinations([(x, 3), (c, 2), (y, 2)], 2):
        table = np.bincount(a * k + b, minlength=m * k).reshape(m, k)
        away.append(np.abs(table - np.outer(table.sum(1), table.sum(0)) / 40).sum())
    chances = np.exp((np.array(away) - max(away)) / entry.scale)
    np.testing.assert_allclose(found / 600, chances / chances.sum(), atol=0.07)


def test_numbers_out_of_their_bounds_are_in_the_last_bin_and_unknown_categories_are_refused():
    counts = [
        curator(1e3, x=x).count_columns(ColumnCounts(math.sqrt(3), 1.0, 3)).value
        for x in (1.0, 1e9)
    ]
    np.testing.assert_array_equal(*counts)
    frame = pd.DataFrame({"x": [0.5, 0.5], "c": ["a", "z"]})
    rows = Private(Rows(frame, np.zeros(2, np.float32)))
    with pytest.raises(ValueError, match="category that is not in its domain"):
        SyntheticCurator(rows, DOMAIN, COLUMNS, Ledger(1.0, 1e-6, ADD_REMOVE), 0)
