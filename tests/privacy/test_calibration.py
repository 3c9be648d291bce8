"""No calibration spends more than its budget, by 1e-9 of epsilon, from 1e-8 to 50.

What is spent is worked out apart from the code, with 60 digits. It is an upper bound where any
Renyi order gives one: then it is enough to find a good order in floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dprepro.methods.logistic.curator import CURVATURE, ObjectivePerturbation
from dprepro.privacy import composition as rounds
from dprepro.privacy.budget import Division, PrivacyBudget, row_budget
from dprepro.privacy.composition import calibrate_two_phases, gdp_part, gdp_sigma
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.subsampling import LARGEST_ORDER, loss_grain, renyi_multiplier, sampled_sigma

mp.dps = 60
ALLOWED = 1 + mpf(10) ** -9


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda power: 10.0**power)


EPSILONS = powers(-8, math.log10(50))
DELTAS = powers(-11, -2)
RATES = powers(-3, 0)
STEPS = powers(0, 3).map(int)
ROUNDS = st.integers(1, 500)


def delta(epsilon: mpf, mu: float) -> mpf:
    """Return delta of mu-GDP at epsilon: Theorem 5 of Nori et al. 2021."""
    epsilon, mu = mpf(epsilon), mpf(mu)
    first, second = mp.ncdf(-epsilon / mu + mu / 2), mp.ncdf(-epsilon / mu - mu / 2)
    return first - mp.exp(epsilon) * second


def keeps(epsilon: float, mu: float, at: float) -> bool:
    return bool(delta(mpf(epsilon) * ALLOWED, mu) <= at)


def of_zcdp(rho: mpf, at: float) -> mpf:
    """Return an epsilon of rho-zCDP, by the best of many orders (Canonne et al. 2020)."""
    found, span = np.array([0.5 * math.log(math.log(1 / at) / rho)]), 9.0
    for _ in range(9):
        logs = found[0] + np.linspace(-span, span, 41)
        a = 1 + np.exp(logs)
        values = float(rho) * a - np.log(a * at) / (a - 1) + np.log1p(-1 / a)
        found, span = logs[[values.argmin()]], span / 10
    order = 1 + mp.exp(mpf(found[0]))
    return rho * order - mp.log(order * mpf(at)) / (order - 1) + mp.log1p(-1 / order)


def calibrated(search: Callable[[], float]) -> float:
    """Return what a search finds; a budget that it refuses is not tried."""
    try:
        return search()
    except ValueError:
        assume(False)
        raise


@settings(max_examples=100)
@given(epsilon=EPSILONS, at=DELTAS, share=st.floats(0.01, 1))
def test_mu_of_a_budget(epsilon: float, at: float, share: float) -> None:
    mu = calibrated(lambda: mu_of(epsilon, at))
    assert keeps(epsilon, mu, at)
    assert delta(epsilon, mu * (1 + 1e-6)) > at  # and next to nothing is left
    assert keeps(epsilon, math.sqrt(7) / gdp_sigma(7, epsilon, at), at)
    part, budget = gdp_part(PrivacyBudget(epsilon, at), share)
    assert budget.epsilon == 0 or keeps(budget.epsilon, part, at)
    other, _ = gdp_part(PrivacyBudget(epsilon, at), 1 - share) if share < 1 else (0.0, None)
    assert keeps(epsilon, math.hypot(part, other), at)


@settings(max_examples=100)
@given(mu=powers(-8, 1), at=DELTAS)
def test_epsilon_of_a_mu(mu: float, at: float) -> None:
    epsilon = epsilon_of(mu, at)
    assert keeps(epsilon, mu, at)
    assert epsilon < 1e-6 or delta(mpf(epsilon) / (1 + mpf(10) ** -5), mu) >= at


@settings(max_examples=60)
@given(epsilon=EPSILONS, at=DELTAS, rows=st.integers(1, 100))
def test_rows_of_a_unit(epsilon: float, at: float, rows: int) -> None:
    whole = PrivacyBudget(epsilon, at)
    mu = calibrated(lambda: mu_of(*row_budget(whole, rows, Division.GAUSSIAN)))
    assert keeps(epsilon, rows * mu, at)


@settings(max_examples=60)
@given(epsilon=EPSILONS, at=DELTAS, queries=ROUNDS, share=st.floats(0.05, 0.95))
@pytest.mark.parametrize("composition", ["gdp", "joint"])
def test_two_phases(
    composition: str, epsilon: float, at: float, queries: int, share: float
) -> None:
    numbers = {"binning_queries": 9, "boosting_queries": queries, "binning_share": share}
    try:
        noise = calibrate_two_phases(composition, epsilon, at, **numbers)  # type: ignore[arg-type]
    except ValueError:
        assume(False)
        raise
    first, second = 3 / noise.binning, math.sqrt(queries) / noise.boosting
    if composition == "joint":
        assert keeps(epsilon, math.hypot(first, second), at)
    else:
        assert keeps(epsilon * share, first, at / 2)
        assert keeps(epsilon * (1 - share), second, at / 2)


@settings(max_examples=60)
@given(epsilon=EPSILONS, at=DELTAS, times=ROUNDS)
def test_choices_and_rho(epsilon: float, at: float, times: int) -> None:
    assert of_zcdp(mpf(rounds.rho_of(epsilon, at)), at) <= epsilon * ALLOWED
    for composition in rounds.ROUND_COMPOSITIONS:
        each = mpf(rounds.choice_epsilon(composition, times, epsilon, at))
        spent = times * each
        if composition == "zcdp":
            spent = min(spent, of_zcdp(times * each**2 / 8, at))
        elif composition == "advanced":
            root = mp.sqrt(2 * times * mp.log(1 / mpf(at)))
            spent = min(spent, root * each + times * each * mp.expm1(each))
        assert spent <= epsilon * ALLOWED


@settings(max_examples=60)
@given(epsilon=EPSILONS, at=DELTAS, times=ROUNDS, splits=ROUNDS, share=st.floats(0.05, 0.95))
def test_trees(epsilon: float, at: float, times: int, splits: int, share: float) -> None:
    for composition in rounds.ROUND_COMPOSITIONS:
        split, label = map(
            mpf, rounds.tree_epsilons(composition, times, splits, share, epsilon, at)
        )
        tree = splits * split + label
        spent = times * tree
        if composition == "zcdp":
            rho = splits * split**2 / 8 + label**2 / 2
            spent = min(spent, of_zcdp(times * rho, at))
        elif composition == "advanced":
            root = mp.sqrt(2 * times * mp.log(1 / mpf(at)))
            spent = min(spent, root * tree + times * tree * mp.expm1(tree))
        assert spent <= epsilon * ALLOWED


@settings(max_examples=100)
@given(epsilon=EPSILONS, penalty=powers(-6, 6))
def test_the_objective(epsilon: float, penalty: float) -> None:
    made = ObjectivePerturbation(epsilon, penalty)
    curvature = mp.log1p(mpf(CURVATURE) / mpf(made.strength))
    assert 2 / mpf(made.scale) + 2 * curvature <= epsilon * ALLOWED


def log_moment(order: int, sigma: float, rate: float) -> mpf:
    """Return log E (mixture / normal)^order over the normal, by binomial expansion."""
    square, q, chance, total = mpf(sigma) ** 2, mpf(rate), mpf(1), mpf(0)
    for k in range(order + 1):
        total += chance * q**k * (1 - q) ** (order - k) * mp.exp(mpf(k * (k - 1)) / (2 * square))
        chance = chance * (order - k) / (k + 1)
    return mp.log(total)


def best_order(value: Callable[[int], float], orders: range) -> int:
    """Return an order near which a function that falls and then rises is least."""
    low, high = orders.start, orders.stop - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if value(middle + 1) < value(middle) else (low, middle)
    return low


@settings(max_examples=8, deadline=None)
@given(
    epsilon=st.one_of(powers(-8, -3), powers(-3, math.log10(50))),
    at=powers(-6, -1.5), rate=RATES, steps=STEPS,
)  # fmt: skip
def test_renyi_noise(epsilon: float, at: float, rate: float, steps: int) -> None:
    sigma = calibrated(lambda: renyi_multiplier(epsilon, at, rate=rate, steps=steps))
    logs = np.cumsum(np.log(np.arange(1, LARGEST_ORDER + 2)))
    factorials = np.concatenate([[0.0], logs])

    def stated(order: int) -> float:
        k = np.arange(order + 1)
        weights = factorials[order] - factorials[k] - factorials[order - k]
        weights = weights + k * (k - 1) / (2 * sigma**2) + k * math.log(rate)
        weights[:-1] += (order - k[:-1]) * (math.log1p(-rate) if rate < 1 else -math.inf)
        total = float(np.logaddexp.reduce(weights))
        loose = (math.log(at) + math.log(order)) / (order - 1)
        return steps * total / (order - 1) + math.log1p(-1 / order) - loose

    order = best_order(stated, range(2, LARGEST_ORDER + 1))
    spent = steps * log_moment(order, sigma, rate) / (order - 1)
    spent += mp.log1p(mpf(-1) / order) - (mp.log(mpf(at)) + mp.log(order)) / (order - 1)
    assert spent <= epsilon * ALLOWED


def sampled_delta(epsilon: mpf, sigma: float, rate: float) -> mpf:
    """Return delta of one sum on a Poisson sample, in closed form, in both directions."""
    q, mu, grown = mpf(rate), 1 / mpf(sigma), mp.exp(epsilon)
    one_more = q * delta(mp.log1p((grown - 1) / q), mu)
    rest = 1 - grown * (1 - q)
    return max(one_more, rest * delta(mp.log(grown * q / rest), mu) if rest > 0 else mpf(0))


@settings(max_examples=5, deadline=None)
@given(epsilon=powers(-3, math.log10(50)), at=powers(-9, -2), rate=powers(-2.5, -0.1))
def test_sampled_noise_of_one_step(epsilon: float, at: float, rate: float) -> None:
    sigma = calibrated(lambda: sampled_sigma("pld", epsilon, at, rate=rate, steps=1))
    assert sampled_delta(epsilon * ALLOWED, sigma, rate) <= at


@settings(max_examples=2, deadline=None)
@given(
    epsilon=powers(-2, 1), at=powers(-8, -3), rate=powers(-2, -0.3), steps=powers(0.3, 2).map(int)
)
def test_sampled_noise_of_many_steps(epsilon: float, at: float, rate: float, steps: int) -> None:
    """In cells of a third of the width: all round up, so narrower ones state less."""
    sigma = calibrated(lambda: sampled_sigma("pld", epsilon, at, rate=rate, steps=steps))
    loss = pld.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=loss_grain(sigma) / 3
    )
    assert loss.self_compose(steps).get_epsilon_for_delta(at) <= epsilon * ALLOWED


@settings(max_examples=6, deadline=None)
@given(epsilon=powers(-2, math.log10(50)), at=powers(-9, -2), rate=RATES, steps=STEPS)
def test_sampled_noise_by_moments(epsilon: float, at: float, rate: float, steps: int) -> None:
    sigma = calibrated(lambda: sampled_sigma("moments", epsilon, at, rate=rate, steps=steps))
    orders = [*range(2, 66), *(2**k + 1 for k in range(7, 11))]
    spent = min(
        (steps * log_moment(order, sigma, rate) + mp.log(1 / mpf(at))) / (order - 1)
        for order in orders
    )
    assume(spent < epsilon * 2 or steps == 1)  # the least is at an order beyond these
    assert spent <= epsilon * ALLOWED


def test_what_overspent_before() -> None:
    """By up to 3e-2 of epsilon; mu by 5e-9."""
    for epsilon, at in ((1e-7, 1e-6), (1.2369511700725113e-07, 1.1734862531178986e-08)):
        assert of_zcdp(mpf(rounds.rho_of(epsilon, at)), at) <= epsilon * ALLOWED
    assert keeps(epsilon_of(mu_of(1e-8, 1e-6), 1e-6), mu_of(1e-8, 1e-6), 1e-6)
    budget = (1.4912373846057077e-08, 6.305242665787204e-07)
    assert keeps(budget[0], mu_of(*budget), budget[1])
