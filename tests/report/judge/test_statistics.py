import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dprepro.report.judge.statistics import Sample, compare

EXACT = Sample(0.88, 0.0, 1, 0.2)


def sample(mean=0.9, sd=0.01, splits=25, test_share=0.2):
    return Sample(mean, sd, splits, test_share)


def test_the_correction_adds_the_ratio_of_test_to_training_rows():
    one = sample()
    assert one.standard_error == pytest.approx(one.sd * math.sqrt(1 / 25 + 0.2 / 0.8))


def test_without_test_rows_the_correction_vanishes():
    one = sample(test_share=1e-12)
    assert one.standard_error == pytest.approx(one.sd / 5)


def test_overlapping_splits_never_narrow_without_end():
    many = sample(splits=10**9)
    assert many.standard_error == pytest.approx(many.sd * 0.5)


def test_rounding_widens_the_error_of_a_printed_mean():
    exact, printed = sample(), Sample(0.9, 0.01, 25, 0.2, half_unit=0.0005)
    shares = 1 / 25 + 0.25
    assert printed.standard_error**2 - exact.standard_error**2 == pytest.approx(
        (1 + shares) * 0.0005**2 / 3
    )


def test_rounding_has_the_variance_of_a_uniform_error():
    errors = np.random.default_rng(0).uniform(-0.5, 0.5, 200_000)
    one_run = Sample(1.0, 0.0, 10**12, 1e-12, half_unit=0.5)
    assert one_run.standard_error == pytest.approx(errors.std(), rel=0.01)


def test_a_printed_sd_of_zero_is_not_certainty():
    ours = Sample(0.0041, 0.0001, 25, 0.2)
    certain = compare(ours, Sample(0.004, 0.0, 25, 0.2), 0.0005)
    rounded = compare(ours, Sample(0.004, 0.0, 25, 0.2, half_unit=0.0005), 0.0005)
    assert rounded.high - rounded.low > 2 * (certain.high - certain.low)
    assert certain.is_equivalent
    assert not rounded.is_equivalent


def test_a_single_rounded_figure_can_be_compared():
    printed = Sample(0.88, 0.0, 1, 0.2, half_unit=0.005)
    spread_of_zero = compare(sample(0.88, 0.0), printed, 0.01)
    assert spread_of_zero.low < 0 < spread_of_zero.high
    assert compare(sample(0.88), printed, 0.01).standard_error > sample().standard_error


def test_against_an_exact_figure_it_is_the_one_sample_t_interval():
    # With a vanishing test share the correction is gone and scipy has the textbook interval.
    values = np.random.default_rng(0).normal(0.9, 0.01, 10)
    ours = Sample(values.mean(), values.std(ddof=1), 10, 1e-15)
    result = compare(ours, EXACT, margin=0.05)
    interval = stats.ttest_1samp(values, EXACT.mean).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx(
        (interval.low - EXACT.mean, interval.high - EXACT.mean)
    )
    lower = stats.ttest_1samp(values, EXACT.mean - 0.05, alternative="greater").pvalue
    upper = stats.ttest_1samp(values, EXACT.mean + 0.05, alternative="less").pvalue
    assert result.p_equivalence == pytest.approx(max(lower, upper), rel=1e-6)


def test_two_samples_are_compared_as_welch_does():
    generator = np.random.default_rng(1)
    first, second = generator.normal(0.9, 0.01, 12), generator.normal(0.89, 0.03, 25)
    a, b = (Sample(v.mean(), v.std(ddof=1), len(v), 1e-15) for v in (first, second))
    result = compare(a, b, margin=0.05)
    interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high))


values = st.floats(0.5, 0.99)
spreads = st.floats(1e-4, 0.1)


@given(values, values, spreads, spreads, st.floats(1e-3, 0.2))
def test_the_interval_is_centred_and_the_tests_agree_with_it(mean, other, sd, other_sd, margin):
    ours, theirs = sample(mean, sd), sample(other, other_sd)
    result = compare(ours, theirs, margin)
    assert (result.low + result.high) / 2 == pytest.approx(mean - other, abs=1e-12)
    # Two one-sided tests at 5 % accept exactly when the 90 % interval lies within the margin.
    narrow = compare(ours, theirs, margin, confidence=0.9)
    inside = -margin < narrow.low and narrow.high < margin
    if not math.isclose(result.p_equivalence, 0.05, rel_tol=1e-6):
        assert (result.p_equivalence < 0.05) == inside
    assert result.low <= narrow.low <= narrow.high <= result.high


def test_swapping_the_sides_flips_the_sign():
    ours, theirs = sample(0.9, 0.01), sample(0.88, 0.02)
    one, other = compare(ours, theirs, 0.01), compare(theirs, ours, 0.01)
    assert one.difference == -other.difference
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.p_equivalence == pytest.approx(other.p_equivalence)


def test_at_the_edge_of_the_margin_equivalence_is_a_coin_flip():
    assert compare(sample(0.9), sample(0.89), 0.01).p_equivalence == pytest.approx(0.5)


def test_without_any_spread_the_difference_is_certain():
    inside = compare(sample(0.885, 0.0), EXACT, 0.01)
    assert (inside.low, inside.high) == (inside.difference, inside.difference)
    assert inside.p_equivalence == 0.0
    assert compare(sample(0.9, 0.0), EXACT, 0.01).p_equivalence == 1.0


@pytest.mark.parametrize(
    ("ours", "margin", "confidence"),
    [(sample(splits=1), 0.1, 0.95), (sample(), 0.0, 0.95), (sample(), 0.1, 1.0)],
)
def test_what_cannot_be_compared_is_refused(ours, margin, confidence):
    with pytest.raises(ValueError, match="need"):
        compare(ours, EXACT, margin, confidence)
