"""How features are asked about: strategies against dense linear algebra, and their weights."""

import math

import mpmath
import numpy as np
import pytest

from dprepro.methods.dp_ebm_plus.prior import independent, ornstein_uhlenbeck, with_missing
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT
from dprepro.methods.dp_ebm_plus.strategy import Strategy, rounded_weights, typical_norm
from tests.methods.dp_ebm_plus.coded_rows import asked, random_codes, random_rows, sums_of, vectors
from tests.methods.dp_ebm_plus.test_prior import APART, PRECISIONS, RNG, dense, noise_of

COUNTS = np.array([400.0, 90.0, 250.0, 30.0, 800.0, 120.0, 310.0])


@pytest.mark.parametrize("noise", [1e-4, 0.05, 3.0])
def test_a_strategy_asks_for_what_its_page_says(noise):
    parts = PRECISIONS["slow"]
    asked = Strategy.of(0, COUNTS, parts, noise, 0.25)
    shares = COUNTS / COUNTS.sum()
    asked_precision = np.diag(shares) + 7 * noise**2 * dense(parts)
    # U U' is this with U above the diagonal: a Cholesky factor, read from the other end.
    upper = np.linalg.cholesky(asked_precision[::-1, ::-1])[::-1, ::-1]
    ratio = -np.diag(upper, 1) / np.diag(upper)[1:]
    np.testing.assert_allclose(asked.mix.following, np.append(ratio, 0.0), atol=1e-9)
    exact = np.linalg.inv(upper) * np.diag(upper)[:, None]
    np.testing.assert_allclose(asked.code.mix * CENTRE_UNIT, exact, atol=0.5 * CENTRE_UNIT + 1e-9)
    # Weights are rounded down to quarter powers of two.
    scaled = asked.code.weights * np.diag(upper)
    assert scaled.max() / scaled.min() <= 2**0.25
    length = (shares * asked.code.squared_norms()).sum()
    assert 0.6 < length / (0.25 * (1 - (shares**2).sum())) < 1.001


def test_sums_and_their_noise_follow_from_the_numbers():
    asked = Strategy.of(0, COUNTS, PRECISIONS["rough"], 0.3, 1.0)
    exact = np.eye(7)
    for c in range(6):
        exact[c, c + 1 :] = np.cumprod(asked.mix.following[c:-1])
    sums = RNG.normal(size=7)
    np.testing.assert_allclose(asked.mix.sums(exact @ sums), sums, atol=1e-12)
    noise = noise_of(asked.noise(2.0))
    np.testing.assert_allclose(exact @ noise, np.diag(2 / asked.code.weights), atol=1e-12)
    change = RNG.normal(size=7)
    assert asked.mix.along(change) @ (exact @ sums) == pytest.approx(change @ sums)


def test_with_much_noise_a_strategy_does_not_look_at_counts():
    one, other = (
        Strategy.of(0, counts, PRECISIONS["slow"], 100.0, 1.0) for counts in (COUNTS, COUNTS[::-1])
    )
    np.testing.assert_allclose(one.mix.following, other.mix.following, rtol=1e-3)


TABLES = {
    "rising": np.arange(1.0, 40.0),
    "one holds nearly all": np.array([1e9, 1e-3, 1e-3, 1e-3]),
    "the last holds nearly all": np.array([1e-3, 1e-3, 1e-3, 1e9]),
    "by turns": np.tile([1e6, 0.5], 125)[:249],
    "nearly all in the first of many": np.append(1e9, np.full(248, 1e-3)),
}


@pytest.mark.parametrize("counts", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("noise", [1e-9, 0.02, 1.0, 1e3, 1e9])
def test_no_number_is_too_large_for_a_code_and_centres_are_the_means(counts, noise):
    """`Code` refuses numbers beyond 4, and weights that are not positive."""
    n = counts.size
    for precision in (independent(n), with_missing(ornstein_uhlenbeck(np.full(n - 2, 1 / n), 0.2))):
        made = Strategy.of(7, counts, precision, noise, 0.1)
        made.code.check()
        assert made.code.mix.min() >= 0
        assert made.code.mix.max() <= 256
        means = made.code.mix @ (counts / counts.sum())
        np.testing.assert_allclose(made.code.centre, means, atol=0.5 + 1e-6)
        # Sums follow from the numbers that are released, by half a unit of 1/256 at most.
        sums = np.random.default_rng(0).normal(size=n)
        within = 0.5 / 256 * (1 + made.mix.following) * np.abs(sums).sum()
        gap = made.mix.sums(made.code.mix / 256 @ sums) - sums
        assert (np.abs(gap) <= within + 1e-9).all()
        here = random_rows(np.random.default_rng(0), (made.code,), 20)
        assert sums_of(here, asked((made.code,), 0.5)).numbers.any()


def test_missing_values_have_a_number_of_their_own():
    made = Strategy.of(0, COUNTS, with_missing(ornstein_uhlenbeck(APART[:5], 0.2)), 0.3, 1.0)
    np.testing.assert_array_equal(made.code.mix[6], 256 * np.eye(7, dtype=int)[6])
    np.testing.assert_array_equal(made.code.mix[:, 6], made.code.mix[6])
    assert (made.mix.following[-2:] == 0).all()


def test_weights_are_the_doubles_nearest_to_powers_of_two():
    """By no function whose last digit depends on the machine; mpmath has 60 digits."""
    steps = range(-120, 40)
    with mpmath.workdps(60):
        powers = [float(mpmath.mpf(2) ** (mpmath.mpf(k) / 4)) for k in steps]
        squares = [float(mpmath.mpf(2) ** (mpmath.mpf(k) / 2) * 1.0001) for k in steps]
    assert rounded_weights(np.array(squares)).tolist() == powers


def test_weights_are_rounded_down_by_less_than_a_step():
    squares = np.exp(np.random.default_rng(1).uniform(-60, 20, 10_000))
    ratios = rounded_weights(squares) / np.sqrt(squares)
    assert (ratios <= 1 + 1e-15).all()
    assert (ratios > 2**-0.25 - 1e-15).all()
    np.testing.assert_array_equal(rounded_weights(4.0 ** np.arange(-9, 9)), 2.0 ** np.arange(-9, 9))


def test_the_typical_norm_is_that_of_rows():
    rng = np.random.default_rng(5)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, 4000)
    counts = [np.bincount(rows.bins[c.feature], minlength=c.weights.size) * 7.0 for c in codes]
    norms = np.linalg.norm(vectors(asked(codes, 1.0), rows.bins), axis=1)
    assert typical_norm(codes, counts) == pytest.approx(math.sqrt(np.mean(norms**2)))
