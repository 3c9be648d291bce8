"""The noise of the authors' code, word by word, and the order in which leaves get it."""

import numpy as np
import pytest
from scipy import stats

from dprepro.dpboost.constant_noise import ConstantNoise, laplace_sequence, leaf_numbers
from dprepro.dpboost.variants import CONSTANT_NOISE, of_code
from tests.dpboost.test_variants import classifier, regressor
from tests.dpboost.test_estimator import table


def mersenne_twister(seed, n):
    """The first n words of MT19937 (Matsumoto and Nishimura 1998), in plain Python."""
    state = [seed]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) % 2**32)
    words = []
    for i in range(n):
        joined = (state[i] & 0x80000000) | (state[i + 1] & 0x7FFFFFFF)
        state.append(state[i + 397] ^ joined >> 1 ^ (0x9908B0DF if joined & 1 else 0))
        word = state[i + 624]
        word ^= word >> 11
        word ^= word << 7 & 0x9D2C5680
        word ^= word << 15 & 0xEFC60000
        words.append(word ^ word >> 18)
    return words


def test_the_sequence_is_that_of_the_generator_with_the_seed_of_the_code():
    words = mersenne_twister(42, 2000)
    assert words[0] == 1608637542
    exponential = -np.log1p(-np.array(words) / 2**32)
    expected = exponential[0::2] - exponential[1::2]
    np.testing.assert_allclose(laplace_sequence(1000), expected, rtol=1e-4, atol=1e-6)


def test_the_sequence_has_the_distribution_of_laplace_noise():
    assert stats.kstest(laplace_sequence(50_000), "laplace").pvalue > 1e-3


def test_numbers_are_handed_out_once_each_in_their_order():
    noise, sequence = ConstantNoise(10), laplace_sequence(10)
    exact = np.array([8, -4, 2])
    np.testing.assert_allclose(noise.add_laplace(exact, 3.0, 0.5), exact / 2 + 3 * sequence[:3])
    np.testing.assert_allclose(noise.add_laplace(np.zeros(2, int), 1.0), sequence[3:5])


def test_leaves_have_the_numbers_of_lightgbm():
    """0 splits into 1 and 2, then 2 into 3 and 4, then 3 into 5 and 6.

    Node 1 keeps number 0 of the root; 2 is number 1, and hands it on by 3 to 5.
    """
    feature = np.array([7, -1, 7, 7, -1, -1, -1])
    left = np.array([1, 0, 3, 5, 0, 0, 0])
    np.testing.assert_array_equal(leaf_numbers(feature, left), [0, 2, 1, 3])
    np.testing.assert_array_equal(leaf_numbers(np.array([-1]), np.array([0])), [0])


def test_the_first_leaves_of_a_fit_get_the_first_numbers():
    """Two fits whose other draws are the same: the difference is the noise."""
    X, _, y = table(rows=10_000)
    model = regressor(epsilon=0.001, constant_noise=True).fit(X, y)
    first = model.trees_[0]
    values = first.value[first.feature < 0]
    numbers = leaf_numbers(first.feature, first.left)
    scale = 0.1 * (1 / 1.1) / (0.001 / 2)  # next to this noise a leaf's mean is nothing
    expected = scale * laplace_sequence(values.size)[numbers]
    assert values.size > 3
    np.testing.assert_allclose(values, expected, atol=0.11)


@pytest.mark.parametrize("constant", [False, True])
def test_only_constant_noise_is_the_same_in_every_fit_and_the_ledger_names_it(constant):
    X, y, _ = table()
    variant = of_code("equal", "0..1", "mean", False, constant)
    assert (CONSTANT_NOISE in variant.gaps) == constant
    ledger = classifier(constant_noise=constant).fit(X, y).ledger_
    assert (CONSTANT_NOISE in ledger.gaps) == constant
    assert bool(ledger.floating_point) == constant
    assert not ledger.holds


def test_what_is_neither_constant_nor_not_is_refused():
    with pytest.raises(ValueError, match="constant_noise must be true or false, got 42"):
        of_code("equal", "0..1", "mean", False, 42)
