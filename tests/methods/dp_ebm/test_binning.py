"""Bins: every value has one, fit and predict agree, and merging reads nothing but the noise."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dprepro.additive.bins import MISSING, OTHER
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.dp_ebm.binning import cell_edges, histogram, merge_cells, random_cuts
from dprepro.methods.dp_ebm.kernel import NEVER

AGE = NumericFeature("age", 0.0, 64.0)
JOB = CategoricalFeature("job", ("a", "b", "c", "d"))


def bin_exactly(column, feature, max_bins=8, noise=0.0):
    """Histogram and merge with given noise; return bins, counts and codes."""
    cells, counts = histogram(column, feature, max_bins)
    bins, bin_counts, bin_of_cell = merge_cells(
        feature, counts + noise, len(column) / max_bins, max_bins
    )
    return bins, bin_counts, bin_of_cell[cells]


def test_numeric_histogram_equals_numpy():
    values = np.random.default_rng(0).uniform(-10, 80, 5000)
    _, counts = histogram(pd.Series(values), AGE, 16)
    expected, _ = np.histogram(np.clip(values, 0, 64), bins=32, range=(0, 64))
    np.testing.assert_array_equal(counts, [*expected, 0])


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e3, 1e3)),
    st.floats(-100, 100),
    st.floats(1e-3, 1e3),
)
def test_each_row_lies_in_the_cell_whose_edges_hold_it(values, lower, width):
    feature = NumericFeature("x", lower, lower + width)
    cells, _ = histogram(pd.Series(values, name="x"), feature, 4)
    edges = cell_edges(feature, 4)
    np.testing.assert_array_equal(cells, np.searchsorted(edges[1:-1], values, side="right"))


def test_a_row_lies_in_exactly_one_cell_missing_or_not():
    for column, feature in [
        (pd.Series([1.0, np.nan, 70.0, -5.0]), NumericFeature("x", 0, 64, missing=True)),
        (pd.Series(["a", None, "d"]), CategoricalFeature("x", ("a", "d"), missing=True)),
    ]:
        _, counts = histogram(column, feature, 4)
        assert counts.sum() == len(column)
        assert counts[-1] == 1


@pytest.mark.parametrize("seed", range(5))
def test_codes_at_fit_equal_codes_at_predict(seed):
    rng = np.random.default_rng(seed)
    ages = pd.Series(np.r_[rng.uniform(-5, 70, 400), cell_edges(AGE, 8)])
    jobs = pd.Series(rng.choice(list("abcd"), 400, p=[0.6, 0.3, 0.07, 0.03]))
    for column, feature, cells in [(ages, AGE, 17), (jobs, JOB, 5)]:
        bins, _, codes = bin_exactly(column, feature, noise=rng.normal(0, 20, cells))
        np.testing.assert_array_equal(bins.encode(column), codes)


def test_merging_goes_left_to_right_and_the_rest_joins_the_last_bin():
    noisy = np.array([3.0, 4.0, 10.0, -7.0, 6.0, 4.0, 1.0, 1.0, 0.0])
    bins, counts, bin_of_cell = merge_cells(NumericFeature("x", 0, 8), noisy, 7.0, 4)
    np.testing.assert_array_equal(bin_of_cell[:-1], [0, 0, 1, 2, 2, 2, 2, 2])
    np.testing.assert_array_equal(bins.cuts, [2.0, 3.0])
    np.testing.assert_array_equal(counts, [7.0, 10.0, 12.0])
    assert bins.labels == ("[-inf, 2)", "[2, 3)", "[3, inf)")


def test_without_a_single_full_bin_one_positive_bin_remains():
    bins, counts, _ = merge_cells(NumericFeature("x", 0, 4), np.full(5, -3.0), 10.0, 2)
    assert bins.n_bins == 1
    np.testing.assert_array_equal(counts, [10.0])


def test_small_categories_join_other():
    bins, counts, bin_of_cell = merge_cells(JOB, np.array([50.0, 4.0, 30.0, 8.0, 0.0]), 10.0, 8)
    assert bins.labels == ("a", "c", OTHER)
    np.testing.assert_array_equal(counts, [50.0, 30.0, 12.0])
    np.testing.assert_array_equal(bin_of_cell[:-1], [0, 2, 1, 2])


def test_an_other_bin_that_is_too_small_takes_in_the_smallest_kept_category():
    bins, counts, _ = merge_cells(JOB, np.array([50.0, 4.0, 30.0, 20.0, 0.0]), 10.0, 8)
    assert bins.labels == ("a", "c", OTHER)
    np.testing.assert_array_equal(counts, [50.0, 30.0, 24.0])


def test_every_bin_count_reaches_the_target_whatever_the_noise():
    rng = np.random.default_rng(1)
    for _ in range(200):
        noisy = rng.normal(5, 30, 17)
        for feature, cells in [(AGE, noisy), (JOB, noisy[:5])]:
            bins, counts, bin_of_cell = merge_cells(feature, cells, 12.0, 8)
            assert counts.min() >= min(12.0, np.clip(cells[:-1], 0, None).sum())
            assert counts.min() > 0
            assert bin_of_cell.max() < bins.n_bins


def test_unseen_and_missing_values_at_predict():
    jobs = pd.Series(["z", None, "a"])
    plain, _, _ = bin_exactly(pd.Series(list("abcd") * 5), JOB)
    np.testing.assert_array_equal(plain.encode(jobs), [-1, -1, 0])
    with_other, _, _ = merge_cells(JOB, np.array([50.0, 4.0, 30.0, 8.0, 0.0]), 10.0, 8)
    np.testing.assert_array_equal(with_other.encode(jobs), [2, -1, 0])
    ages, _, _ = bin_exactly(pd.Series(np.arange(64.0)), AGE)
    np.testing.assert_array_equal(ages.encode(pd.Series([np.nan, -100, 100])), [-1, 0, 7])


def test_missing_values_get_a_bin_if_there_are_enough_of_them():
    may_miss = NumericFeature("x", 0, 4, missing=True)
    bins, counts, _ = merge_cells(may_miss, np.array([20.0, 0, 15.0, 0, 12.0]), 10.0, 2)
    assert bins.labels[bins.missing_bin] == MISSING
    assert counts[bins.missing_bin] == 12.0
    bins, counts, _ = merge_cells(may_miss, np.array([20.0, 0, 15.0, 0, 3.0]), 10.0, 2)
    assert bins.missing_bin == 0
    assert counts[0] == 23.0
    assert bins.encode(pd.Series([np.nan]))[0] == 0


def test_missing_values_outside_the_domain_are_an_error():
    with pytest.raises(ValueError, match=r"'age' has missing values \(NaN\) and its domain"):
        histogram(pd.Series([1.0, np.nan]), AGE, 4)


def test_categories_outside_the_domain_are_an_error():
    with pytest.raises(
        ValueError, match="'job' holds a category that is not in its domain; allowed: 'a'"
    ):
        histogram(pd.Series(["a", "z"]), JOB, 4)


def test_text_in_a_numeric_feature_is_an_error():
    with pytest.raises(ValueError, match="'age' is numeric in the domain"):
        histogram(pd.Series(["1", "2"], name="age"), AGE, 4)


def test_a_constant_feature_gets_one_bin():
    bins, counts, codes = bin_exactly(pd.Series(np.full(80, 3.0)), NumericFeature("x", 3, 3))
    assert bins.n_bins == 1
    assert counts[0] == 80
    assert (codes == 0).all()


def test_cuts_are_distinct_ascending_uniform_and_padded():
    cuts = random_cuts(np.random.default_rng(0), np.array([5, 2, 1]), 6000, 4)
    assert cuts.shape == (18_000, 4)
    by_feature = cuts.reshape(6000, 3, 4).astype(int)
    wide = by_feature[:, 0, :3]
    assert (np.diff(wide, axis=1) > 0).all()
    # Three of the four gaps, each left out equally often (chi-square, 3 degrees of freedom).
    left_out = 10 - wide.sum(axis=1)
    observed = np.bincount(left_out, minlength=5)[1:]
    assert ((observed - 1500) ** 2 / 1500).sum() < 30
    assert (by_feature[:, 1, 0] == 1).all()
    assert (by_feature[:, 1, 1:] == NEVER).all()
    assert (by_feature[:, 2] == NEVER).all()
    assert (by_feature[:, 0, 3] == NEVER).all()


def test_random_cuts_are_those_of_their_generator():
    first = random_cuts(np.random.default_rng(5), np.array([9, 4]), 3, 3)
    second = random_cuts(np.random.default_rng(5), np.array([9, 4]), 3, 3)
    np.testing.assert_array_equal(first, second)


def test_with_an_empty_first_bin_its_gap_is_drawn_as_often_as_any_and_parts_nothing():
    cuts = random_cuts(np.random.default_rng(0), np.array([5, 2, 1]), 6000, 3, True)
    wide, two, one = cuts.reshape(6000, 3, 2).astype(int).transpose(1, 0, 2)
    # Two of the five gaps of 1 + 5 bins: all ten pairs equally often (9 degrees of freedom).
    pairs, observed = np.unique(wide, axis=0, return_counts=True)
    assert pairs.tolist() == [
        [1, 2], [1, 3], [1, 4], [1, NEVER], [2, 3], [2, 4], [2, NEVER], [3, 4], [3, NEVER],
        [4, NEVER],
    ]  # fmt: skip
    assert ((observed - 600) ** 2 / 600).sum() < 30
    # 1 + 2 bins have two gaps, and both are drawn: the cut between the two bins is always there.
    assert (two == [1, NEVER]).all()
    assert (one == NEVER).all()


def test_an_empty_first_bin_needs_a_cut_that_stands_for_none():
    random_cuts(np.random.default_rng(0), np.array([255]), 2, 3, True)
    with pytest.raises(ValueError, match="at most 255 bins"):
        random_cuts(np.random.default_rng(0), np.array([256]), 2, 3, True)


def test_cuts_are_drawn_in_blocks_with_the_same_bits(monkeypatch):
    n_bins = np.array([1, 2, 7, 200, 256])
    at_once = random_cuts(np.random.default_rng(3), n_bins, 500, 4)
    monkeypatch.setattr("dprepro.methods.dp_ebm.binning._DRAWN", 7)
    np.testing.assert_array_equal(random_cuts(np.random.default_rng(3), n_bins, 500, 4), at_once)
