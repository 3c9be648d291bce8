"""The ledger adds up what was released, independently of the formulas that calibrated it."""

import json
import math
from dataclasses import replace

import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import calibrate_two_phases
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import REPLACE_ONE, ZERO_OUT
from dprepro.privacy.subsampling import loss_grain


def gaussian(scale, uses=1, sensitivity=1.0):
    return LedgerEntry("gaussian", "a sum", sensitivity, "L2", scale, uses, (1.0, 1e-6))


def laplace(scale, uses=1):
    return LedgerEntry("laplace", "a sum", 1.0, "L1", scale, uses, (1.0, 0.0))


def cited(epsilon, delta=0.0):
    return LedgerEntry("cited", "a model", 1.0, "L2", 0.0, 1, (epsilon, delta))


def exponential(scale, uses=1):
    return LedgerEntry("exponential", "a choice", 1.0, "max", scale, uses, (1.0, 0.0))


def flipped(scale, uses=1):
    return LedgerEntry("permute-and-flip", "a label", 1.0, "max", scale, uses, (1.0, 0.0))


def ledger(*entries, epsilon=1.0, delta=1e-6):
    return Ledger(epsilon, delta, ZERO_OUT, list(entries))


def dp_ebm_ledger(composition, epsilon, features=14, epochs=300, delta=1e-6):
    noise = calibrate_two_phases(
        composition, epsilon, delta,
        binning_queries=features, boosting_queries=features * epochs, binning_share=0.1,
    )  # fmt: skip
    return ledger(
        gaussian(noise.binning, features),
        gaussian(noise.boosting * 0.01, features * epochs, sensitivity=0.01),
        epsilon=epsilon,
        delta=delta,
    )


@pytest.mark.parametrize(
    ("composition", "spent"),
    [
        ("gdp", [0.437, 0.876, 1.757, 3.526, 7.080]),
        ("classic", [0.162, 0.331, 0.678, 1.397, 2.916]),
    ],
)
def test_what_the_published_calibrations_really_spend(composition, spent):
    measured = [dp_ebm_ledger(composition, e).spent_epsilon() for e in (0.5, 1, 2, 4, 8)]
    assert measured == pytest.approx(spent, abs=1e-3)


@pytest.mark.parametrize("composition", ["gdp", "classic"])
@pytest.mark.parametrize("features", [1, 14, 46])
def test_the_published_calibrations_never_overspend(composition, features):
    for epsilon in (0.1, 0.5, 1, 2, 4, 8):
        assert dp_ebm_ledger(composition, epsilon, features).spent_epsilon() <= epsilon + 1e-6


def test_gaussians_agree_with_the_closed_form():
    mu = math.sqrt(14 / 141.69**2 + 4200 / 312.1**2)
    measured = ledger(gaussian(141.69, 14), gaussian(312.1, 4200)).spent_epsilon()
    assert measured == pytest.approx(epsilon_of(mu, 1e-6), abs=1e-6)


def test_mixed_releases_agree_with_googles_own_composition():
    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(20.0), 10))
    accountant.compose(SelfComposedDpEvent(LaplaceDpEvent(30.0), 5))
    measured = ledger(gaussian(20.0, 10), laplace(30.0, 5)).spent_epsilon()
    assert measured == pytest.approx(accountant.get_epsilon(1e-6), abs=1e-3)


def test_only_the_ratio_of_scale_to_sensitivity_counts():
    assert ledger(gaussian(3.0, 7, sensitivity=0.3)).spent_epsilon() == pytest.approx(
        ledger(gaussian(10.0, 7)).spent_epsilon()
    )


def test_cited_pure_mechanisms_add_up():
    assert ledger(cited(0.4), cited(0.3), delta=0.0).spent_epsilon() == pytest.approx(0.7)
    # A delta can only lower the epsilon of a pure mechanism, and hardly does.
    assert 0.69 < ledger(cited(0.4), cited(0.3), delta=1e-6).spent_epsilon() <= 0.7 + 1e-3


def test_pure_releases_add_up_without_a_delta():
    pure = ledger(laplace(10.0, 3), exponential(20.0, 2), cited(0.1), delta=0.0)
    assert pure.spent_epsilon() == pytest.approx(3 / 10 + 2 * 2 / 20 + 0.1)
    assert ledger(gaussian(1e9), delta=0.0).spent_epsilon() == math.inf


def test_permute_and_flip_costs_what_an_exponential_choice_costs_without_its_bounded_range():
    """That range makes many exponential choices cheaper where there is a delta."""
    assert ledger(flipped(20.0, 2), delta=0.0).spent_epsilon() == pytest.approx(0.2)
    many = [ledger(entry(4.0, 100)).spent_epsilon() for entry in (exponential, flipped)]
    assert many[0] < 0.7 * many[1] < many[1] <= 50.0
    assert ledger(flipped(2.0), delta=0.0).spent_epsilon(REPLACE_ONE) == pytest.approx(2.0)


def test_what_is_in_floating_point_is_listed_once_and_does_not_break_the_guarantee():
    made = ledger(laplace(10.0))
    for _ in range(2):
        made.note_floating_point("a sum: float32")
    assert made.floating_point == made.summary()["floating_point"] == ["a sum: float32"]
    assert made.holds


def test_a_delta_never_makes_pure_releases_dearer():
    entries = (laplace(10.0, 3), exponential(20.0, 2), cited(0.1))
    assert (
        ledger(*entries, delta=1e-6).spent_epsilon()
        <= ledger(*entries, delta=0.0).spent_epsilon() + 1e-3
    )


def test_replace_one_of_the_published_gdp_noise():
    """Histograms cost sqrt(2) and leaf sums 2 times as much; group privacy would cost more."""
    entries = [
        replace(entry, replace_one=factor * entry.sensitivity)
        for entry, factor in zip(
            dp_ebm_ledger("gdp", 1.0).entries, (math.sqrt(2), 2.0), strict=True
        )
    ]
    exact = ledger(*entries).spent_epsilon(REPLACE_ONE)
    assert exact == pytest.approx(1.848, abs=1e-3)
    assert exact < dp_ebm_ledger("gdp", 1.0).spent_epsilon(REPLACE_ONE)


def test_replace_one_costs_nothing_more_where_it_is_the_stated_relation():
    stated = Ledger(1.0, 0.0, REPLACE_ONE, [cited(0.7)])
    assert stated.spent_epsilon(REPLACE_ONE) == stated.spent_epsilon() == pytest.approx(0.7)


def test_group_privacy_doubles_a_pure_epsilon():
    pure = ledger(laplace(10.0), exponential(20.0), cited(0.1), delta=0.0)
    assert pure.spent_epsilon(REPLACE_ONE) == pytest.approx(2 * pure.spent_epsilon())


@pytest.mark.parametrize("choices", [[], [exponential(1e6)]], ids=["losses", "and Renyi"])
def test_where_sampling_is_left_out_an_exchanged_row_moves_a_sum_twice_as_far(choices):
    """An upper bound on what sampling at 0.99 and so little noise spends, which one move is not."""
    sampled = ledger(replace(gaussian(0.09), sampling=0.99), *choices)
    one_move, two_moves = (epsilon_of(moves / 0.09, 1e-6) for moves in (1, 2))
    assert sampled.spent_epsilon() == pytest.approx(one_move, rel=1e-3)
    assert sampled.spent_epsilon(REPLACE_ONE) == pytest.approx(two_moves, rel=1e-3)
    exact = from_gaussian_mechanism(
        0.09,
        sampling_prob=0.99,
        value_discretization_interval=loss_grain(0.09),
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    assert one_move < exact.get_epsilon_for_delta(1e-6) < two_moves


def test_an_empty_ledger_spends_nothing():
    assert ledger().spent_epsilon() == 0.0


def test_forgotten_noise_is_an_infinite_epsilon():
    assert ledger(gaussian(10.0), gaussian(0.0)).spent_epsilon() == math.inf


def test_halved_noise_is_noticed():
    honest = dp_ebm_ledger("gdp", 1.0)
    halved = ledger(*[gaussian(e.scale / 2, e.uses, e.sensitivity) for e in honest.entries])
    assert honest.holds
    assert not halved.holds


def test_unpaid_reads_and_gaps_break_the_promise():
    for attribute in ("unpaid", "gaps"):
        honest = dp_ebm_ledger("gdp", 1.0)
        getattr(honest, attribute).append("something")
        assert not honest.holds


def test_a_fixed_seed_is_an_unpaid_read_and_none_is_not():
    noted = ledger(gaussian(100.0))
    noted.note_seed(None)
    assert noted.unpaid == []
    noted.note_seed(0)
    assert noted.unpaid == ["fixed seed: repeatable, never for release"]


def test_summary_is_strict_json_and_carries_the_true_epsilon():
    entry = dp_ebm_ledger("gdp", 0.5)
    summary = json.loads(json.dumps(entry.summary(), allow_nan=False))
    assert summary["true_epsilon"] == pytest.approx(entry.spent_epsilon(), abs=1e-6)
    assert summary["holds"] is True
    assert [release["uses"] for release in summary["releases"]] == [14, 4200]


def test_the_cells_of_losses_grow_with_mu_so_that_a_huge_epsilon_fits_into_memory(monkeypatch):
    grains = []

    def spy(deviation, value_discretization_interval):
        grains.append(value_discretization_interval * deviation)
        return from_gaussian_mechanism(
            deviation, value_discretization_interval=value_discretization_interval
        )

    monkeypatch.setattr("dprepro.privacy.ledger.pld.from_gaussian_mechanism", spy)
    assert dp_ebm_ledger("joint", 1e4).spent_epsilon() == pytest.approx(1e4, rel=1e-3)
    # In units of mu: the losses then fill some mu / 1e-4 cells.
    assert grains == [pytest.approx(1e-4)]


def test_coarser_cells_still_tell_200_from_more():
    fit = dp_ebm_ledger("joint", 200.0)
    assert fit.spent_epsilon() == pytest.approx(200.0, abs=1e-6)
    assert fit.within_budget


def test_a_ledger_takes_the_text_of_a_relation_and_refuses_another():
    assert Ledger(1.0, 0.0, "replace-one").adjacency is REPLACE_ONE
    with pytest.raises(ValueError, match="adjacency must be one of"):
        Ledger(1.0, 0.0, "friends")


def test_only_the_stated_relation_and_replace_one_follow_from_a_ledger():
    stated = Ledger(1.0, 1e-6, ZERO_OUT, [gaussian(10.0)])
    assert stated.spent_epsilon("zero-out") == stated.spent_epsilon(ZERO_OUT)
    assert stated.spent_epsilon() < stated.spent_epsilon("replace-one")
    with pytest.raises(ValueError, match="ask for zero-out or replace-one"):
        stated.spent_epsilon("add/remove-one")
    with pytest.raises(ValueError, match="ask for replace-one"):
        Ledger(1.0, 1e-6, REPLACE_ONE).spent_epsilon(ZERO_OUT)


def test_an_entry_keeps_any_pair_as_a_budget():
    entry = LedgerEntry("laplace", "a count", 1, "L1", scale=2, uses=2, budget=(1, 0))
    assert isinstance(entry.budget, PrivacyBudget)
    assert Ledger(2.0, 1e-6, ZERO_OUT, [entry]).budget == (2.0, 1e-6)
    assert entry.under_replace_one().budget == entry.budget
    cited = replace(entry, mechanism="cited").under_replace_one().budget
    assert cited == PrivacyBudget(2, 0.0)
