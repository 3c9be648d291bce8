"""Three accountants that share no formula agree as far as they must."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad
from scipy.stats import norm

from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import REPLACE_ONE, ZERO_OUT
from dprepro.privacy.subsampling import moments_epsilon, pld_epsilon, sampled_sigma

MNIST = (500 / 60_000, 2400, 1e-5)


def of_steps(sampling, uses, sigma, delta):
    """Return the ledger of Gaussian releases on samples."""
    entry = LedgerEntry(
        "gaussian", "sums", 0.5, "L2", 0.5 * sigma, uses, (1.0, delta), sampling=sampling
    )
    return Ledger(1.0, delta, ZERO_OUT, [entry])


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


def test_the_printed_settings_prove_more_under_replace_one_and_without_samples():
    rate, steps, delta = MNIST
    assert of_steps(rate, steps, 1.3, delta).spent_epsilon(REPLACE_ONE) == pytest.approx(
        2.65, abs=0.01
    )
    # Shuffled: each row is used once in each of 20 epochs, for certain.
    assert of_steps(1.0, 20, 1.3, delta).spent_epsilon() == pytest.approx(19.9, abs=0.05)


def test_the_printed_settings_of_the_hospital_records():
    # Figure 6: sigma = 1.25, batches of 256, 20 epochs and 100,140 records are said to give 1.5.
    rows = 100_140
    spent = moments_epsilon(1.25, 256 / rows, 20 * math.ceil(rows / 256), 2e-5)
    assert spent == pytest.approx(1.09, abs=0.01)


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.083, 2.0), (2.99, 0.5)])
def test_the_noise_that_the_tight_accountant_asks_for_on_mnist(sigma, epsilon):
    assert pld_epsilon(sigma, *MNIST) == pytest.approx(epsilon, rel=2e-3)


def simulated_delta(epsilon, sigma, rate, steps, exchanged, draws=200_000):
    """Many steps, without a convolution: losses are drawn where the row is in, and where it is not.

    The larger of the two means of max(0, 1 - exp(epsilon - loss)).
    """
    rng, found = np.random.default_rng(0), []

    def log_density(z, to):
        # Of the sum, over that of noise alone, where a row that moves it to `to` may be sampled.
        return np.log1p(rate * np.expm1((2 * z * to - to**2) / (2 * sigma**2)))

    other = -1.0 if exchanged else 0.0
    for first, second in ((1.0, other), (other, 1.0)):
        loss = np.zeros(draws)
        for _ in range(steps):
            z = rng.normal(0, sigma, draws) + first * (rng.random(draws) < rate)
            loss += log_density(z, first) - log_density(z, second)
        found.append(np.mean(np.maximum(0, -np.expm1(epsilon - loss))))
    return max(found)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(1.0, 0.1, 40), (2.0, 0.3, 25)])
@pytest.mark.parametrize("exchanged", [False, True])
def test_the_ledger_of_many_steps_equals_a_simulation(sigma, rate, steps, exchanged):
    found = of_steps(rate, steps, sigma, 1e-2)
    epsilon = found.spent_epsilon(REPLACE_ONE) if exchanged else found.spent_epsilon()
    assert simulated_delta(epsilon, sigma, rate, steps, exchanged) == pytest.approx(1e-2, rel=0.06)


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


def test_the_search_and_the_ledger_compute_no_loss_twice(monkeypatch):
    made, make = [], pld.from_gaussian_mechanism

    def note(multiplier, **given):
        made.append((multiplier, *given.values()))
        return make(multiplier, **given)

    monkeypatch.setattr(pld, "from_gaussian_mechanism", note)
    sigma = sampled_sigma("pld", 0.5, 1e-5, rate=0.02, steps=50)
    assert of_steps(0.02, 50, sigma, 1e-5).spent_epsilon() == pytest.approx(0.5, rel=1e-3)
    assert len(made) == len(set(made)) > 3


def ledger(sampling, uses, sigma=1.1):
    return of_steps(sampling, uses, sigma, 1e-5)


def test_the_ledger_composes_sampled_releases():
    assert ledger(0.02, 300).spent_epsilon() == pytest.approx(pld_epsilon(1.1, 0.02, 300, 1e-5))
    assert ledger(0.02, 300).spent_epsilon() < 0.2 * ledger(1.0, 300).spent_epsilon()
    assert ledger(0.02, 300).summary()["releases"][0]["sampling"] == 0.02
    assert "sampling" not in ledger(1.0, 300).summary()["releases"][0]


def test_sampling_almost_always_approaches_not_sampling():
    assert ledger(1 - 1e-9, 20).spent_epsilon() == pytest.approx(
        ledger(1.0, 20).spent_epsilon(), abs=5e-3
    )


def test_replace_one_spends_more_but_less_than_two_rows_at_full_strength():
    entry = ledger(0.02, 300)
    twice = ledger(0.02, 300, sigma=0.55).spent_epsilon()
    assert entry.spent_epsilon() < entry.spent_epsilon(REPLACE_ONE) < twice


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
