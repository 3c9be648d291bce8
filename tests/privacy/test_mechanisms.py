"""Noise: its size is what the ledger says, whatever was asked for."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dprepro.privacy.ledger import Ledger
from dprepro.privacy.ledger_entry import LedgerEntry
from dprepro.privacy.mechanisms import NoiseSource, in_units
from dprepro.privacy.sensitivity import REPLACE_ONE, ZERO_OUT, Sensitivity

UNIT = 2.0**-20


def source(seed=0, delta=0.0):
    ledger = Ledger(1.0, delta, ZERO_OUT)
    return NoiseSource(ledger, seed), ledger


def draw(seed=0, size=20_000, noise_multiplier=5.0, sensitivity=0.3):
    noise_source, ledger = source(seed, 1e-6)
    scale = noise_source.enter_gaussian(
        releases="a sum", noise_multiplier=noise_multiplier,
        sensitivity=Sensitivity(sensitivity, 2 * sensitivity),
        uses=3, budget=(1.0, 1e-6),
    )  # fmt: skip
    return noise_source.add_gaussian(np.zeros(size, np.int64), scale, UNIT), ledger


def test_noise_has_the_scale_that_the_ledger_states():
    noise, ledger = draw()
    (entry,) = ledger.entries
    assert entry.scale == pytest.approx(1.5)
    assert entry.noise_multiplier == pytest.approx(5.0)
    assert entry.uses == 3
    # A chi-square test of the variance and one of the shape, at levels no honest source fails.
    chi_square = (noise.size - 1) * noise.var(ddof=1) / entry.scale**2
    assert 1e-6 < stats.chi2.cdf(chi_square, noise.size - 1) < 1 - 1e-6
    assert stats.kstest(noise / entry.scale, "norm").pvalue > 1e-6


def test_the_same_seed_repeats_and_is_noted():
    first, ledger = draw(seed=7)
    second, _ = draw(seed=7)
    np.testing.assert_array_equal(first, second)
    assert ledger.unaccounted


def test_no_seed_draws_afresh_and_leaves_nothing_unpaid():
    first, ledger = draw(seed=None)
    second, _ = draw(seed=None)
    assert not np.array_equal(first, second)
    assert ledger.unaccounted == []


def test_public_choices_do_not_come_from_the_generator_of_the_noise():
    released = NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), None)
    before = released.generator.bit_generator.state
    released.public_generator.integers(0, 31, 1000)
    assert released.generator.bit_generator.state == before
    repeated = NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), 0)
    assert repeated.public_generator is repeated.generator


def test_public_choices_are_repeated_by_their_own_number_where_no_seed_repeats_all():
    first, second, seeded = (NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), s) for s in (None, None, 0))
    for each in (first, second, seeded):
        each.choose_publicly_by(7)
    drawn = first.public_generator.integers(0, 2**60)
    assert drawn == second.public_generator.integers(0, 2**60)
    assert seeded.public_generator is seeded.generator


def test_a_ledger_gets_its_entry_before_the_first_draw_unless_others_draw():
    own, cited = (NoiseSource(Ledger(9.0, 1e-6, ZERO_OUT), 0) for _ in range(2))
    for each in (own, cited):
        each.enter_laplace(releases="a sum", epsilon=0.2, sensitivity=3.0)
    assert not own.may_have_drawn
    cited.ledger.add(LedgerEntry("cited", "a model", 1.0, "L2", 0.0, 1, (1.0, 0.0)))
    assert cited.may_have_drawn


def test_what_is_not_said_is_one_use_of_whole_numbers():
    noise_source, ledger = source()
    settings = {"releases": "x", "epsilon": 1e5, "sensitivity": 1.0}
    for enter in (
        noise_source.enter_laplace, noise_source.enter_exponential,
        noise_source.enter_permute_and_flip,
    ):  # fmt: skip
        scale = enter(**settings)
    assert [(entry.uses, entry.budget.epsilon) for entry in ledger.entries] == 3 * [(1, 1e5)]
    for add in (noise_source.add_gaussian, noise_source.add_laplace):
        assert add(np.array([7]), scale) == [7.0]
    # One of three, likelier by e^2 than the others.
    many = np.tile([1, 1, 2], (2000, 1))
    one = np.mean([noise_source.choose(row, 0.5) == 2 for row in many])
    other = np.mean(noise_source.permute_and_flip(many, 0.5) == 2)
    assert one == pytest.approx(np.exp(2) / (2 + np.exp(2)), abs=0.05)
    assert other == pytest.approx(0.871, abs=0.03)


@pytest.mark.parametrize(
    ("noise_multiplier", "sensitivity"),
    [(0, 1), (-1, 1), (1, 0), (1, -1), (-1, -0.5), (np.inf, 1), (np.nan, 1)],
)
def test_missing_noise_is_refused(noise_multiplier, sensitivity):
    with pytest.raises(ValueError, match="positive, finite multiplier and sensitivity"):
        draw(noise_multiplier=noise_multiplier, sensitivity=sensitivity)


def test_laplace_noise_spends_its_epsilon():
    noise_source, ledger = source()
    scale = noise_source.enter_laplace(releases="a sum", epsilon=0.2, sensitivity=3.0, uses=4)
    noise = noise_source.add_laplace(np.zeros(20_000, np.int64), scale, UNIT)
    assert stats.kstest(noise / 15.0, "laplace").pvalue > 1e-6
    assert ledger.entries[0].scale == scale == pytest.approx(15.0)
    assert ledger.spent_epsilon() == pytest.approx(0.8)


UTILITIES = np.array([0, 2, 5, -2])
"""In halves."""


def exponential_probabilities(scale):
    weights = np.exp(UTILITIES / 2 / scale)
    return weights / weights.sum()


def flipped_probabilities(scale):
    """Return P(candidate), going through all orders."""
    passes = np.exp((UTILITIES - UTILITIES.max()) / 2 / scale)
    found = np.zeros(UTILITIES.size)
    for order in itertools.permutations(range(UTILITIES.size)):
        reached = 1 / math.factorial(UTILITIES.size)
        for i in order:
            found[i] += reached * passes[i]
            reached *= 1 - passes[i]
    return found


def choose(noise_source, scale, size):
    return [noise_source.choose(UTILITIES, scale, 0.5) for _ in range(size)]


def flip(noise_source, scale, size):
    return noise_source.permute_and_flip(np.tile(UTILITIES, (size, 1)), scale, 0.5)


@pytest.mark.parametrize(
    ("name", "draws", "stated"),
    [
        ("exponential", choose, exponential_probabilities),
        ("permute_and_flip", flip, flipped_probabilities),
    ],
)
def test_choices_have_the_exact_probabilities_and_spend_their_epsilon(name, draws, stated):
    noise_source, ledger = source()
    enter = getattr(noise_source, f"enter_{name}")
    scale = enter(releases="a choice", epsilon=1.5, sensitivity=1.0, uses=2)
    assert scale == pytest.approx(2 / 1.5)
    chosen = np.bincount(draws(noise_source, scale, 20_000), minlength=4)
    assert stats.chisquare(chosen, 20_000 * stated(scale)).pvalue > 1e-6
    (entry,) = ledger.entries
    assert entry.mechanism == name.replace("_", "-")
    assert ledger.spent_epsilon() == pytest.approx(3.0)
    assert ledger.spent_epsilon(REPLACE_ONE) == pytest.approx(6.0)


@pytest.mark.parametrize("probabilities", [exponential_probabilities, flipped_probabilities])
def test_no_move_of_the_utilities_that_is_stated_makes_a_choice_likelier_than_e_to_epsilon(
    probabilities, monkeypatch
):
    """Every candidate moves by at most 1, up or down, or by 0 or 2: half of that is stated."""
    epsilon, before = 1.5, probabilities(2 / 1.5)
    moves = [*itertools.product((-1, 0, 1), repeat=4), *itertools.product((0, 2), repeat=4)]
    largest = 0.0
    start = UTILITIES.copy()
    for move in moves:
        monkeypatch.setitem(globals(), "UTILITIES", start + 2 * np.array(move))
        ratio = probabilities(2 / 1.5) / before
        largest = max(largest, np.abs(np.log(ratio)).max())
    assert 0.5 * epsilon < largest <= epsilon + 1e-12


def test_an_answer_keeps_its_value_and_its_grid():
    noise_source, _ = source()
    exact = np.array([[5, -7], [2**40, 0]])
    for unit in (2.0**-10, np.array([0.25, 2.0**-5])):
        for add in (noise_source.add_gaussian, noise_source.add_laplace):
            noisy = add(exact, 3.0, unit)
            assert noisy.shape == exact.shape
            assert np.abs(noisy - exact * unit).max() < 60
            np.testing.assert_array_equal(noisy / unit, np.round(noisy / unit))


def test_each_number_gets_noise_in_its_own_unit():
    noise_source, _ = source()
    units = np.array([1.0, 2.0**-30])
    noise = noise_source.add_gaussian(np.zeros((20_000, 2), np.int64), 4.0, units)
    # Rounding to whole ones adds a variance of 1/12; the finer grid adds none.
    expected = np.sqrt(16 + np.array([1 / 12, 0.0]))
    np.testing.assert_allclose(noise.std(axis=0), expected, rtol=0.03)
    assert np.unique(noise[:, 0]).size < 50 < 19_000 < np.unique(noise[:, 1]).size


@pytest.mark.parametrize("unit", [0.5, np.array([[0.5], [0.5], [2.0]])], ids=["one", "by row"])
def test_every_number_of_every_row_of_an_answer_has_noise_of_its_own(unit):
    """Noise that two rows share would show what they differ by."""
    exact = np.zeros((3, 40), np.int64)
    noise = NoiseSource(Ledger(1.0, 1e-6, "add/remove-one"), 3).add_gaussian(exact, 1e6, unit)
    assert noise.shape == exact.shape
    assert np.unique(noise).size > 115
    assert np.abs(np.corrcoef(noise) - np.eye(3)).max() < 0.6


@pytest.mark.parametrize("dtype", [np.float64, np.int32, bool])
def test_answers_that_are_not_whole_numbers_are_refused(dtype):
    noise_source, _ = source()
    exact = np.zeros((2, 2), dtype)
    for draw_noise in (
        noise_source.add_gaussian, noise_source.add_laplace, noise_source.permute_and_flip,
    ):  # fmt: skip
        with pytest.raises(TypeError, match="round the rows' parts to a public unit"):
            draw_noise(exact, 1.0)
    with pytest.raises(TypeError, match="round the rows' parts to a public unit"):
        noise_source.choose(exact[0], 1.0)


@pytest.mark.parametrize("unit", [0.0, -1.0, float("nan")])
def test_a_unit_that_is_not_positive_is_refused(unit):
    """Its noise would be the smallest that can be drawn."""
    with pytest.raises(ValueError, match="positive unit"):
        in_units(1.0, unit)


def test_a_scale_in_units_is_never_rounded_down():
    for scale, unit in ((0.1, 0.3), (1 / 3, 1 / 7), (5e-324, 1.0), (1.5, 2.0**-20)):
        assert Fraction(in_units(scale, unit)) >= Fraction(scale) / Fraction(unit)
        assert in_units(scale, unit) <= max(scale / unit * (1 + 2.0**-49), 2.0**-10)


@pytest.mark.parametrize("kind", ["laplace", "exponential", "permute_and_flip"])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0, 1), (-1, 1), (1, 0), (np.inf, 1)])
def test_pure_mechanisms_refuse_a_budget_or_sensitivity_of_nothing(kind, epsilon, sensitivity):
    noise_source, _ = source()
    with pytest.raises(ValueError, match="positive, finite"):
        getattr(noise_source, f"enter_{kind}")(
            releases="x", epsilon=epsilon, sensitivity=sensitivity
        )


def test_wishart_draws_are_cited_and_claim_what_their_source_claims():
    noise, ledger = source()
    draw = noise.wishart(4, releases="moments", scale=0.5, sensitivity=2.0, budget=(0.7, 0.0))
    (entry,) = ledger.entries
    assert (entry.mechanism, entry.scale, entry.sensitivity) == ("cited", 0.5, 2.0)
    assert ledger.spent_epsilon() == pytest.approx(0.7)
    assert ledger.floating_point == ["moments: they and the Wishart draw are float64"]
    np.testing.assert_array_equal(draw, draw.T)
    assert np.linalg.eigvalsh(draw).min() > 0
    settings = {"releases": "moments", "scale": 0.5, "sensitivity": 2.0, "budget": (0.7, 0.0)}
    mean = np.mean([noise.wishart(2, **settings) for _ in range(2000)], axis=0)
    np.testing.assert_allclose(mean, 3 * 0.25 * np.eye(2), atol=0.06)


@pytest.mark.parametrize(("scale", "sensitivity"), [(0, 1), (-1, 1), (1, 0), (np.inf, 1)])
def test_a_wishart_draw_without_noise_is_refused(scale, sensitivity):
    noise, _ = source()
    with pytest.raises(ValueError, match="positive, finite multiplier and sensitivity"):
        noise.wishart(2, releases="", scale=scale, sensitivity=sensitivity, budget=(1.0, 0.0))


def test_each_draw_for_samples_is_another_of_the_stated_scale_and_listed_as_floating_point():
    ledger = Ledger(1.0, 1e-6, ZERO_OUT)
    draws = NoiseSource(ledger, 0).sampled_gaussian(
        (50, 4), releases="sums", noise_multiplier=3.0, sensitivity=0.5, draws=8, uses=8,
        sampling=0.1, budget=ledger.budget,
    )  # fmt: skip
    found = np.array([*draws])
    assert np.unique(found).size > 0.99 * found.size
    assert found.std() == pytest.approx(1.5, rel=0.1)
    assert ledger.entries[0].scale == 1.5
    assert ledger.floating_point == ["sums: the sums and their noise are float32"]
