"""Candidates: where they are put, what bin a value is in, and how they follow curvature."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.random_boosting.candidates import (
    as_numbers,
    bins,
    bounds_of,
    mean_total,
    quantiles,
    ranks,
    refined,
    uniform,
)

COLOURS = CategoricalFeature("c", ("red", "green", "blue"))


def test_uniform_candidates_begin_at_the_lower_bound_and_leave_out_the_upper():
    assert uniform(0.0, 8.0, 4).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert uniform(3.0, 3.0, 4).tolist() == [3.0]


def test_quantiles_are_distinct_and_pass_over_what_is_missing():
    values = np.array([np.nan, 1.0, 1.0, 1.0, 2.0, 9.0])
    assert quantiles(values, 4).tolist() == [1.0, 2.0]
    assert quantiles(np.array([np.nan]), 4).tolist() == [0.0]


def test_a_value_is_in_the_bin_that_its_candidate_closes_and_a_missing_one_in_the_last():
    values = np.array([-1.0, 0.0, 0.1, 2.0, 2.1, np.nan])
    assert bins(values, np.array([0.0, 2.0])).tolist() == [0, 0, 1, 1, 2, 2]


def test_ranks_count_known_values_below():
    assert ranks(np.array([5.0, 1.0, 3.0, 9.0]), np.array([1.0, 3.0, 5.0])).tolist() == [2, 0, 1, 3]
    assert np.isnan(ranks(np.array([np.nan]), np.array([1.0]))).all()


def test_categories_are_numbers_in_the_order_of_the_domain():
    column = pd.Series(["blue", "red", None], name="c")
    np.testing.assert_array_equal(as_numbers(column, COLOURS), [2.0, 0.0, np.nan])
    assert bounds_of(COLOURS) == (0.0, 2.0)
    assert bounds_of(NumericFeature("x", -1.0, 4.0)) == (-1.0, 4.0)


def test_bins_are_merged_until_they_hold_enough_and_gaps_are_cut_evenly():
    """All curvature lies in the first two bins: new candidates go there."""
    candidates = np.array([0.0, 8.0, 16.0, 24.0])
    curvature = np.array([10.0, 10.0, 0.0, -3.0, 0.0])
    # Kept are 0, 8 and the last; ceil(4 / 3) = 2 parts of each gap.
    assert refined(candidates, curvature, 5.0, 4).tolist() == [0.0, 4.0, 8.0, 16.0, 24.0]


def test_the_middle_of_the_next_gap_is_added_while_there_are_too_few_candidates():
    assert refined(np.array([0.0, 8.0]), np.array([9.0, 9.0, 0.0]), 5.0, 3).tolist() == [0, 4, 8]


def test_candidates_close_in_on_a_narrow_range_and_stay_within_a_byte():
    values = np.append(np.zeros(100), np.random.default_rng(0).random(900))
    candidates = uniform(0.0, 50_000.0, 32)
    for _ in range(5):
        held = np.bincount(bins(values, candidates), minlength=len(candidates) + 1)
        candidates = refined(candidates, held.astype(float), 1000 / 32, 32)
        assert (np.diff(candidates) > 0).all()
        assert len(candidates) <= 64
    assert np.sum(candidates < 1) > 5


def test_below_the_first_candidate_that_is_kept_nothing_is_added():
    """As in the authors' program: values just above the lower bound stay in one bin."""
    found = refined(np.array([0.0, 8.0, 16.0]), np.array([0.0, 90.0, 0.0, 0.0]), 30.0, 3)
    assert found.tolist() == [8.0, 12.0, 16.0]


def test_one_candidate_stays_one():
    assert refined(np.array([2.0]), np.array([5.0, 5.0]), 1.0, 32).tolist() == [2.0]


def test_the_mean_total_counts_noise_below_zero():
    assert mean_total([np.array([3.0, -1.0]), np.array([4.0])]) == pytest.approx(3.0)
