"""Noise: its size is what the ledger says, whatever was asked for."""

import numpy as np
import pytest
from scipy import stats

from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import ZERO_OUT, Sensitivity


def draw(seed=0, size=20_000, noise_multiplier=5.0, sensitivity=0.3):
    ledger = Ledger(1.0, 1e-6, ZERO_OUT)
    noise = NoiseSource(ledger, seed).gaussian(
        (size,), releases="a sum", noise_multiplier=noise_multiplier,
        sensitivity=Sensitivity(sensitivity, 2 * sensitivity),
        uses=3, budget=(1.0, 1e-6),
    )  # fmt: skip
    return noise, ledger


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
    assert ledger.unpaid


def test_no_seed_draws_afresh_and_leaves_nothing_unpaid():
    first, ledger = draw(seed=None)
    second, _ = draw(seed=None)
    assert not np.array_equal(first, second)
    assert ledger.unpaid == []


def test_public_choices_do_not_come_from_the_generator_of_the_noise():
    released = NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), None)
    before = released.generator.bit_generator.state
    released.public_generator.integers(0, 31, 1000)
    assert released.generator.bit_generator.state == before
    repeated = NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), 0)
    assert repeated.public_generator is repeated.generator


@pytest.mark.parametrize(
    ("noise_multiplier", "sensitivity"),
    [(0, 1), (-1, 1), (1, 0), (1, -1), (np.inf, 1), (np.nan, 1)],
)
def test_missing_noise_is_refused(noise_multiplier, sensitivity):
    with pytest.raises(ValueError, match="positive, finite multiplier and sensitivity"):
        draw(noise_multiplier=noise_multiplier, sensitivity=sensitivity)


def source():
    ledger = Ledger(1.0, 0.0, ZERO_OUT)
    return NoiseSource(ledger, 0), ledger


def test_laplace_noise_spends_its_epsilon():
    noise_source, ledger = source()
    noise = noise_source.laplace((20_000,), releases="a sum", epsilon=0.2, sensitivity=3.0, uses=4)
    assert stats.kstest(noise / 15.0, "laplace").pvalue > 1e-6
    assert ledger.entries[0].scale == pytest.approx(15.0)
    assert ledger.spent_epsilon() == pytest.approx(0.8)


def test_exponential_choices_have_the_exact_probabilities():
    noise_source, ledger = source()
    utilities = np.array([0.0, 1.0, 2.5, -1.0])
    scale, noise = noise_source.exponential(
        (50_000, 4), releases="a choice", epsilon=1.5, sensitivity=1.0
    )
    assert scale == pytest.approx(2 / 1.5)
    chosen = np.bincount((utilities / scale + noise).argmax(axis=1), minlength=4)
    probabilities = np.exp(utilities / scale) / np.exp(utilities / scale).sum()
    assert stats.chisquare(chosen, 50_000 * probabilities).pvalue > 1e-6
    assert ledger.spent_epsilon() == pytest.approx(1.5)


def test_inversion_gives_the_same_probabilities_from_one_draw_a_choice():
    noise_source, ledger = source()
    utilities = np.array([0.0, 1.0, 2.5, -1.0])
    scale, noise = noise_source.exponential_by_inversion(
        (50_000,), releases="a choice", epsilon=1.5, sensitivity=1.0, uses=2
    )
    running = np.cumsum(np.exp(utilities / scale))
    chosen = np.bincount(np.searchsorted(running, noise * running[-1], side="right"), minlength=4)
    probabilities = np.exp(utilities / scale) / running[-1]
    assert stats.chisquare(chosen, 50_000 * probabilities).pvalue > 1e-6
    assert ledger.entries[0].scale == pytest.approx(2 / 1.5)
    assert ledger.spent_epsilon() == pytest.approx(3.0)


@pytest.mark.parametrize("kind", ["laplace", "exponential"])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0, 1), (-1, 1), (1, 0), (np.inf, 1)])
def test_pure_mechanisms_refuse_a_budget_or_sensitivity_of_nothing(kind, epsilon, sensitivity):
    noise_source, _ = source()
    with pytest.raises(ValueError, match="positive, finite"):
        getattr(noise_source, kind)((1,), releases="x", epsilon=epsilon, sensitivity=sensitivity)


def test_wishart_draws_are_cited_and_claim_what_their_source_claims():
    noise, ledger = source()
    draw = noise.wishart(4, releases="moments", scale=0.5, sensitivity=2.0, budget=(0.7, 0.0))
    (entry,) = ledger.entries
    assert (entry.mechanism, entry.scale, entry.sensitivity) == ("cited", 0.5, 2.0)
    assert ledger.spent_epsilon() == pytest.approx(0.7)
    np.testing.assert_array_equal(draw, draw.T)
    assert np.linalg.eigvalsh(draw).min() > 0


@pytest.mark.parametrize(("scale", "sensitivity"), [(0, 1), (-1, 1), (1, 0), (np.inf, 1)])
def test_a_wishart_draw_without_noise_is_refused(scale, sensitivity):
    noise, _ = source()
    with pytest.raises(ValueError, match="positive, finite multiplier and sensitivity"):
        noise.wishart(2, releases="", scale=scale, sensitivity=sensitivity, budget=(1.0, 0.0))
