"""Three accountants that share no formula agree as far as they must."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad
from scipy.stats import norm

from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.subsampling import moments_epsilon, pld_epsilon, sampled_sigma

MNIST = (500 / 60_000, 2400, 1e-5)


def exact_delta(epsilon, sigma, rate, removes):
    """One step, by quadrature of the hockey-stick divergence of the dominating pair."""

    def mixture(z):
        return (1 - rate) * norm.pdf(z, 0, sigma) + rate * norm.pdf(z, 1, sigma)

    def positive(z):
        first, second = mixture(z), norm.pdf(z, 0, sigma)
        if not removes:
            first, second = second, first
        return max(0.0, first - math.exp(epsilon) * second)

    return quad(positive, -15 * sigma, 15 * sigma, limit=2000, points=np.linspace(-3, 4, 15))[0]


@pytest.mark.parametrize(("sigma", "rate"), [(0.8, 0.2), (1.5, 0.05), (3.0, 0.7)])
@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_one_step_equals_quadrature(sigma, rate, epsilon):
    delta = max(exact_delta(epsilon, sigma, rate, way) for way in (True, False))
    assert pld_epsilon(sigma, rate, 1, delta) == pytest.approx(epsilon, abs=2e-3)


def test_the_printed_settings_of_mnist():
    # Section 4.1: sigma = 1.3 is said to give epsilon 2 by the moments accountant.
    assert moments_epsilon(1.3, *MNIST) == pytest.approx(1.93, abs=0.005)
    assert pld_epsilon(1.3, *MNIST) == pytest.approx(1.474, abs=0.005)


@pytest.mark.parametrize("sigma", [0.9, 1.3, 4.0])
def test_the_moments_accountant_lies_above_renyi_and_that_above_the_tight_one(sigma):
    rate, steps, delta = MNIST
    renyi = RdpAccountant()
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(sigma))
    renyi.compose(SelfComposedDpEvent(event, steps))
    assert (
        moments_epsilon(sigma, *MNIST) > renyi.get_epsilon(delta) > pld_epsilon(sigma, *MNIST) > 0
    )


def test_without_sampling_the_moments_are_those_of_a_gaussian():
    sigma, steps, delta = 20.0, 10, 1e-5
    # alpha = T lambda (lambda + 1) / (2 sigma^2), minimised over the lambdas tried.
    by_hand = min(
        (steps * m * (m + 1) / (2 * sigma**2) + math.log(1 / delta)) / m for m in range(1, 65)
    )
    assert moments_epsilon(sigma, 1.0, steps, delta) == pytest.approx(by_hand)


@pytest.mark.parametrize("accountant", ["moments", "pld"])
@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(0.5, 0.01, 400), (3.0, 0.3, 20)])
def test_the_noise_is_the_least_that_keeps_the_budget(accountant, epsilon, rate, steps):
    stated = {"moments": moments_epsilon, "pld": pld_epsilon}[accountant]
    sigma = sampled_sigma(accountant, epsilon, 1e-5, rate=rate, steps=steps)
    assert stated(sigma, rate, steps, 1e-5) <= epsilon < stated(sigma * 0.998, rate, steps, 1e-5)


def test_the_tight_accountant_needs_less_noise():
    sigmas = [sampled_sigma(a, 2.0, 1e-5, rate=0.01, steps=400) for a in ("pld", "moments")]
    assert sigmas[0] < 0.95 * sigmas[1]


def ledger(sampling, uses, sigma=1.1):
    entry = LedgerEntry(
        "gaussian", "sums", 0.5, "L2", 0.5 * sigma, uses, (1.0, 1e-5), sampling=sampling
    )
    return Ledger(1.0, 1e-5, ZERO_OUT, [entry])


def test_the_ledger_composes_sampled_releases():
    assert ledger(0.02, 300).verify() == pytest.approx(pld_epsilon(1.1, 0.02, 300, 1e-5))
    assert ledger(0.02, 300).verify() < 0.2 * ledger(1.0, 300).verify()
    assert ledger(0.02, 300).summary()["releases"][0]["sampling"] == 0.02
    assert "sampling" not in ledger(1.0, 300).summary()["releases"][0]


def test_sampling_almost_always_approaches_not_sampling():
    assert ledger(1 - 1e-9, 20).verify() == pytest.approx(ledger(1.0, 20).verify(), abs=5e-3)


def test_replace_one_spends_more_but_less_than_two_rows_at_full_strength():
    entry = ledger(0.02, 300)
    twice = ledger(0.02, 300, sigma=0.55).verify()
    assert entry.verify() < entry.verify_replace_one() < twice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("renyi", 1.0, 1e-5, 0.1, 10), "accountant must be one of 'pld', 'moments', got 'renyi'"),
        (("pld", 1.0, 1e-5, 1.5, 10), "rate must lie in"),
        (("pld", 0.0, 1e-5, 0.1, 10), "epsilon must be positive"),
        (("moments", 1e-4, 1e-5, 0.9, 10), "no noise multiplier up to 10000"),
    ],
)
def test_errors_say_what_was_given(arguments, message):
    accountant, epsilon, delta, rate, steps = arguments
    with pytest.raises(ValueError, match=message):
        sampled_sigma(accountant, epsilon, delta, rate=rate, steps=steps)
