"""The model: counts not below 0, tables with the counts of their columns, rows that have both."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from dprepro.methods.synthetic.tree_model import (
    LEAST_ROWS,
    MOST_ROWS,
    Noisy,
    TreeModel,
    _dealt,
    estimated_column,
    estimated_rows,
    fitted_table,
    merged,
    merged_places,
)


def noisy(counts, variance=1.0):
    return Noisy(np.asarray(counts, float), np.full(np.shape(counts), variance))


def test_cells_with_hardly_any_rows_share_the_last_place():
    counts = np.array([2.9, 10.0, -4.0, 3.0, 0.0])
    places = merged_places(counts, 1.0)
    np.testing.assert_array_equal(places, [2, 0, 2, 1, 2])
    found = merged(counts, places, 4.0)
    np.testing.assert_allclose(found.counts, [10, 3, -1.1])
    np.testing.assert_array_equal(found.variance, [4, 4, 12])
    np.testing.assert_array_equal(merged_places(np.array([5.0, 9.0]), 1.0), [0, 1])
    np.testing.assert_array_equal(merged_places(np.zeros(3), 1.0), [0, 0, 0])


def test_rows_are_the_mean_of_all_totals_weighed_by_their_noise():
    one, two = noisy([30, 40], 1.0), noisy([[10, 20], [30, 30]], 2.0)
    assert estimated_rows([one, two]) == round((70 / 2 + 90 / 8) / (1 / 2 + 1 / 8)) == 74
    assert estimated_rows([noisy([-50, 3])]) == LEAST_ROWS
    assert estimated_rows([noisy([1e9, 3])]) == MOST_ROWS


def test_a_column_is_the_nearest_to_its_means_of_those_that_add_up():
    first, second = noisy([10, 5, -3], 1.0), noisy([4, 5, 6], 3.0)
    means = (first.counts + second.counts / 3) / (4 / 3)
    found = estimated_column([first, second], 12)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(12)
    best = minimize(
        lambda x: ((x - means) ** 2).sum(), np.full(3, 4.0), bounds=[(0, None)] * 3,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 12}, tol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(found, best.x, atol=1e-5)


def test_a_table_has_the_counts_of_its_columns_and_is_the_nearest():
    rng = np.random.default_rng(0)
    first, second = np.array([10.0, 0, 25, 5]), np.array([20.0, 12, 8])
    table = np.outer(first, second) / 40 + rng.normal(0, 4, (4, 3))
    found = fitted_table(table, first, second)
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=0), second, atol=1e-3)
    np.testing.assert_allclose(found.sum(axis=1), first, atol=1e-3)
    margins = [lambda x, i=i: x.reshape(4, 3)[i].sum() - first[i] for i in range(4)]
    margins += [lambda x, j=j: x.reshape(4, 3)[:, j].sum() - second[j] for j in range(2)]
    best = minimize(
        lambda x: ((x - table.ravel()) ** 2).sum(), found.ravel(), bounds=[(0, None)] * 12,
        constraints=[{"type": "eq", "fun": margin} for margin in margins], tol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(found.ravel(), best.x, atol=1e-2)


def test_the_margins_of_a_table_have_the_noise_of_all_that_is_added_up():
    table = Noisy(np.arange(6.0).reshape(2, 3), np.array(2.0))
    for axis, wanted, variance in ((0, [3, 12], 6), (1, [3, 5, 7], 4)):
        found = table.margin(axis)
        np.testing.assert_array_equal(found.counts, wanted)
        np.testing.assert_array_equal(found.variance, variance)
    assert table.total == (15, 12)


def test_cells_are_dealt_as_often_as_expected_rounded_up_or_down():
    weights, rng = np.array([0.5, 0.0, 2.25, 1.25]), np.random.default_rng(0)
    expected = 10 * weights / weights.sum()
    found = np.array([np.bincount(_dealt(10, weights, rng), minlength=4) for _ in range(2000)])
    assert np.all(np.abs(found - expected) < 1)
    assert np.all(found.sum(axis=1) == 10)
    np.testing.assert_allclose(found.mean(axis=0), expected, atol=0.05)
    assert np.unique(_dealt(1000, np.ones(2), rng)[:20]).size == 2  # not in order


def exact(counts, tree):
    """Return the model of a table without noise, of counts (m_a, m_b, ...)."""
    axes = range(counts.ndim)
    columns = [noisy(counts.sum(axis=tuple({*axes} - {a}))) for a in axes]
    pairs = {pair: noisy(counts.sum(axis=tuple({*axes} - {*pair}))) for pair in tree}
    return TreeModel.of(columns, pairs)


@pytest.mark.parametrize("tree", list(itertools.combinations([(0, 1), (0, 2), (1, 2)], 2)))
def test_without_noise_rows_have_the_counts_of_all_pairs_of_the_tree(tree):
    counts = np.random.default_rng(0).integers(0, 40, (3, 4, 2)) * 10.0
    counts[1, 2] = 0
    rows = exact(counts, tree).draw(np.random.default_rng(1))
    assert rows.shape == (counts.sum(), 3)
    for a, b in tree:
        found = np.zeros((counts.shape[a], counts.shape[b]))
        np.add.at(found, (rows[:, a], rows[:, b]), 1)
        wanted = counts.sum(axis=({0, 1, 2} - {a, b}).pop())
        # Cells of a column that is given by another are there to less than one row for each.
        assert np.abs(found - wanted).max() <= 4


def test_columns_that_are_no_pair_are_independent_given_the_one_between():
    counts = np.zeros((2, 2, 2))
    counts[0, 0, 0] = counts[1, 0, 1] = counts[0, 1, 1] = 4000  # 0 and 2 go together if 1 is 0
    rows = exact(counts, [(0, 1), (1, 2)]).draw(np.random.default_rng(0))
    given = rows[rows[:, 1] == 0]
    assert abs(np.corrcoef(given[:, 0], given[:, 2])[0, 1]) < 0.05
    assert set(map(tuple, rows[rows[:, 1] == 1])) == {(0, 1, 1)}


def test_an_empty_line_of_a_table_is_drawn_as_its_column():
    """Noise can leave rows of a cell without any count of the pair."""
    table = np.array([[5.0, 5.0], [0.0, 0.0]])
    model = TreeModel(20, (np.array([10.0, 10.0]), np.array([10.0, 10.0])), {(0, 1): table.T})
    rows = model.draw(np.random.default_rng(0))
    assert np.bincount(rows[:, 1]).tolist() == [10, 10]
    assert np.bincount(rows[rows[:, 1] == 1, 0]).tolist() == [5, 5]
