"""Sums over neighbouring bins: what they are, and that the bins' own sums follow from them."""

import math

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer, Function

from dprepro.data.domain import NumericFeature
from dprepro.methods.dp_ebm_plus.grid import cell_extents
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from dprepro.methods.dp_ebm_plus.queries import Code
from dprepro.methods.dp_ebm_plus.strategy import (
    LEAST_SHARE,
    REACH,
    AutoregressiveStrategy,
    autoregressive_strategy,
)
from tests.methods.dp_ebm_plus.test_shared_noise import covariance_of

COUNTS = {
    "alike": np.full(9, 100.0),
    "three": np.array([5.0, 1.0, 3.0]),
    "rising": np.arange(1.0, 40.0),
    "one holds nearly all": np.array([1e9, 1e-3, 1e-3, 1e-3]),
    "the last holds nearly all": np.array([1e-3, 1e-3, 1e-3, 1e9]),
    "by turns": np.tile([1e6, 0.5], 125)[:249],
    "many": np.full(249, 1.0),
}
CASES = pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
CARE = pytest.mark.parametrize("rare", [0.0, LOGISTIC.rare])


def of_intervals(counts, rare=0.0, extents=None):
    """Return the decay of a function whose bins all are intervals, if not said otherwise."""
    found = autoregressive_strategy(
        counts, np.ones(counts.size) if extents is None else extents, rare
    )
    assert isinstance(found, AutoregressiveStrategy)
    return found


def exactly(decay):
    """Return the mix before it is rounded, from the inverse that is stated for it."""
    return np.linalg.inv(np.eye(decay.following.size) - np.diag(decay.following[:-1], 1))


@CASES
@CARE
def test_the_mix_is_rounded_and_holds_products_of_what_follows(counts, rare):
    decay = of_intervals(counts, rare)
    assert decay.mix.dtype == np.int64
    np.testing.assert_allclose(decay.mix / 256, exactly(decay), atol=0.5 / 256 + 1e-9)
    np.testing.assert_array_equal(np.diag(decay.mix), 256)
    assert not np.tril(decay.mix, -1).any()
    for c in (0, counts.size // 2, counts.size - 2):
        for b in (c + 1, counts.size - 1):
            product = math.prod(decay.following[c:b])
            assert decay.mix[c, b] == pytest.approx(256 * product, abs=0.5 + 1e-9)


@CASES
@CARE
def test_sums_follow_from_the_numbers(counts, rare):
    decay, sums = of_intervals(counts, rare), np.random.default_rng(0).normal(size=counts.size)
    np.testing.assert_allclose(decay.sums(exactly(decay) @ sums), sums, atol=1e-9)
    # Numbers that are released are those of the rounded mix, by half a unit of 1/256 at most.
    found = decay.sums(decay.mix / 256 @ sums)
    within = 0.5 / 256 * (1 + decay.following) * np.abs(sums).sum()
    assert (np.abs(found - sums) <= within + 1e-9).all()


@CASES
@CARE
def test_the_transpose_says_what_numbers_count_for(counts, rare):
    rng, decay = np.random.default_rng(1), of_intervals(counts, rare)
    change, numbers = rng.normal(size=(2, counts.size))
    assert decay.along(change) @ numbers == pytest.approx(change @ decay.sums(numbers), abs=1e-9)


@CASES
@CARE
def test_the_noise_is_that_of_the_sums(counts, rare):
    decay, size = of_intervals(counts, rare), counts.size
    variances = np.random.default_rng(2).uniform(0.1, 9, size)
    linear = np.stack([decay.sums(row) for row in np.eye(size)], axis=1)
    expected = linear @ np.diag(variances) @ linear.T
    noise = decay.noise(variances)
    assert noise.shape == (2, size)
    assert noise[1, -1] == 0
    np.testing.assert_allclose(covariance_of(np.zeros(size), noise), expected, atol=1e-9)


@pytest.mark.parametrize("size", [3, 4, 30])
def test_with_bins_alike_the_numbers_have_the_covariance_that_is_stated(size):
    """A number is asked for with the weight `fresh`; then L'L is exp(-d / REACH)."""
    decay = of_intervals(np.full(size, 70.0))
    root = decay.fresh[:, None] * exactly(decay)
    places = np.arange(size) / size
    expected = np.exp(-np.abs(places[:, None] - places) / REACH)
    np.testing.assert_allclose(root.T @ root, expected, rtol=1e-9)


@CASES
@CARE
def test_half_of_a_distance_are_the_bins_between_and_half_the_rows(counts, rare):
    decay, size = of_intervals(counts, rare), counts.size
    shares = counts / counts.sum()
    roots = np.maximum(shares, LEAST_SHARE) ** (-rare / 2)
    root = (roots * decay.fresh)[:, None] * exactly(decay)
    middles = np.cumsum(shares) - shares / 2
    places = (np.arange(size) / size + middles) / 2
    expected = np.exp(-np.abs(places[:, None] - places) / REACH) * np.outer(roots, roots)
    np.testing.assert_allclose(root.T @ root, expected, rtol=1e-6)


@CARE
def test_missing_values_stay_apart(rare):
    """They have a number of their own, and none of the others tells of them."""
    extents = np.array([0.2, 0.1, 0.3, 0.2, 0.2, 0.0])
    counts = np.array([30.0, 5.0, 40.0, 20.0, 5.0, 77.0])
    decay = of_intervals(counts, rare, extents)
    np.testing.assert_array_equal(decay.mix[5], [0, 0, 0, 0, 0, 256])
    np.testing.assert_array_equal(decay.mix[:, 5], [0, 0, 0, 0, 0, 256])
    assert (decay.following[-2:] == 0).all()
    assert decay.fresh[5] == 1
    numbers = np.random.default_rng(0).normal(size=6)
    found, others = decay.sums(numbers), numbers + np.where(np.arange(6) == 5, 9.0, 0.0)
    np.testing.assert_array_equal(decay.sums(others)[:5], found[:5])
    assert found[5] == numbers[5]
    # With as many rows among themselves intervals are as far apart as without missing values.
    alone = of_intervals(counts[:5], 0.0, extents[:5])
    np.testing.assert_allclose(of_intervals(counts, 0.0, extents).fresh[:5], alone.fresh)


def test_sums_follow_though_an_interval_is_too_narrow_for_its_extent():
    """Where bounds are of hundreds of orders of magnitude, the extent of the smallest is 0."""
    extents = np.array([0.5, 0.0, 0.0, 0.2, 0.2, 0.1])
    assert not cell_extents(NumericFeature("x", -1e300, 1e300)).all()
    decay, sums = of_intervals(np.arange(1.0, 7.0), LOGISTIC.rare, extents), np.arange(6.0) - 2
    np.testing.assert_allclose(decay.sums(exactly(decay) @ sums), sums, atol=1e-12)
    np.testing.assert_allclose(decay.mix / 256, exactly(decay), atol=0.5 / 256 + 1e-9)


@CASES
@CARE
def test_no_number_is_too_large_for_a_code(counts, rare):
    decay = of_intervals(counts, rare)
    assert decay.mix.min() >= 0
    assert decay.mix.max() <= 4 * 256
    assert (decay.fresh > 0).all()
    assert (decay.fresh <= 1).all()
    Code(0, np.ones(counts.size), decay.mix.max(axis=1), decay.mix).check()


def test_numbers_nearly_reach_what_a_code_may_hold():
    """After a bin with nearly all rows come such with hardly any: by 256^(1/4), less the decay."""
    counts = np.append(1e9, np.full(248, 1e-3))
    assert of_intervals(counts, LOGISTIC.rare).mix.max() > 0.7 * 4 * 256 * math.exp(-0.25 / REACH)


@pytest.mark.parametrize("intervals", [1, 2])
@pytest.mark.parametrize("missing", [True, False])
def test_less_than_three_intervals_are_asked_about_one_by_one(intervals, missing):
    extents = np.append(np.full(intervals, 1 / intervals), [0.0] if missing else [])
    assert autoregressive_strategy(np.full(extents.size, 9.0), extents, LOGISTIC.rare) is None
    three = np.append([0.2, 0.3, 0.5], [0.0] if missing else [])
    assert autoregressive_strategy(np.full(three.size, 9.0), three, LOGISTIC.rare) is not None


def test_a_function_remembers_sums_and_the_noise_that_they_share():
    counts = np.array([30.0, 60.0, 10.0, 5.0])
    decay = of_intervals(counts, LOGISTIC.rare)
    function = Function(0, counts, np.zeros(4), np.ones(4), ordered=True, decay=decay)
    rng = np.random.default_rng(0)
    numbers, deviations = rng.normal(size=(2, 4)), rng.uniform(1, 3, (2, 4))
    for told, deviation, weight in zip(numbers, deviations, (1.0, 3.0), strict=True):
        function.remember(Answer(told, deviation), np.full(4, weight), weight)
    (sums, expected), variance = function.averages()
    np.testing.assert_allclose(sums, decay.sums((numbers[0] + 3 * numbers[1]) / 4))
    np.testing.assert_allclose(expected, (1 + 9) / 4)
    noise = decay.noise((deviations[0] ** 2 + 9 * deviations[1] ** 2) / 16)
    np.testing.assert_allclose(function.noise(), noise)
    np.testing.assert_allclose(variance, np.diag(covariance_of(np.zeros(4), noise)))


def test_a_function_without_a_decay_shares_no_noise():
    function = Function(0, np.ones(3), np.zeros(3), np.ones(3), ordered=True)
    function.remember(Answer(np.arange(3.0), 2.0), np.zeros(3), 1.0)
    assert function.noise().shape == (2, 0)
    np.testing.assert_array_equal(function.averages()[0][0], np.arange(3.0))
    assert function.averages()[1] == 4.0
