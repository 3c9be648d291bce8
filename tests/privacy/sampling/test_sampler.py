"""The samplers: against plain Python, against the exact probabilities, against OpenDP."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dprepro.privacy.sampling import Bits, ExactSampler, exact_noise
from dprepro.privacy.sampling import bits as lazy
from dprepro.privacy.sampling.exact_noise import (
    _CUMULATIVE,
    _HALVED,
    _LARGEST,
    _LOG_2,
    exponential_choice_of_runs,
    rounded_normal,
)
from dprepro.privacy.sampling.sampler import dyadic
from tests.privacy.sampling import reference

SCALES = pytest.mark.parametrize("scale", [2.0**-10, 0.3, 1.0, 3.7, 1e6, 2.0**40, 2.0**53 * 0.9])
ALPHA = 1e-4


def pair(seed):
    """Return a sampler, and the words that it will use."""
    bits = Bits(seed)
    key = [int(word) for word in bits.state[4:12]]
    return ExactSampler(bits), reference.chacha20(key)


def borders():
    return reference.cumulative(len(_CUMULATIVE))


@SCALES
def test_gaussian_noise_is_that_of_the_reference_to_the_last_bit(scale):
    sampler, words = pair(1)
    expected = [reference.rounded_gaussian(words, scale, borders()) for _ in range(300)]
    assert sampler.gaussian(scale, (300,)).tolist() == expected


@SCALES
def test_laplace_noise_is_that_of_the_reference_to_the_last_bit(scale):
    sampler, words = pair(2)
    expected = [reference.rounded_laplace(words, scale) for _ in range(300)]
    assert sampler.laplace(scale, (300,)).tolist() == expected


@SCALES
@pytest.mark.parametrize("spread", [1.0, 0.3, 9.0])
def test_choices_are_those_of_the_reference(scale, spread):
    """With distances of a few whole numbers, and of any number of halvings up to the most."""
    sampler, words = pair(3)
    utilities = [math.floor(u * max(1.0, spread * scale)) for u in (0, 3, -2, 3, 1, -9, 2)]
    expected = [reference.choice(words, utilities, scale) for _ in range(100)]
    assert [sampler.choice(np.array(utilities), scale) for _ in range(100)] == expected


@SCALES
@pytest.mark.parametrize("spread", [1.0, 0.3, 9.0])
def test_a_choice_of_runs_is_that_of_their_candidates(scale, spread):
    """The same candidate from the same words as if each of a run stood by itself."""
    bits = Bits(4)
    words = reference.chacha20([int(word) for word in bits.state[4:12]])
    utilities = [math.floor(u * max(1.0, spread * scale)) for u in (0, 3, -2, 3, 1, -9, 2)]
    lengths = [1, 4, 30, 1, 2, 200, 1]
    every = [(run, place) for run, length in enumerate(lengths) for place in range(length)]
    spelled_out = [utilities[run] for run, _ in every]
    given = np.array(utilities), np.array(lengths)
    for _ in range(60):
        found = exponential_choice_of_runs(bits.state, *dyadic(scale), *given)
        assert found == every[reference.choice(words, spelled_out, scale)]


@SCALES
def test_permute_and_flip_is_that_of_the_reference(scale):
    sampler, words = pair(5)
    utilities = np.array([[0, 3, -2, 3, 1], [5, 1, 0, 4, 4]] * 50)
    expected = [reference.permute_and_flip(words, row, scale) for row in utilities.tolist()]
    assert sampler.permute_and_flip(utilities, scale).tolist() == expected


@pytest.mark.parametrize("size", [0, 1, 2, 3, 50])
def test_orders_are_those_of_the_reference(size):
    sampler, words = pair(6)
    expected = [reference.permutation(words, size) for _ in range(40)]
    assert [sampler.permutation(size).tolist() for _ in range(40)] == expected


def test_a_sample_holds_the_places_whose_word_is_below_the_rate():
    sampler, words = ExactSampler(Bits(seed=5)), Bits(seed=5).words(4000)
    found = sampler.sample(4000, 0.3)
    assert found.tolist() == [int(word) < int(0.3 * 2.0**64) for word in words]
    assert 1100 < found.sum() < 1300


def test_a_sample_at_rate_1_is_everything_and_draws_nothing():
    sampler = ExactSampler(Bits(seed=5))
    assert sampler.sample(7, 1.0).all()
    assert not sampler.has_drawn


def test_all_orders_of_four_are_drawn_equally_often():
    sampler = ExactSampler(Bits(7))
    drawn = np.array([sampler.permutation(4) for _ in range(24_000)])
    counts = np.unique(drawn @ [64, 16, 4, 1], return_counts=True)[1]
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("scale", [0.25, 0.8, 2.0, 9.5])
def test_gaussian_noise_has_the_probabilities_of_a_rounded_normal_number(scale):
    most = math.ceil(4 * scale)
    edges = np.arange(-most, most + 2) - 0.5
    probabilities = np.diff(stats.norm.cdf(edges / scale))
    check(ExactSampler(Bits(4)).gaussian(scale, (10**6,)), most, probabilities)


def rounded(numbers, scale):
    return np.array([rounded_normal(number, *dyadic(scale)) for number in numbers])


def test_normal_numbers_are_those_of_the_reference_to_the_last_bit():
    sampler, words = pair(9)
    numbers = sampler.normals((100, 3))
    assert numbers.shape == (100, 3, 10)
    assert numbers.dtype == np.uint64
    later = reference.chacha20([int(word) for word in Bits(9).later[4:12]], nonce=1)
    expected = reference.normals(words, later, borders(), 300)
    assert numbers.reshape(-1, 10).tolist() == list(map(list, expected))
    assert sampler.gaussian(3.0, (1,)) == reference.rounded_gaussian(words, 3.0, borders())


def test_normal_numbers_drawn_in_parts_are_those_drawn_at_once():
    """So that a fit can draw as many as it needs next, with the bits of a fit that draws all."""
    whole, parts = ExactSampler(Bits(9)), ExactSampler(Bits(9))
    numbers = np.concatenate([parts.normals((size, 3)) for size in (1, 7, 92)])
    np.testing.assert_array_equal(numbers, whole.normals((100, 3)))
    assert whole.gaussian(1e9, (1,)) == parts.gaussian(1e9, (1,))
    assert np.unique(numbers[..., 2:]).size == 100 * 3 * 8


@pytest.mark.parametrize("seed", [1, None])
def test_the_later_words_are_of_a_stream_of_their_own(seed):
    """Of the same key, with another nonce: no word of it is a word of the stream of the first."""
    bits = Bits(seed)
    np.testing.assert_array_equal(bits.state[4:12], bits.later[4:12])
    assert bits.later[14:16].tolist() == [1, 0]
    before = bits.later[:16].copy()
    bits.words(100)
    np.testing.assert_array_equal(bits.later[:16], before)
    later = ExactSampler(bits).normals((300,))[:, 4:]
    bits.renew()
    assert (bits.later[4:12] != before[4:12]).any()
    np.testing.assert_array_equal(bits.state[4:12], bits.later[4:12])
    assert not np.intersect1d(later, ExactSampler(bits).normals((300,))[:, 4:]).size


@pytest.mark.parametrize("seen", [1, 2, 3, 8])
def test_words_that_a_comparison_has_seen_are_kept(seen, monkeypatch):
    """The kernel in plain Python, with numbers of which so many words are drawn before."""
    drawn = list(range(100, 100 + seen))

    def half_normal(state, pool):
        pool[0, :seen], pool[0, -1] = drawn, seen
        return 5

    monkeypatch.setattr(exact_noise, "_half_normal", half_normal)
    rest = iter(range(1, 1000))
    for module in (exact_noise, lazy):
        monkeypatch.setattr(module, "next_word", lambda _: np.uint64(next(rest)))
    monkeypatch.setattr(exact_noise, "word_of", lazy.word_of.py_func)
    out = np.zeros((2, 10), np.uint64)
    exact_noise.normal_words.py_func(None, None, out)
    assert out[:, 2 : 2 + seen].tolist() == [drawn, drawn]
    fresh = out[:, 2 + seen :].ravel().tolist()
    assert len(set(fresh)) == 2 * (8 - seen)
    assert max(fresh, default=0) < 100


@SCALES
def test_a_scaled_normal_number_is_that_of_fractions(scale):
    numbers = ExactSampler(Bits(10)).normals((1000,))
    expected = [reference.nearest(scale, tuple(map(int, number))) for number in numbers]
    assert rounded(numbers, scale).tolist() == expected


@SCALES
def test_a_normal_number_at_a_border_is_rounded_as_far_as_its_words_say(scale):
    """The last number below m + 1/2, the first not below, and those next to them: 512 bits each."""
    near = []
    for whole in {0, 1, 2, math.floor(3 * scale), math.floor(20 * scale)}:
        border = (whole + Fraction(1, 2)) / Fraction(scale)
        place = math.ceil(border * 2**512)
        near += [reference.number_at(number) for number in range(place - 2, place + 3)]
    kept = [number for number in near if number[0] <= _LARGEST]
    expected = [reference.nearest(scale, number) for number in kept]
    found = rounded(np.array(kept, np.uint64).reshape(-1, 10), scale).tolist()
    assert found == expected
    assert scale < 0.02 or len(set(found)) > 1


def test_each_of_the_512_bits_decides():
    """s (k + x) = 5/2 at x = 2/3 and k = 1: every word of x is that of the border but one."""
    border = math.ceil(Fraction(5, 3) * 2**512)
    k, sign, *words = reference.number_at(border)
    assert rounded_normal(np.array([k, sign, *words], np.uint64), *dyadic(1.5)) == 3
    for i in range(8):
        lower = [*words[:i], words[i] - 1, *words[i + 1 :]]
        assert rounded_normal(np.array([k, sign, *lower], np.uint64), *dyadic(1.5)) == 2


def test_normal_numbers_of_zeros_are_no_noise():
    none = np.zeros(10, np.uint64)
    assert [rounded_normal(none, *dyadic(scale)) for scale in (2.0**-10, 1.0, 2.0**52)] == [0] * 3


@pytest.mark.parametrize("scale", [0.25, 2.0, 9.5])
def test_scaled_normal_numbers_have_the_probabilities_of_a_rounded_normal_number(scale):
    most = math.ceil(4 * scale)
    edges = np.arange(-most, most + 2) - 0.5
    numbers = ExactSampler(Bits(11)).normals((200_000,))
    check(rounded(numbers, scale), most, np.diff(stats.norm.cdf(edges / scale)))


@pytest.mark.parametrize("scale", [0.25, 0.8, 2.0, 9.5])
def test_laplace_noise_has_the_probabilities_of_a_rounded_laplace_number(scale):
    most = math.ceil(8 * scale)
    edges = np.arange(-most, most + 2) - 0.5
    probabilities = np.diff(stats.laplace.cdf(edges / scale))
    check(ExactSampler(Bits(5)).laplace(scale, (10**6,)), most, probabilities)


def check(draws, most, probabilities):
    """Compare counts of -most .. most with their probabilities; rare ones count as one."""
    counts = np.bincount(np.clip(draws, -most - 1, most + 1) + most + 1, minlength=2 * most + 3)
    expected = np.append(probabilities, 1 - probabilities.sum()) * draws.size
    found = np.append(counts[1:-1], counts[0] + counts[-1])
    common = expected >= 10
    expected = np.append(expected[common], max(expected[~common].sum(), 1e-9))
    found = np.append(found[common], found[~common].sum())
    kept = expected > 1
    assert found[~kept].sum() <= 3
    assert (
        stats.chisquare(
            found[kept], expected[kept] * found[kept].sum() / expected[kept].sum()
        ).pvalue
        > ALPHA
    )


@pytest.mark.parametrize("scale", [0.5, 3.0, 1e5])
def test_choices_have_the_probabilities_of_the_exponential_mechanism(scale):
    sampler = ExactSampler(Bits(6))
    utilities = (np.array([0, 1, 2, 2, 5]) * max(scale, 1) / 3).astype(np.int64)
    counts = np.bincount([sampler.choice(utilities, scale) for _ in range(50_000)], minlength=5)
    weights = np.exp((utilities - utilities.max()) / scale)
    assert stats.chisquare(counts, weights / weights.sum() * 50_000).pvalue > ALPHA


def test_choices_among_many_take_few_draws_however_far_ahead_one_is():
    """Uniform proposals would take 5,000 trials; each takes at least two words of the stream."""
    utilities = np.full(5000, -(10**9))
    utilities[77] = 0
    bits = Bits(9)
    sampler = ExactSampler(bits)
    before = int(bits.state[12])
    assert {sampler.choice(utilities, 1e6) for _ in range(100)} == {77}
    assert int(bits.state[12]) - before < 100


def test_choices_among_many_have_the_right_probabilities():
    sampler = ExactSampler(Bits(10))
    utilities = -np.arange(3000) * 10
    draws = np.array([sampler.choice(utilities, 1000.0) for _ in range(20_000)])
    weights = np.exp(utilities / 1000.0)
    cells = np.minimum(np.arange(3000) // 20, 40)
    expected = np.bincount(cells, weights=weights / weights.sum()) * draws.size
    assert stats.chisquare(np.bincount(cells[draws], minlength=41), expected).pvalue > ALPHA


def test_the_borders_of_whole_parts_are_off_by_less_than_the_511th_bit():
    """With all whole parts that have a probability, and in more digits than the kernels take."""
    with localcontext() as context:
        context.prec = 250
        weights = [(Decimal(-k * k) / 2).exp() for k in range(41)]
        exact = [sum(weights[: k + 1]) / sum(weights) for k in range(_LARGEST)]
        stored = [sum(Decimal(int(word)) / 2 ** (64 * (i + 1)) for i, word in enumerate(border))
                  for border in _CUMULATIVE]  # fmt: skip
        assert len(stored) == len(exact)
        assert max(abs(a - b) for a, b in zip(stored, exact, strict=True)) < Decimal(2) ** -511
        assert sum(weights[_LARGEST + 1 :]) < Decimal(2) ** -565


def test_multiples_of_ln_2_are_rounded_down_after_512_bits():
    for k, words in enumerate(_HALVED.tolist()):
        stored = sum(Fraction(word, 2 ** (64 * i)) for i, word in enumerate(words))
        assert 0 <= k * reference.LOG_2 - stored < Fraction(1, 2**512)


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_multiples_of_ln_2_are_added_to_the_last_of_512_bits(word, monkeypatch):
    monkeypatch.setattr(exact_noise, "word_of", lambda *_: None)
    part = sum(Fraction(word, 2 ** (64 * i)) for i in range(1, 9))
    for k in (1, 7, 32):
        pool = np.full((5, 9), word, np.uint64)
        with np.errstate(over="ignore"):
            whole = exact_noise._plus_halvings.py_func(None, pool, k)
        numbers = [int(whole), *pool[0, :8].tolist()], _HALVED[k].tolist()
        found, added = (sum(Fraction(n, 2 ** (64 * i)) for i, n in enumerate(x)) for x in numbers)
        assert found == part + added


def test_multiples_of_ln_2_are_added_without_an_overflow_in_a_word():
    assert (_HALVED[:, 1:] < 2**64 - 1).all()
    assert float(_LOG_2) / 2**64 == pytest.approx(math.log(2), rel=1e-15)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [40.0, 3000.0])
def test_opendp_draws_the_same(mechanism, scale, request):
    """Theirs are discrete, not rounded; at these scales that differs by less than 1e-4."""
    theirs = opendp_noise(mechanism, scale, 40_000)
    ours = getattr(ExactSampler(Bits(7)), mechanism)(scale, (10**6,))
    edges = np.unique(np.quantile(ours, np.linspace(0, 1, 41)[1:-1]))
    table = [np.bincount(np.searchsorted(edges, draws), minlength=40) for draws in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > ALPHA


def opendp_noise(mechanism, scale, size):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int))
    if mechanism == "gaussian":
        measurement = dp.m.make_gaussian(space, dp.l2_distance(T=float), scale=scale)
    else:
        measurement = dp.m.make_laplace(space, dp.l1_distance(T=int), scale=scale)
    return np.array(measurement([0] * size))


def test_a_sampler_with_a_wrong_scale_does_not_pass():
    """The comparison with exact probabilities has power: 1 % too little noise is seen."""
    most = 40
    probabilities = np.diff(stats.norm.cdf((np.arange(-most, most + 2) - 0.5) / 10.0))
    with pytest.raises(AssertionError):
        check(ExactSampler(Bits(8)).gaussian(9.9, (10**6,)), most, probabilities)


@pytest.mark.parametrize("scale", [0.0, 2.0**-11, 2.0**53, math.inf, math.nan, -1.0])
def test_a_scale_that_no_grid_suits_is_refused(scale):
    sampler = ExactSampler(Bits(1))
    for draw in (sampler.gaussian, sampler.laplace):
        with pytest.raises(ValueError, match="choose a grid"):
            draw(scale, (1,))
