"""The public grid, the cells of rows, and bins by what the noise lets one see."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bins import OTHER
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.dp_ebm_plus.grid import (
    _COARSEST,
    MISSING_DEVIATION,
    _cells,
    _merge_neighbours,
    cell_extents,
    fine_cells,
    grid_edges,
    merge_fine,
    sum_deviations,
    variance_steps,
)

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


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_extents_of_cells_are_their_widths_and_make_up_the_range(bounds, missing):
    feature = NumericFeature("x", *bounds, missing=missing)
    extents, edges = cell_extents(feature), grid_edges(feature)
    assert extents.sum() == pytest.approx(1)
    assert extents[-1] == 0
    widths = np.diff(edges) / max(bounds[1] - bounds[0], 1)
    np.testing.assert_allclose(extents[1 : edges.size], widths, rtol=1e-6)
    column = pd.Series(np.linspace(*bounds, 100_001), name="x")
    _, counts = fine_cells(column, feature)
    assert extents.size == counts.size
    np.testing.assert_allclose(extents, counts / 100_001, atol=2e-5)


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


@pytest.mark.parametrize("missing", [True, False])
def test_extents_of_categories_are_alike(missing):
    feature = CategoricalFeature("x", ("a", "b", "c", "d"), missing=missing)
    assert cell_extents(feature).tolist() == [0.25, 0.25, 0.25, 0.25, 0.0]
    assert fine_cells(pd.Series(["a"], name="x"), feature)[1].size == 5


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
def test_bounds_that_a_float_hardly_holds_make_up_a_range_too(bounds):
    feature = NumericFeature("x", *bounds)
    assert cell_extents(feature).sum() == pytest.approx(1)
    edges = grid_edges(feature)
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


@pytest.mark.parametrize("feature", features(), ids=["numeric", "categorical"])
@pytest.mark.parametrize("deviation", [1.0, 30.0, 3000.0])
def test_rows_are_encoded_as_their_cells_were_merged(feature, deviation):
    values = column(feature, 4000)
    cells, counts = fine_cells(values, feature)
    noisy = counts + np.random.default_rng(1).normal(0, deviation, counts.size)
    bins, bin_counts, bin_of_cell = merge_fine(feature, noisy, deviation, 4000.0, seen=4.0)
    np.testing.assert_array_equal(bins.encode(values), bin_of_cell[cells])
    assert bin_counts.shape == (bins.n_bins,)
    assert (bin_counts > 0).all()


def test_less_noise_buys_finer_bins():
    feature = NumericFeature("x", 0, 1000)
    values = pd.Series(np.random.default_rng(0).exponential(50, 20_000), name="x")
    _, counts = fine_cells(values, feature)
    sizes = []
    for deviation in (1.0, 30.0, 300.0):
        noisy = counts + np.random.default_rng(1).normal(0, deviation, counts.size)
        sizes.append(merge_fine(feature, noisy, deviation, 20_000.0, seen=4.0)[0].n_bins)
    assert sizes[0] > sizes[1] > sizes[2] >= 8


@pytest.mark.parametrize("feature", features(), ids=["numeric", "categorical"])
@pytest.mark.parametrize("missing", [True, False])
def test_counts_of_bins_add_up_to_the_rows_though_bins_end_where_noise_is_high(feature, missing):
    feature = replace(feature, missing=missing)
    values = column(feature, 4000)
    _, counts = fine_cells(values if missing else values.dropna(), feature)
    noisy = counts + np.random.default_rng(1).normal(0, 30, counts.size)
    bin_counts = merge_fine(feature, noisy, 30.0, 3900.0, seen=4.0)[1]
    assert bin_counts.sum() == pytest.approx(3900)
    changed = noisy + np.append(np.zeros(counts.size - 1), 500.0)
    changed_counts = merge_fine(feature, changed, 30.0, 3900.0, seen=4.0)[1]
    if not missing:  # What is known to be empty counts for nothing.
        np.testing.assert_array_equal(changed_counts, bin_counts)


def test_a_bin_holds_the_fewest_rows_asked_for_but_never_more_than_is_coarse():
    feature = NumericFeature("x", 0, 1000)
    values = pd.Series(np.random.default_rng(0).exponential(50, 20_000), name="x")
    noisy = fine_cells(values, feature)[1].astype(float)
    for fewest, least in ((0.0, 80), (500.0, 500), (1e9, 20_000 / _COARSEST)):
        bins, counts, _ = merge_fine(feature, noisy, 0.1, 20_000.0, seen=4.0, fewest=fewest)
        assert counts.min() >= least
        assert bins.n_bins > _COARSEST / 2
    plain, some = (
        merge_fine(feature, noisy, 0.1, 20_000.0, seen=4.0, fewest=fewest)[0].n_bins
        for fewest in (0.0, 500.0)
    )
    assert plain > 2 * some


def one_by_one(counts, seen, least, most):
    """Merge cells by the rule, taking the error of every run from `sum_deviations`."""
    bins, current, first = np.zeros(counts.size, int), 0, 0
    for i in range(counts.size):
        bins[i] = current
        run = np.ones(counts.size + 1, int)
        run[first : i + 1] = 0
        error = sum_deviations(NumericFeature("x", 0, 1), run, 2, 1.0)[0]
        if counts[first : i + 1].sum() >= max(min(seen * error, most), least):
            current, first = current + 1, i + 1
    return np.minimum(bins, max(current - 1, 0))


def test_cells_join_until_they_exceed_the_noise_of_their_sum():
    rng = np.random.default_rng(0)
    several = 0
    for _ in range(300):
        counts = rng.normal(rng.choice([0, 3, 20]), 5, rng.integers(1, 80))
        rule = rng.uniform(1, 20), rng.uniform(0.1, 5), rng.uniform(5, 200)
        found = _merge_neighbours(counts, variance_steps(counts.size), *rule)
        np.testing.assert_array_equal(found, one_by_one(counts, *rule))
        several += found.max() > 2
    assert several > 100


def test_the_threshold_is_in_units_of_the_noise():
    """The same cells, all of 100 rows: of how many a bin is made says what it is to exceed."""
    feature = NumericFeature("x", 1, 9)
    counts = np.append(np.full(128, 100.0), 0.0)
    sizes = [
        merge_fine(feature, counts, 100.0, 12_800.0, seen=seen)[0].n_bins for seen in (1.0, 3.0)
    ]
    # 3 sqrt(k - k^2/17) <= k from the sixth cell of a group on; one deviation from the first.
    assert sizes == [pytest.approx(128, abs=8), pytest.approx(128 / 5.5, abs=4)]


@pytest.mark.parametrize(("deviations", "own"), [(3.0, False), (5.0, True)])
def test_missing_values_get_a_bin_once_four_deviations_are_seen(deviations, own):
    feature = NumericFeature("x", 0, 1, missing=True)
    counts = np.full(cell_extents(feature).size, 100.0)
    counts[-1] = deviations * 10.0 * MISSING_DEVIATION
    bins, _, _ = merge_fine(feature, counts, 10.0, counts.sum(), seen=3.0)
    assert (bins.missing_bin == len(bins.labels) - 1) == own


def test_a_count_lost_in_the_noise_is_half_a_deviation():
    feature = CategoricalFeature("x", ("a", "b", "c"))
    noisy = np.array([900.0, 800.0, -40.0, 0.0])
    _, counts, _ = merge_fine(feature, noisy, 30.0, 1700.0, seen=3.0)
    np.testing.assert_allclose(counts / counts[0], [1, 8 / 9, 15 / 900])
    _, counts, _ = merge_fine(feature, noisy, 600.0, 1700.0, seen=3.0)
    assert counts[2] / counts[0] == pytest.approx(1700 / 3 / 4 / 900)  # no more than a fourth


def test_rare_categories_join_and_thousands_fit_into_a_byte():
    feature = CategoricalFeature("x", ("a", "b", "c"))
    bins, counts, _ = merge_fine(feature, np.array([90.0, 80.0, 1.0, 0.0]), 5.0, 171.0, seen=4.0)
    assert bins.labels == ("a", "b", OTHER)
    assert counts[0] / counts[1] == pytest.approx(90 / 80)
    many = CategoricalFeature("x", tuple(map(str, range(3000))))
    noisy = np.append(np.arange(3000.0), 0.0)
    bins, _, bin_of_cell = merge_fine(many, noisy, 0.1, noisy.sum(), seen=4.0)
    assert bins.n_bins <= 256
    assert bin_of_cell[:2000].min() == bins.n_bins - 1


def test_what_the_domain_rules_out_is_refused():
    with pytest.raises(ValueError, match="not in its domain; allowed: 'a', 'b'"):
        fine_cells(pd.Series(["a", "z"], name="x"), CategoricalFeature("x", ("a", "b")))
    with pytest.raises(ValueError, match=r"'x' has missing values .* allows none"):
        fine_cells(pd.Series([1.0, np.nan], name="x"), NumericFeature("x", 0, 2))
