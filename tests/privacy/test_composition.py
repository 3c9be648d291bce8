"""Calibration: the noise spends what it may, and no more."""

import math

import pytest

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import (
    TWO_PHASE_COMPOSITIONS,
    calibrate_two_phases,
    classic_budget,
    classic_sigma,
    gdp_part,
    gdp_sigma,
)
from dprepro.privacy.gdp import delta_of, epsilon_of, mu_of

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("queries", [1, 14, 4200])
def test_gdp_noise_spends_epsilon_exactly(epsilon, queries):
    sigma = gdp_sigma(queries, epsilon, 1e-6)
    assert epsilon_of(math.sqrt(queries) / sigma, 1e-6) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_parts_whose_shares_add_up_to_one_spend_the_budget_exactly(epsilon):
    budget = PrivacyBudget(epsilon, 1e-6)
    parts = [gdp_part(budget, share) for share in (0.01, 0.12, 0.87)]
    assert math.hypot(*(mu for mu, _ in parts)) == pytest.approx(mu_of(epsilon, 1e-6), rel=1e-12)
    for mu, (part, delta) in parts:
        assert delta == 1e-6
        assert delta_of(part, mu) == pytest.approx(delta, rel=1e-6) or part == 0


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_classic_noise_keeps_its_promise(epsilon, delta):
    sigma = classic_sigma(4200, epsilon, delta)
    assert delta_of(epsilon, math.sqrt(4200) / sigma) <= delta


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_classic_noise_is_theorem_2(epsilon):
    variance = 8 * 30 * math.log(math.e + epsilon / 1e-6) / epsilon**2
    assert classic_sigma(30, epsilon, 1e-6) == pytest.approx(math.sqrt(variance))


def test_theorem_2_fails_at_very_large_epsilon():
    # "for epsilon > 0" is too much said: the bound breaks near 189 at delta 1e-6.
    mu_188, mu_190 = (math.sqrt(1) / classic_sigma(1, e, 1e-6) for e in (188.0, 190.0))
    assert delta_of(188.0, mu_188) <= 1e-6 < delta_of(190.0, mu_190)


def test_a_phase_beyond_theorem_2_keeps_a_larger_budget_and_says_so():
    assert classic_budget(188.0, 1e-6) == (188.0, 1e-6)
    epsilon, delta = classic_budget(1000.0, 1e-6)
    mu = math.sqrt(30) / classic_sigma(30, 1000.0, 1e-6)
    assert epsilon > 2000
    assert delta_of(epsilon, mu) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("composition", ["gdp", "classic"])
def test_phases_share_epsilon_and_halve_delta(composition):
    noise = calibrate_two_phases(
        composition, 2.0, 1e-6, binning_queries=14, boosting_queries=4200, binning_share=0.1
    )
    assert noise.binning_budget == (pytest.approx(0.2), 5e-7)
    assert noise.boosting_budget == (pytest.approx(1.8), 5e-7)
    sigma = {"gdp": gdp_sigma, "classic": classic_sigma}[composition]
    assert noise.binning == sigma(14, *noise.binning_budget)
    assert noise.boosting == sigma(4200, *noise.boosting_budget)


def test_published_noise_ratio_between_the_two_accountings():
    def boosting(composition):
        return calibrate_two_phases(
            composition, 0.5, 1e-6, binning_queries=14, boosting_queries=4200, binning_share=0.1
        ).boosting

    assert boosting("classic") / boosting("gdp") == pytest.approx(2.53, abs=0.01)


def two_phases(composition, epsilon):
    return calibrate_two_phases(
        composition, epsilon, 1e-6, binning_queries=14, boosting_queries=4200, binning_share=0.1
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_joint_accounting_spends_epsilon_exactly(epsilon):
    noise = two_phases("joint", epsilon)
    mu = math.sqrt(14 / noise.binning**2 + 4200 / noise.boosting**2)
    assert epsilon_of(mu, 1e-6) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_joint_accounting_needs_less_noise_in_both_phases(epsilon):
    joint, separate = two_phases("joint", epsilon), two_phases("gdp", epsilon)
    ratio = joint.binning / separate.binning
    assert joint.boosting / separate.boosting == pytest.approx(ratio)
    assert 0.86 < ratio < 0.91


def test_classic_boosting_takes_only_its_binning_from_gdp():
    mixed = two_phases("classic-boosting", 0.5)
    assert mixed.binning == two_phases("gdp", 0.5).binning
    assert mixed.boosting == two_phases("classic", 0.5).boosting


def test_beyond_theorem_2_only_the_phase_that_took_it_states_a_larger_budget():
    mixed = two_phases("classic-boosting", 1000.0)
    assert mixed.binning_budget == (100.0, 5e-7)
    assert mixed.boosting_budget == classic_budget(900.0, 5e-7) != (900.0, 5e-7)


def test_a_phase_of_joint_accounting_keeps_the_budget_it_states():
    noise = two_phases("joint", 1.0)
    phases = (
        (14, noise.binning, noise.binning_budget),
        (4200, noise.boosting, noise.boosting_budget),
    )
    for queries, sigma, (epsilon, delta) in phases:
        assert delta == 5e-7
        assert delta_of(epsilon, math.sqrt(queries) / sigma) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("composition", TWO_PHASE_COMPOSITIONS)
def test_an_impossible_budget_is_named_as_it_was_given(composition):
    with pytest.raises(ValueError, match=r"epsilon must be positive and finite, got -1\.0"):
        two_phases(composition, -1.0)
    with pytest.raises(ValueError, match=r"epsilon must be positive and finite, got -1\.0"):
        classic_sigma(1, -1.0, 1e-6)


def test_unknown_composition_names_the_allowed_ones():
    allowed = "'gdp', 'classic', 'classic-boosting', 'joint'"
    with pytest.raises(ValueError, match=f"one of {allowed}, got 'rdp'"):
        calibrate_two_phases(
            "rdp", 1, 1e-6, binning_queries=1, boosting_queries=1, binning_share=0.1
        )


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_binning_share_must_leave_both_phases_something(share):
    with pytest.raises(ValueError, match="binning_share"):
        calibrate_two_phases(
            "gdp", 1, 1e-6, binning_queries=1, boosting_queries=1, binning_share=share
        )
