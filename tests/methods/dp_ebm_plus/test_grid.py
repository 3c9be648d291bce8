"""The public grid, and the cells of rows."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.dp_ebm_plus.grid import _cells, fine_cells, grid_edges

BOUNDS = [(0, 1e5), (-3, 1e4), (-1e4, 0), (17, 90), (1, 1e6), (-1e6, -1), (5, 5), (-1e-9, 1e9)]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_edges_ascend_within_the_bounds(bounds):
    edges = grid_edges(NumericFeature("x", *bounds))
    assert (np.diff(edges) > 0).all()
    assert ((edges > bounds[0]) & (edges < bounds[1])).all()
    assert edges.size <= 248


def test_bounds_of_many_orders_of_magnitude_get_cells_in_each():
    edges = grid_edges(NumericFeature("x", 0, 1e5))
    for decade in range(5):
        assert ((edges >= 10.0**decade) & (edges < 10.0 ** (decade + 1))).sum() >= 11
    assert edges[0] == pytest.approx(1.0)
    assert 0.0 in grid_edges(NumericFeature("x", -3, 1e4))


@pytest.mark.parametrize("rows", [1, 511, 512, 513, 3000])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 247])
def test_cells_are_those_of_a_search_in_the_edges(size, rows):
    rng = np.random.default_rng(size)
    edges = np.sort(rng.normal(size=size))
    values = rng.normal(size=rows)
    values[rng.random(rows) < 0.2] = np.nan
    values[::7] = rng.choice([np.inf, -np.inf, 0.0, *edges], values[::7].size)
    expected = np.where(np.isnan(values), size + 1, np.searchsorted(edges, values, "right"))
    for given in (values, np.repeat(values, 2)[::2]):  # of any strides
        np.testing.assert_array_equal(_cells(given, edges), expected)


@pytest.mark.parametrize(
    "bounds",
    [
        (-8e307, 8e307),
        (0, 1.7e308),
        (0, 5e-324),
        (0, 1e-320),
        (1e16, 1e16 + 2),
        (1e-300, 1e300),
        (-1e300, -1e-320),
    ],
)
def test_bounds_that_a_float_hardly_holds_have_edges_too(bounds):
    edges = grid_edges(NumericFeature("x", *bounds))
    assert ((edges > bounds[0]) & (edges < bounds[1])).all()
    assert (np.diff(edges) > 0).all()


def features():
    return [
        NumericFeature("x", -1, 1000, missing=True),
        CategoricalFeature("x", ("a", "b", "c"), missing=True),
    ]


def column(feature, rows, seed=0):
    rng = np.random.default_rng(seed)
    if isinstance(feature, NumericFeature):
        values = pd.Series(np.exp(rng.normal(2, 2, rows)), name="x")
    else:
        values = pd.Series(rng.choice(["a", "b", "c"], rows, p=[0.7, 0.29, 0.01]), name="x")
    values[rng.random(rows) < 0.1] = np.nan if isinstance(feature, NumericFeature) else None
    return values


@pytest.mark.parametrize("feature", features(), ids=["numeric", "categorical"])
def test_a_row_lies_in_one_cell(feature):
    values = column(feature, 60)
    _, counts = fine_cells(values, feature)
    assert counts.sum() == 60
    for row in range(60):
        _, less = fine_cells(values.drop(row), feature)
        assert np.abs(counts - less).sum() == 1


def test_what_the_domain_rules_out_is_refused():
    with pytest.raises(ValueError, match="not in its domain; allowed: 'a', 'b'"):
        fine_cells(pd.Series(["a", "z"], name="x"), CategoricalFeature("x", ("a", "b")))
    with pytest.raises(ValueError, match=r"'x' has missing values .* allows none"):
        fine_cells(pd.Series([1.0, np.nan], name="x"), NumericFeature("x", 0, 2))
