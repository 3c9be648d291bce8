"""What effects may be where rows are few, given the noisy steps towards them."""

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.function import Function
from dprepro.methods.dp_ebm_plus.low_signal import (
    AccumulatedSteps,
    covariance,
    likely_error,
    smooth_sums,
    ways,
)
from scipy.stats import multivariate_normal, norm

from dprepro.methods.dp_ebm_plus import low_signal

ROWS, BINS, SLOPE = 600.0, 6, 0.2
TIMES = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
PRIOR = np.exp(-0.5 * (np.log(TIMES) / 0.7) ** 2)
ODDS = np.array([0.05, 0.3, 1.0, 3.0])
KNOWN, UNKNOWN = 1e-9, 1e9
"""Noise in counts that says all of the rows, and nothing."""

KINDS = pytest.mark.parametrize("kind", ["ordered", "missing", "unordered"])
"""Values in order, the same with a last bin of missing values, and categories."""


def function(kind, noisy=None, uncertainty=KNOWN, bins=BINS):
    """Return a function of zeros over bins with these noisy counts; by default of as many rows."""
    extents = np.full(bins, 1 / bins)
    extents[-1] *= kind != "missing"
    noisy = np.full(bins, ROWS / bins) if noisy is None else np.asarray(noisy, float)
    made = Function(0, np.maximum(noisy, 1.0), np.full(bins, uncertainty), extents, kind[0] != "u")
    made.noisy = noisy
    return made


def shares(kind, bins=BINS):
    """Return the shares of the rows that each bin has a priori, float64 (W, B)."""
    return ways(function(kind, uncertainty=UNKNOWN, bins=bins), ROWS)[0] / ROWS


def about(values, counts):
    """Return values, float64 (B, ...), counted from their mean over the rows."""
    return values - np.average(values, axis=0, weights=counts)


def walk(made, counts, means, rng, *, deviation, steps=6, gain=0.004):
    """Return a path along noisy sums of rows whose bins have these means, and set the values."""
    path = AccumulatedSteps(made.counts, smooth_sums(made, 2.0))
    slopes = SLOPE * (1 + 0.1 * np.arange(counts.size))
    for _ in range(steps):
        sums = path.ways.T @ (counts * slopes * (means - path.trust() * path.values))
        noise = deviation * rng.standard_normal(sums.size)
        path.go(gain, sums + noise, deviation, slopes)
    made.values = path.trust() * path.values
    return path


# --- where rows may lie -------------------------------------------------------------------------


@pytest.mark.parametrize("uncertainty", [KNOWN, 50.0, UNKNOWN])
@pytest.mark.parametrize("kind", ["ordered", "missing"])
def test_counts_of_values_in_order_add_up_to_the_rows(kind, uncertainty):
    noisy = np.array([300.0, -40.0, 150.0, 80.0, 90.0, 20.0])
    counts, logs = ways(function(kind, noisy, uncertainty), ROWS)
    np.testing.assert_allclose(counts.sum(axis=1), ROWS)
    assert counts.min() > 0
    assert counts.shape == logs.shape == (6 if kind == "ordered" else 12, BINS)


@KINDS
def test_counts_that_are_known_are_those_of_every_way(kind):
    noisy = np.array([200.0, 10.0, 150.0, 0.0, 40.0, 200.0])
    counts, _ = ways(function(kind, noisy), ROWS)
    np.testing.assert_allclose(counts, np.tile(noisy, (len(counts), 1)), atol=1e-5)


def test_counts_that_are_unknown_lie_around_some_place_or_anywhere():
    found = shares("ordered", 15)
    np.testing.assert_allclose(found[0], 1 / 15)
    np.testing.assert_array_equal(found[1:].argmax(axis=1), [1, 4, 7, 10, 13])
    assert np.all(found > 0.05 / 15)
    np.testing.assert_allclose(found[1:, ::-1], found[:0:-1], rtol=1e-6)
    # A bin at a distance of 3 / 15, without the rows that lie anywhere.
    bump = found[3] - 0.05 / 15
    assert bump[10] / bump[7] == pytest.approx(np.exp(-0.5 * (0.2 / 0.15) ** 2))


def test_missing_values_may_be_a_quarter_of_the_rows_or_rare():
    found, without = shares("missing"), shares("ordered", BINS - 1)
    rare, many = found[: len(found) // 2], found[len(found) // 2 :]
    np.testing.assert_allclose(many[:, -1], 0.25)
    assert rare[0, -1] == pytest.approx(1 / BINS)
    np.testing.assert_allclose(rare[1:, -1], 0.05 / BINS)
    for half in (rare, many):
        among = half[:, :-1] / half[:, :-1].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(among, without, atol=0.005)


def test_a_category_has_some_odds_against_each_other_one():
    found = shares("unordered", 8)
    assert found.shape == (4, 8)
    assert np.all(found == found[:, :1])
    np.testing.assert_allclose(found[:, 0] / (1 - found[:, 0]), ODDS / 7)


@KINDS
def test_rows_of_a_way_lie_about_so_give_or_take_as_many(kind):
    """Counts and their likelihood are those of a normal prior and normal noise."""
    noisy, noise = np.array([250.0, -30.0, 120.0, 60.0, 140.0, 30.0]), 40.0
    counts, logs = ways(function(kind, noisy, noise), ROWS)
    likely = ROWS * shares(kind)
    expected = norm.logpdf(noisy, likely, np.sqrt(likely**2 + noise**2))
    means = (likely / likely**2 + noisy / noise**2) / (1 / likely**2 + 1 / noise**2)
    means = np.maximum(means, 1e-6)
    if kind != "unordered":
        means *= ROWS / means.sum(axis=1, keepdims=True)
        expected = np.tile(expected.sum(axis=1, keepdims=True), BINS)
    np.testing.assert_allclose(counts, means)
    np.testing.assert_allclose(logs - logs[0], expected - expected[0], atol=1e-9)


@pytest.mark.parametrize("way", range(6))
def test_the_way_that_noisy_counts_come_from_explains_them_best(way):
    rng, likely = np.random.default_rng(way), 3000 * shares("ordered", 20)
    found = np.zeros(6)
    for _ in range(20):
        noisy = likely[way] + rng.normal(0, 30, 20)
        found += ways(function("ordered", noisy, 30.0, bins=20), 3000.0)[1][:, 0]
    assert found.argmax() == way


def test_what_was_released_decides_and_not_what_was_made_likelier():
    made = function("ordered", [300.0, 200.0, 50.0, 20.0, 20.0, 10.0], 40.0)
    before = ways(made, ROWS)
    made.counts = np.full(BINS, ROWS / BINS)
    np.testing.assert_array_equal(ways(made, ROWS), before)


# --- what effects are like a priori -------------------------------------------------------------


@pytest.mark.parametrize("bins", [2, 5, 30])
def test_values_in_order_are_a_walk_from_its_mean_with_a_mean_variance_of_1(bins):
    found = covariance(function("ordered", bins=bins))
    assert np.trace(found) == pytest.approx(bins)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-9)
    steps = np.diff(np.diff(found, axis=0), axis=1)
    np.testing.assert_allclose(steps, steps[0, 0] * np.eye(bins - 1), atol=1e-9)
    assert steps[0, 0] > 0


def test_missing_values_have_an_effect_of_their_own():
    found = covariance(function("missing"))
    np.testing.assert_array_equal(found[-1], np.eye(BINS)[-1])
    np.testing.assert_array_equal(found[:, -1], np.eye(BINS)[-1])
    np.testing.assert_allclose(found[:-1, :-1], covariance(function("ordered", bins=BINS - 1)))


def test_categories_and_a_single_interval_have_independent_effects():
    np.testing.assert_array_equal(covariance(function("unordered")), np.eye(BINS))
    np.testing.assert_array_equal(covariance(function("ordered", bins=1)), np.eye(1))
    np.testing.assert_array_equal(covariance(function("missing", bins=2)), np.eye(2))


# --- what is found ------------------------------------------------------------------------------


def test_all_values_together_are_explained_as_normal_ones_are():
    rng = np.random.default_rng(4)
    roots = rng.standard_normal((3, 4, 4))
    prior, noise, reach = roots[0] @ roots[0].T, roots[1] @ roots[1].T, roots[2]
    seen, mixed = rng.standard_normal(4), reach @ prior @ reach.T + noise
    log, mean, variance = low_signal._in_all(seen, prior, reach, noise)
    # But for the constant.
    expected = multivariate_normal(np.zeros(4), mixed).logpdf(seen) + 2 * np.log(2 * np.pi)
    assert log == pytest.approx(expected)
    pull = prior @ reach.T @ np.linalg.inv(mixed)
    np.testing.assert_allclose(mean, pull @ seen)
    np.testing.assert_allclose(variance, np.diag(prior - pull @ reach @ prior))


def test_each_value_alone_is_explained_as_a_single_one_is():
    rng = np.random.default_rng(4)
    roots = rng.standard_normal((3, 4, 4))
    prior, noise, reach = roots[0] @ roots[0].T, roots[1] @ roots[1].T, roots[2]
    seen = rng.standard_normal(4)
    found = low_signal._in_each(seen, prior, reach, noise)
    for b in range(4):
        mixed = reach[b] @ prior @ reach[b] + noise[b, b]
        pull = reach[b] @ prior[:, b] / mixed
        assert found[0][b] == pytest.approx(
            norm.logpdf(seen[b], 0, np.sqrt(mixed)) + 0.5 * np.log(2 * np.pi)
        )
        assert found[1][b] == pytest.approx(pull * seen[b])
        assert found[2][b] == pytest.approx(prior[b, b] - pull**2 * mixed)


def expected_error(made, path, size, sampling):
    """Return what `likely_error` does, all said once more, with inverses.

    A path's values add up to zero over the released rows, so the last one says nothing.
    """
    total, squares = np.zeros((2, BINS))
    for counts, logs in zip(*ways(made, ROWS), strict=True):
        (reach,), (noise,) = path.reach(counts[None])
        turned = about(np.eye(BINS), counts if made.ordered else made.counts)
        rows = about(np.eye(BINS), counts)
        sample = rows @ np.diag(sampling / (counts * path.slopes)) @ rows.T
        for times, weight in zip(TIMES, PRIOR, strict=True):
            prior = (times * size) ** 2 * turned @ covariance(made) @ turned.T
            mixed = reach @ (prior + sample) @ reach.T + noise
            seen = [[*range(BINS - 1)]] * BINS if made.ordered else [[b] for b in range(BINS)]
            for b, kept in enumerate(seen):
                inner = mixed[np.ix_(kept, kept)]
                density = multivariate_normal(np.zeros(len(kept)), inner).pdf(path.values[kept])
                pull = prior[b] @ reach.T[:, kept] @ np.linalg.inv(inner)
                gap = pull @ path.values[kept] - turned[b] @ made.values
                part = weight * density * np.exp(logs[b])
                total[b] += part
                squares[b] += part * (gap**2 + prior[b, b] - pull @ reach[kept] @ prior[:, b])
    return np.sqrt(squares / total)


@pytest.mark.parametrize("uncertainty", [KNOWN, 60.0, UNKNOWN])
@KINDS
def test_ways_and_sizes_count_by_how_well_they_explain_what_was_released(
    monkeypatch, kind, uncertainty
):
    monkeypatch.setattr(low_signal, "_to_bits", lambda values: values)
    rng = np.random.default_rng(1)
    counts = np.array([220.0, 150.0, 100.0, 50.0, 20.0, 60.0])
    noisy = counts + min(uncertainty, 100.0) * np.array([0.3, 0.7, -0.5, -0.2, 0.9, -0.8])
    made = function(kind, noisy, uncertainty)
    path = walk(made, counts, np.array([0.9, 0.4, 0.1, -0.3, -0.7, 0.5]), rng, deviation=15.0)
    found = likely_error(made, path, ROWS, 0.6, 2.0)
    np.testing.assert_allclose(found, expected_error(made, path, 0.6, 2.0), rtol=1e-4)


def drawn(kind, uncertainty, repeats, seed, size=0.5, sampling=5.0):
    """Yield weights, errors and `likely_error` of functions, all drawn as the prior says."""
    rng, likely = np.random.default_rng(seed), ROWS * shares(kind)
    for times, weight in zip(TIMES, PRIOR / PRIOR.sum(), strict=True):
        for number in range(repeats):
            counts = likely[number % len(likely)]
            if kind == "unordered":
                counts = likely[rng.integers(len(likely), size=BINS), np.arange(BINS)]
            made = function(kind, counts + rng.normal(0, uncertainty, BINS), uncertainty)
            made.counts = counts if uncertainty < 1 else np.full(BINS, ROWS / BINS)
            over = made.counts if kind == "unordered" else counts
            shape = rng.multivariate_normal(np.zeros(BINS), covariance(made))
            truth = about(times * size * shape, over)
            slopes = SLOPE * (1 + 0.1 * np.arange(BINS))
            means = truth + about(rng.normal(0, np.sqrt(sampling / (counts * slopes))), over)
            path = walk(made, counts, means, rng, deviation=15.0)
            error = about(made.values, over) - truth
            yield weight / repeats, error, likely_error(made, path, ROWS, size, sampling)


@pytest.mark.parametrize("uncertainty", [1e-3, 3e3])
@KINDS
def test_functions_lie_as_far_off_as_is_expected(kind, uncertainty):
    repeats = {"ordered": 120, "missing": 96, "unordered": 200}[kind]
    weights, errors, stated = map(np.array, zip(*drawn(kind, uncertainty, repeats, 7), strict=True))
    ratios = weights @ (errors / stated) ** 2
    assert ratios.mean() == pytest.approx(1, abs=0.1)
    assert (weights @ errors**2).mean() == pytest.approx((weights @ stated**2).mean(), rel=0.15)
    assert np.all((ratios > 0.7) & (ratios < 1.4))


@KINDS
def test_a_feature_that_shows_no_effect_is_known_better_than_one_that_shows_a_large_one(kind):
    """Steps say how large effects are, too: the smaller they are, the less is left to be found."""
    counts, sizes = np.full(BINS, ROWS / BINS), (0.0, 0.5, 3.0)
    found = []
    for size in sizes:
        made, rng = function(kind), np.random.default_rng(6)
        means = size * np.array([1.0, 0.6, 0.3, -0.4, -0.5, -1.0])
        path = walk(made, counts, means, rng, deviation=15.0)
        found.append(likely_error(made, path, ROWS, 0.75, 1.0))
    none, some, much = found
    assert np.all(none < 0.9 * much)
    assert np.mean(none) < np.mean(some) < np.mean(much)


@pytest.mark.parametrize("kind", ["missing", "unordered"])
def test_a_bin_without_rows_is_as_far_off_as_effects_are_large(kind):
    counts, rng = np.array([120.0, 120.0, 120.0, 120.0, 120.0, 0.0]), np.random.default_rng(2)
    made = function(kind, counts)
    made.counts = np.maximum(counts, 1e-6)
    path = walk(made, counts, np.zeros(BINS), rng, deviation=15.0)
    found = likely_error(made, path, ROWS, 0.75, 1.0)
    # A category tells of its own effect alone, so each size is as likely as it was.
    largest = 0.75 * np.sqrt(np.average(TIMES**2, weights=PRIOR))
    if kind == "unordered":
        expected = np.hypot(largest * np.sqrt(1 + 5 / 25), made.values[-1])
        assert found[-1] == pytest.approx(expected, rel=0.1)
    assert 0.5 < found[-1] < 1.1 * np.hypot(largest, made.values[-1])
    assert np.all(found[:-1] < 0.75 * found[-1])


def test_rows_that_are_a_small_sample_leave_more_unknown():
    made, counts = function("ordered"), np.full(BINS, ROWS / BINS)
    means, rng = np.linspace(-1, 1, BINS), np.random.default_rng(9)
    path = walk(made, counts, means, rng, deviation=1.0, steps=20)
    few, more = (likely_error(made, path, ROWS, 0.75, sampling) for sampling in (0.01, 20.0))
    assert np.all(few < 0.7 * more)


def test_a_path_with_little_noise_has_errors_all_the_same():
    """Its values always add up to zero, so one follows from the others."""
    made, counts = function("ordered"), np.full(BINS, ROWS / BINS)
    path = walk(made, counts, np.linspace(-1, 1, BINS), np.random.default_rng(9), deviation=0.3)
    assert np.mean(path.variances) < 1e-4 * np.mean(path.values**2)
    found = likely_error(made, path, ROWS, 0.75, 0.0)
    assert np.all((found > 0) & (found < 1.5))


def test_errors_have_twelve_binary_digits():
    """The last digits of a matrix product are not the same on every machine."""
    values = np.exp(np.random.default_rng(2).normal(0, 9, 500))
    found = low_signal._to_bits(values)
    np.testing.assert_allclose(found, values, rtol=2**-12)
    digits = np.frexp(found)[0] * 2**12
    np.testing.assert_array_equal(digits, np.rint(digits))
    np.testing.assert_array_equal(found, low_signal._to_bits(values * (1 + 1e-12)))
    assert np.unique(found).size > 490


@KINDS
@pytest.mark.parametrize("gain", [1e-3, 1e-6, 1e-9])
def test_steps_that_lead_nowhere_leave_effects_as_they_are_likely(kind, gain):
    """However small they are beside the size of an effect, no matrix is singular."""
    made = function(kind, np.full(BINS, 100.0), 50.0)
    path = AccumulatedSteps(made.counts, smooth_sums(made, 4.0))
    for _ in range(3):
        path.go(gain, np.zeros(path.centre.size), 1e-3, np.full(BINS, 0.2))
    found = likely_error(made, path, 100.0 * BINS, 0.6, 1.0)
    assert np.all((found > 0.1) & (found < 2.0))
