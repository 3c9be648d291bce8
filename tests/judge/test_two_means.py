""""""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dprepro.judge.two_means import Sample, compare, score_difference

SINGLE = Sample(0.88, None, 1)


def sample(mean=0.9, sd=0.01, splits=25, **fields):
    return Sample(mean, sd, splits, **fields)


def test_z_is_the_difference_by_its_standard_error():
    ours, theirs = (
        sample(0.902, 0.01, 25),
        sample(0.9, 0.02, 16, half_unit=0.0005, sd_half_unit=0.005),
    )
    found = compare(ours, theirs, 0.005)
    rounding = 0.001**2 / 12
    pooled = (24 * 0.01**2 + 15 * (0.02**2 + 0.01**2 / 12)) / 39
    expected = pooled * (1 / 25 + 1 / 16) + rounding
    assert found.standard_error == pytest.approx(math.sqrt(expected))
    assert found.z == pytest.approx(0.002 / math.sqrt(expected))


def test_of_as_many_splits_on_both_sides_the_variances_of_the_means_add_up():
    found = compare(sample(0.902, 0.01), sample(0.9, 0.03), 0.005)
    assert found.standard_error == pytest.approx(math.sqrt(0.01**2 / 25 + 0.03**2 / 25))


def test_other_rows_get_the_term_of_nadeau_and_bengio():
    assert sample().weight == pytest.approx(1 / 25)
    assert sample(overlap=0.2 / 0.8).weight == pytest.approx(1 / 25 + 0.25)
    narrow = compare(sample(), sample(0.89), 0.005)
    wide = compare(sample(overlap=0.25), sample(0.89, overlap=0.25), 0.005)
    assert abs(wide.z) < abs(narrow.z) / 2


def test_random_splits_of_given_rows_have_the_variance_that_is_used():
    # The mean of a row over random test sets: the mean over 25 splits varies as sd^2/25 says.
    generator = np.random.default_rng(0)
    rows = generator.normal(size=200)
    means, variances = [], []
    for _ in range(2000):
        splits = [rows[generator.permutation(200)[:40]].mean() for _ in range(25)]
        means.append(np.mean(splits))
        variances.append(np.var(splits, ddof=1) * Sample(0.0, None, 25).weight)
    assert np.var(means) == pytest.approx(np.mean(variances), rel=0.1)


def test_rounding_has_the_variance_of_a_uniform_error():
    errors = np.random.default_rng(0).uniform(-0.5, 0.5, 200_000)
    assert math.sqrt(Sample(1.0, 0.0, 1, 0.5).rounding) == pytest.approx(errors.std(), rel=0.01)


def test_a_printed_sd_of_zero_is_not_certainty():
    ours = Sample(0.0041, 0.0001, 25)
    certain = compare(ours, Sample(0.004, 0.0, 25), 0.0005)
    rounded = compare(ours, Sample(0.004, 0.0, 25, 0.0005, sd_half_unit=0.0005), 0.0005)
    assert rounded.high - rounded.low > 2 * (certain.high - certain.low)
    assert certain.is_equivalent
    assert abs(rounded.z) < abs(certain.z)


def test_against_a_single_run_it_is_the_prediction_interval():
    values = np.random.default_rng(0).normal(0.9, 0.01, 10)
    ours = Sample(values.mean(), values.std(ddof=1), 10)
    found = compare(ours, SINGLE, margin=0.05)
    reach = stats.t.ppf(0.975, 9) * values.std(ddof=1) * math.sqrt(1 + 1 / 10)
    assert found.freedom == pytest.approx(9)
    assert (found.low, found.high) == pytest.approx(
        (found.difference - reach, found.difference + reach)
    )


def test_one_split_of_ours_has_the_printed_spread():
    found = compare(sample(0.9, None, 1), sample(0.89, 0.01, 25), 0.05)
    assert found.freedom == pytest.approx(24)
    assert found.standard_error == pytest.approx(0.01 * math.sqrt(1 + 1 / 25))


def test_without_any_known_spread_there_is_no_comparison():
    assert compare(sample(0.9, None, 1), SINGLE, 0.05) is None
    assert compare(sample(0.9, 0.0, 1), SINGLE, 0.05) is None


def test_two_samples_are_compared_as_student_does():
    generator = np.random.default_rng(1)
    first, second = generator.normal(0.9, 0.01, 12), generator.normal(0.89, 0.01, 25)
    a, b = (Sample(v.mean(), v.std(ddof=1), len(v)) for v in (first, second))
    found = compare(a, b, margin=0.05)
    student = stats.ttest_ind(first, second)
    interval = student.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert (found.z, found.p_difference) == pytest.approx((student.statistic, student.pvalue))
    lower = stats.ttest_ind(first + 0.05, second, alternative="greater").pvalue
    upper = stats.ttest_ind(first - 0.05, second, alternative="less").pvalue
    assert found.p_equivalence == pytest.approx(max(lower, upper), rel=1e-6)


def test_three_splits_against_25_show_a_large_difference():
    # Degrees of freedom of three splits alone would hide fifteen standard deviations of a split.
    assert compare(sample(0.8, 0.005, 3), sample(0.875, 0.005, 25), 0.005).p_difference < 1e-9


values = st.floats(0.5, 0.99)
spreads = st.floats(1e-4, 0.1)


@given(values, values, spreads, spreads, st.floats(1e-3, 0.2))
def test_interval_and_tests_agree(mean, other, sd, other_sd, margin):
    found = compare(sample(mean, sd), sample(other, other_sd), margin)
    assert (found.low + found.high) / 2 == pytest.approx(mean - other, abs=1e-12)
    if not math.isclose(found.p_difference, 0.05, rel_tol=1e-6):
        assert (found.p_difference < 0.05) == (found.low > 0 or found.high < 0)
    # Two one-sided tests at 5 % accept exactly when the 90 % interval lies within the margin.
    reach = stats.t.ppf(0.95, found.freedom) * found.standard_error
    inside = abs(found.difference) + reach < margin
    if not math.isclose(found.p_equivalence, 0.05, rel_tol=1e-6):
        assert found.is_equivalent == inside


def test_swapping_the_sides_flips_the_sign():
    ours, theirs = sample(0.9, 0.01), sample(0.88, 0.02)
    one, other = compare(ours, theirs, 0.01), compare(theirs, ours, 0.01)
    assert (one.difference, one.z) == (-other.difference, -other.z)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.p_equivalence == pytest.approx(other.p_equivalence)


def test_at_the_edge_of_the_margin_equivalence_is_a_coin_flip():
    assert compare(sample(0.9), sample(0.89), 0.01).p_equivalence == pytest.approx(0.5)


def test_without_any_spread_the_difference_is_certain():
    inside = compare(sample(0.885, 0.0), sample(0.88, 0.0), 0.01)
    assert (inside.low, inside.high) == (inside.difference, inside.difference)
    assert (inside.p_difference, inside.p_equivalence, inside.z) == (0.0, 0.0, math.inf)
    equal = compare(sample(0.88, 0.0), sample(0.88, 0.0), 0.01)
    assert (equal.p_difference, equal.z) == (1.0, 0.0)
    nearly = compare(sample(0.1 + 0.2, 0.0), sample(0.3, 0.0), 0.01)
    assert (nearly.p_difference, nearly.z, nearly.difference) == (1.0, 0.0, 0.0)
    assert compare(sample(0.9, 0.0), sample(0.88, 0.0), 0.01).p_equivalence == 1.0
    at_the_edge = compare(sample(0.75, 0.0), sample(0.5, 0.0), 0.25)
    assert (at_the_edge.p_equivalence, at_the_edge.standard_error) == (1.0, 0.0)


@pytest.mark.parametrize("steady", [0.0, 0.001])
def test_a_spread_is_never_taken_to_be_less_than_what_is_known_of_it(steady):
    narrow, known = sample(0.9, steady), sample(0.89, None, 1, least_sd=0.02)
    expected = 0.02 * math.sqrt(1 / 25 + 1)
    assert compare(narrow, known, 0.01).standard_error == pytest.approx(expected)
    assert compare(known, narrow, 0.01).standard_error == pytest.approx(expected)
    wide = sample(0.9, 0.05)
    assert compare(wide, known, 0.01).standard_error == pytest.approx(0.05 * math.sqrt(1.04))


def test_a_test_accepts_only_below_its_level():
    found = compare(sample(), sample(0.89), 0.02)
    assert replace(found, p_equivalence=0.0499).is_equivalent
    assert not replace(found, p_equivalence=0.05).is_equivalent


@pytest.mark.parametrize("score", [0.9, 1e-9, 60_000.0, -3.0])
def test_scores_that_differ_in_their_last_bits_are_equal(score):
    near = math.nextafter(math.nextafter(score, math.inf), math.inf)
    assert score_difference(score, near) == score_difference(near, score) == 0.0
    other = score * (1 + 1e-11)
    assert score_difference(score, other) == score - other != 0
    assert score_difference(other, score) == other - score


def test_zero_equals_nothing_but_itself():
    assert score_difference(0.0, 0.0) == 0.0
    assert score_difference(0.0, 1e-300) == -1e-300
