"""Cuts: public ones ignore the rows, observed ones follow LightGBM's rules."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature, refuse_undeclared
from dprepro.methods.dpboost.bins import (
    ZERO,
    FeatureCuts,
    as_numbers,
    observed_cuts,
    public_cuts,
)

NUMERIC = NumericFeature("x", 0, 10)
COLOURS = CategoricalFeature("c", ("red", "green", "blue"))


def observed(values, max_bins=255):
    return observed_cuts(np.asarray(values, dtype=float), NUMERIC, max_bins)


def test_a_value_equal_to_a_cut_lies_left_of_it():
    bins = FeatureCuts(NUMERIC, np.array([1.0, 2.0]), missing=False)
    np.testing.assert_array_equal(bins.encode(np.array([0.0, 1.0, 1.5, 2.0, 9.0])), [0, 0, 1, 1, 2])
    assert bins.n_bins == 3


def test_missing_values_take_the_last_bin():
    with_bin = FeatureCuts(NUMERIC, np.array([1.0]), missing=True)
    without = FeatureCuts(NUMERIC, np.array([1.0]), missing=False)
    assert with_bin.encode(np.array([np.nan, 5.0])).tolist() == [2, 1]
    # Where training knew none, they go with the largest values: always to the right.
    assert without.encode(np.array([np.nan, 5.0])).tolist() == [1, 1]


def test_categories_count_as_their_position_and_unknown_ones_as_missing():
    numbers = as_numbers(pd.Series(["blue", "red", None, "mauve"]), COLOURS)
    np.testing.assert_array_equal(numbers, [2.0, 0.0, np.nan, np.nan])


@pytest.mark.parametrize(
    ("column", "feature", "message"),
    [
        (pd.Series([1.0, np.nan]), NUMERIC, "has missing values"),
        (pd.Series(["red", None]), COLOURS, "has missing values"),
        (pd.Series(["red", "mauve"]), COLOURS, "category that is not in its domain"),
        (pd.Series(["text"]), NUMERIC, "'x' is numeric in the domain"),
    ],
)
def test_values_outside_the_domain_are_named(column, feature, message):
    column.name = feature.name
    with pytest.raises(ValueError, match=message):
        refuse_undeclared(feature, column, np.isnan(as_numbers(column, feature)))


def test_numbers_outside_their_bounds_are_no_error():
    column = pd.Series([-5.0, 50.0])
    refuse_undeclared(NUMERIC, column, np.isnan(as_numbers(column, NUMERIC)))
    assert public_cuts(NUMERIC, 4).encode(column.to_numpy()).tolist() == [0, 3]


def test_public_cuts_have_equal_width():
    np.testing.assert_allclose(public_cuts(NUMERIC, 4).cuts, [2.5, 5.0, 7.5])


def test_public_cuts_part_every_category_from_its_neighbours():
    bins = public_cuts(COLOURS, 255)
    assert bins.encode(np.array([0.0, 1.0, 2.0])).tolist() == [0, 1, 2]
    assert bins.n_bins == 3


def test_more_categories_than_bins_share_bins_evenly():
    many = CategoricalFeature("c", tuple(map(str, range(1000))))
    codes = public_cuts(many, 250).encode(np.arange(1000.0))
    np.testing.assert_array_equal(np.bincount(codes), np.full(250, 4))


@pytest.mark.parametrize("feature", [NumericFeature("x", 3, 3), CategoricalFeature("c", ("only",))])
def test_a_constant_feature_has_one_bin(feature):
    assert public_cuts(feature, 255).n_bins == 1


def test_a_missing_bin_is_declared_by_the_domain_or_seen_in_the_rows():
    assert public_cuts(NumericFeature("x", 0, 1, missing=True), 4).n_bins == 5
    assert not observed([1.0, 2.0] * 5).missing
    assert observed([1.0, 2.0, np.nan] * 5).missing


def test_few_values_are_cut_midway_once_a_bin_holds_three_rows():
    # 1 alone has two rows: it waits for 2; 5 follows with enough; 7 is the rest.
    np.testing.assert_allclose(observed([1, 1, 2, 2, 5, 5, 5, 7]).cuts, [ZERO, 3.5, 6.0])


def test_zero_has_a_bin_of_its_own():
    bins = observed([-2.0] * 5 + [0.0] * 5 + [3.0] * 5)
    np.testing.assert_allclose(bins.cuts, [-ZERO, ZERO])
    assert bins.encode(np.array([-2.0, 0.0, 3.0])).tolist() == [0, 1, 2]


def test_the_signs_share_the_bins_by_their_rows():
    rng = np.random.default_rng(0)
    values = np.concatenate([-rng.random(3000) - 1, rng.random(1000) + 1])
    cuts = observed(values, max_bins=101).cuts
    # 75 of 100 bins lie left of zero, that is 74 cuts and the border of the zero bin.
    assert (cuts < -1).sum() == 74
    assert (cuts > 1).sum() == 24


def test_many_values_get_bins_of_about_equal_counts():
    values = np.random.default_rng(0).random(10_000) + 1
    bins = observed(values)
    counts = np.bincount(bins.encode(values), minlength=bins.n_bins)
    assert bins.n_bins == 255
    # The zero bin is empty; each of the others holds 10,000 / 254 rows, or one more.
    assert counts[0] == 0
    assert counts[1:-1].min() >= 39
    assert counts[1:-1].max() <= 41


def test_a_frequent_value_has_a_bin_of_its_own():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(2000) + 1, np.full(500, 1.5), rng.random(2000) + 2])
    bins = observed(values, max_bins=21)
    code = bins.encode(np.array([1.5]))[0]
    inside = values[bins.encode(values) == code]
    # A bin may end short before it, at half its size, or hold what came before; never what follows.
    assert inside.max() == 1.5


def test_codes_keep_the_order_of_values():
    values = np.random.default_rng(1).normal(size=3000).round(2)
    bins = observed(values)
    codes = bins.encode(np.sort(values)).astype(int)
    assert (np.diff(codes) >= 0).all()
    assert bins.n_bins <= 255
    assert (np.diff(bins.cuts) > 0).all()


@pytest.mark.parametrize("values", [[np.nan] * 4, [0.0] * 4, [7.0] * 4, [-7.0] * 4, []])
def test_degenerate_columns_do_not_part_their_rows(values):
    bins = observed(values)
    assert len(np.unique(bins.encode(np.asarray(values, dtype=float)))) <= 1


def test_two_bins_leave_positive_numbers_without_cuts_among_them():
    assert observed([-1.0, -2.0, 1.0, 2.0] * 5, max_bins=2).n_bins == 3


@pytest.mark.parametrize("size", [0, 1, 2, 3, 6, 7, 8, 127, 128, 253])
def test_codes_are_those_of_numpys_search(size):
    """On cuts and next to them, at both ends, at infinities, and where cuts repeat."""
    rng = np.random.default_rng(size)
    special = rng.choice([-np.inf, -1e300, -1.0, -0.0, 0.0, 1e-320, 1.0, np.inf], size)
    cuts = np.sort(np.where(rng.random(size) < 0.5, special, rng.normal(size=size)))
    near = [np.nextafter(cuts, to) for to in (-np.inf, np.inf)]
    values = np.concatenate([cuts, *near, [-np.inf, -0.0, 0.0, np.inf], rng.normal(size=50)])
    bins = FeatureCuts(NumericFeature("x", -1.0, 1.0), cuts, missing=True)
    np.testing.assert_array_equal(bins.encode(values), np.searchsorted(cuts, values, side="left"))
    assert bins.encode(np.array([np.nan, 0.0]))[0] == bins.n_bins - 1
