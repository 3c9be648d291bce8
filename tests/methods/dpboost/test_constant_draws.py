"""What the authors' code draws, word by word, and the order in which it is used."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dprepro.data.domain import Domain
from dprepro.methods.dpboost import constant_draws, kernel
from dprepro.methods.dpboost.constant_draws import (
    ConstantNoise,
    _choice,
    feature_order,
    grow,
    laplace_sequence,
    leaf_numbers,
    uniform_sequence,
)
from dprepro.methods.dpboost.estimator import DPBoostRegressor
from dprepro.methods.dpboost.variants import CONSTANT_DRAWS, of_code
from dprepro.privacy.sampling import Bits
from dprepro.privacy.sampling.sampler import dyadic
from tests.methods.dpboost.test_estimator import DOMAIN, table
from tests.methods.dpboost.test_variants import classifier, regressor


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
    model = regressor(epsilon=0.001, constant_draws=True).fit(X, y)
    first = model.trees_[0]
    values = first.value[first.feature < 0]
    numbers = leaf_numbers(first.feature, first.left)
    scale = 0.1 * (1 / 1.1) / (0.001 / 2)  # next to this noise a leaf's mean is nothing
    expected = scale * laplace_sequence(values.size)[numbers]
    assert values.size > 3
    np.testing.assert_allclose(values, expected, atol=0.11)


@pytest.mark.parametrize("constant", [False, True])
def test_only_constant_draws_is_the_same_in_every_fit_and_the_ledger_names_it(constant):
    X, y, _ = table()
    variant = of_code("equal", "0..1", "mean", False, constant)
    assert (CONSTANT_DRAWS in variant.gaps) == constant
    ledger = classifier(constant_draws=constant).fit(X, y).ledger_
    assert (CONSTANT_DRAWS in ledger.gaps) == constant
    assert bool(ledger.floating_point) == constant
    assert not ledger.holds


def test_what_is_neither_constant_nor_not_is_refused():
    with pytest.raises(ValueError, match="constant_draws must be true or false, got 42"):
        of_code("equal", "0..1", "mean", False, 42)


def test_uniform_numbers_are_made_of_two_words_of_the_minimal_standard_generator():
    """The C++ standard states the 10,000th word of `minstd_rand0`: 1043618065."""
    span = 2**31 - 2
    numbers = list(itertools.islice(uniform_sequence(), 5000))
    assert int(numbers[-1] * span) == 1043618065 - 1  # the second word of a pair weighs most
    assert 0 <= min(numbers) < max(numbers) < 1
    assert stats.kstest(numbers, "uniform").pvalue > 1e-3


def test_a_choice_is_the_first_cut_up_to_which_the_probabilities_exceed_the_number():
    gains, scale = np.array([0, 3, 1]), 2.0
    runs = np.array([gains, [10, 20, 30], [2, 1, 3]])  # cuts 10, 11, then 20, then 30 to 32
    each = np.exp(np.repeat(gains, runs[2]) / scale)
    up_to = np.cumsum(each) / each.sum()
    places = [10, 11, 20, 30, 31, 32]
    for uniform in np.linspace(0, 1, 1000, endpoint=False):
        assert _choice(runs, scale, uniform) == places[np.flatnonzero(up_to > uniform)[0]]


def test_without_noise_trees_are_those_of_the_kernel():
    """The largest gain is chosen then, whatever the draws."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, (3, 2000)).astype(np.uint8)
    signal = np.where(codes[0] > 12, 0.5, -0.4) + 0.3 * (codes[1] > 20) + 0.1 * (codes[2] > 5)
    gradients = ((signal + 0.05 * rng.normal(size=2000)) * 2**24).astype(np.int64)
    starts = np.array([0, 30, 60, 90])
    limits = 0.1, 4, 8, 20
    kernels = kernel.grow(
        codes, gradients, starts, Bits(0).state, *dyadic(1e-3), *limits, False
    )  # fmt: skip
    ours = grow(codes, gradients, starts, [2, 0, 1], uniform_sequence(), 1e-3, *limits)
    for one, two in zip(ours, kernels, strict=True):
        np.testing.assert_array_equal(one, two)
    assert ours[0].size == 2 * 8 - 1


def columns_of(*counts, rows=400):
    """Return columns and codes: each is 1 in so many rows from a first row on, else 0."""
    made = []
    for first, count in counts:
        column = np.zeros(rows)
        column[first : first + count] = 1.0
        made.append(column)
    return made, np.column_stack(made).astype(np.uint8)


def shuffled(n):
    """LightGBM's order of n features that are not bundled."""
    order, word = list(range(n)), 12
    for i in range(n - 1):
        word = (214013 * word + 2531011) % 2**32
        j = (word >> 16 & 0x7FFF) % (n - i - 1) + i + 1
        order[i], order[j] = order[j], order[i]
    return order


def test_features_that_overlap_are_shuffled_one_by_one():
    columns, codes = columns_of(*((0, 100 + k) for k in range(7)))
    assert feature_order(columns, codes, 20, range(len(columns))) == shuffled(7) != list(range(7))


def test_features_that_are_never_unequal_to_zero_together_stay_side_by_side():
    columns, codes = columns_of((0, 100), (50, 200), (300, 100), (0, 390))
    order = feature_order(columns, codes, 20, range(len(columns)))
    assert abs(order.index(1) - order.index(2)) == 1 or abs(order.index(0) - order.index(2)) == 1


def test_small_bundles_of_sparse_features_are_undone():
    columns, codes = columns_of((0, 30), (100, 30), (200, 340 - 200))
    columns[2][:] = 1.0
    codes[:, 2] = np.arange(400) % 2
    assert sorted(feature_order(columns, codes, 20, range(len(columns)))) == [0, 1, 2]
    assert feature_order(columns, codes, 20, range(len(columns))) == shuffled(3)


def test_features_without_a_cut_that_leaves_enough_rows_are_left_out():
    columns, codes = columns_of((0, 18), (0, 19), (0, 381), (0, 382))
    assert sorted(feature_order(columns, codes, 20, range(len(columns)))) == [1, 2]


def test_constant_draws_are_the_same_in_every_fit():
    """All that is left to a seed is who trains which tree: with one tree for all rows, nothing."""
    X, _, y = table(rows=2000)
    variant = of_code("equal", "-1..1", "mean", False, True)
    one, two = (
        regressor().set_params(
            variant=variant, random_state=seed, n_trees=1, trees_per_ensemble=1
        ).fit(X, y)
        for seed in (0, 1)
    )  # fmt: skip
    np.testing.assert_array_equal(one.trees_[0].value, two.trees_[0].value)
    assert one.trees_[0].feature.size > 3


def test_the_order_in_which_features_are_given_is_what_is_shuffled():
    columns, codes = columns_of(*((0, 100 + k) for k in range(5)))
    given = [3, 0, 4, 1, 2]
    assert feature_order(columns, codes, 20, given) == [given[k] for k in shuffled(5)]


def test_numbers_first_gives_numeric_features_before_all_others():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(["a", "b"], 400), "x": rng.random(400)})
    orders = []
    for numbers_first in (False, True):
        variant = of_code("equal", "-1..1", "mean", False, True, numbers_first)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                constant_draws, "feature_order", lambda *given: orders.append(given[3]) or [0, 1]
            )
            domain = Domain((DOMAIN.features[1], DOMAIN.features[0]), (0.0, 1.0))
            DPBoostRegressor(1.0, variant=variant, domain=domain).fit(X, rng.random(400))
    assert orders == [[0, 1], [1, 0]]
