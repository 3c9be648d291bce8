"""Gaussian DP conversions: identities, and Google's accountant as the independent judge."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dprepro.privacy.gdp import delta_of, epsilon_of, mu_of

epsilons = st.floats(0.01, 20)
deltas = st.floats(1e-12, 0.1)


@given(epsilons, deltas)
def test_epsilon_of_mu_of_epsilon_is_epsilon(epsilon, delta):
    assert epsilon_of(mu_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-6)


@given(epsilons, deltas)
def test_delta_at_mu_of_epsilon_delta_is_delta(epsilon, delta):
    assert delta_of(epsilon, mu_of(epsilon, delta)) == pytest.approx(delta, rel=1e-8)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0])
def test_delta_is_the_printed_formula(mu):
    for epsilon in (0.0, 0.1, 1.0, 4.0):
        printed = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(
            -epsilon / mu - mu / 2
        )
        assert delta_of(epsilon, mu) == pytest.approx(printed, abs=1e-14)


@pytest.mark.parametrize("mu", [0.11, 0.4, 1.38])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_epsilon_agrees_with_the_privacy_loss_accountant(mu, delta):
    accountant = pld.from_gaussian_mechanism(standard_deviation=1 / mu)
    assert epsilon_of(mu, delta) == pytest.approx(accountant.get_epsilon_for_delta(delta), abs=1e-5)


def test_no_signal_costs_nothing():
    assert delta_of(1.0, 0.0) == 0.0
    assert epsilon_of(0.0, 1e-6) == 0.0
    # With delta at its largest no epsilon is needed at all.
    assert epsilon_of(0.1, 0.5) == 0.0


def test_more_privacy_loss_with_larger_mu():
    values = [epsilon_of(mu, 1e-6) for mu in (0.1, 0.2, 0.4, 0.8, 1.6)]
    assert values == sorted(values)
    assert len(set(values)) == len(values)


def test_mu_has_36_binary_digits_and_is_rounded_down():
    for epsilon in (0.1, 0.5, 1.0, 4.0):
        mu = mu_of(epsilon, 1e-6)
        exponent = math.frexp(mu)[1] - 36
        assert math.ldexp(mu, -exponent).is_integer()
        assert delta_of(epsilon, mu) <= 1e-6 < delta_of(epsilon, mu + math.ldexp(1.5, exponent))


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_epsilon_must_be_positive_and_finite(epsilon):
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        mu_of(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1e-6, 2])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        mu_of(1.0, delta)


def test_budgets_without_a_scale_of_noise_are_refused_with_what_is_allowed():
    with pytest.raises(ValueError, match=r"epsilon 1e\+09 is too large .* at most 5e\+07"):
        mu_of(1e9, 1e-6)
    assert mu_of(5e7 * 0.99, 1e-6) < 1e4
    with pytest.raises(ValueError, match="are too small for a scale of noise"):
        mu_of(1e-30, 1e-300)
