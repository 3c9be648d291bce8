"""The ledger adds up what was released, independently of the formulas that calibrated it."""

import itertools
import json
import math
from dataclasses import replace

import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant

from dprepro.privacy import ledger as ledger_module
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger, slack, spent_epsilon
from dprepro.privacy.sampling.sampler import SAMPLING_DISTANCE
from dprepro.privacy.sensitivity import REPLACE_ONE, ZERO_OUT
from tests.privacy.entries import (
    cited,
    dp_ebm_ledger,
    exponential,
    flipped,
    gaussian,
    laplace,
    ledger,
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
    beside_noise = ledger(exponential(4.0, 100), laplace(50.0)).spent_epsilon()
    assert many[0] < beside_noise < 0.7 * many[1]
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


def test_an_empty_ledger_spends_nothing():
    assert ledger().spent_epsilon() == 0.0


def test_forgotten_noise_is_an_infinite_epsilon():
    assert ledger(gaussian(10.0), gaussian(0.0)).spent_epsilon() == math.inf


def test_halved_noise_is_noticed():
    honest = dp_ebm_ledger("gdp", 1.0)
    halved = ledger(*[gaussian(e.scale / 2, e.uses, e.sensitivity) for e in honest.entries])
    assert honest.holds
    assert not halved.holds


def test_unaccounted_reads_and_gaps_break_the_promise():
    for attribute in ("unaccounted", "gaps"):
        honest = dp_ebm_ledger("gdp", 1.0)
        getattr(honest, attribute).append("something")
        assert not honest.holds


def test_a_fixed_seed_is_an_unaccounted_read_and_none_is_not():
    noted = ledger(gaussian(100.0))
    noted.note_seed(None)
    assert noted.unaccounted == []
    noted.note_seed(0)
    assert noted.unaccounted == ["fixed seed: repeatable, never for release"]


def test_summary_is_strict_json_and_carries_the_spent_epsilon():
    entry = dp_ebm_ledger("gdp", 0.5)
    summary = json.loads(json.dumps(entry.summary(), allow_nan=False))
    assert summary["true_epsilon"] == round(entry.spent_epsilon(), 6)
    assert summary["holds"] is True
    assert [release["uses"] for release in summary["releases"]] == [14, 4200]
    noise = [release["scale"] for release in summary["releases"]]
    assert noise == [round(release.scale, 6) for release in entry.entries]
    assert not any("sampling" in release for release in summary["releases"])


def test_summary_says_how_seldom_a_row_takes_part():
    sampled = replace(gaussian(1 / 3), sampling=1 / 3)
    (release,) = ledger(sampled, epsilon=20.0).summary()["releases"]
    assert (release["scale"], release["sampling"]) == (0.333333, 0.333333333)


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


ENTRIES = pytest.mark.parametrize(
    "entry", [gaussian(8.0), laplace(1.25), exponential(2.5), flipped(2.5)],
    ids=lambda entry: entry.mechanism,
)  # fmt: skip


@ENTRIES
def test_what_the_samplers_add_grows_with_epsilon_and_is_a_probability(entry):
    epsilons = [0.0, 0.01, 1.0, 20.0, 270.0, 700.0, 800.0, 1e308, math.inf]
    added = [ledger(entry, epsilon=epsilon).sampling_delta for epsilon in epsilons]
    assert added == sorted(added)
    assert added[0] == 2 * SAMPLING_DISTANCE == 2.0**-399
    assert added[2] == pytest.approx((1 + math.e) * 2.0**-400, rel=1e-12)
    assert added[-4:] == [1.0] * 4


def test_only_what_the_samplers_draw_is_off_by_their_distance():
    assert ledger().sampling_delta == ledger(cited(0.5)).sampling_delta == 0
    floating = ledger(gaussian(8.0))
    assert floating.sampling_delta > 0
    floating.note_floating_point("a sum: float32")
    assert floating.sampling_delta == 0
    assert ledger(cited(0.5), laplace(8.0)).sampling_delta > 0


@ENTRIES
def test_what_the_samplers_add_is_taken_off_delta(entry, monkeypatch):
    """With distances that are large enough to be seen."""
    ideal = ledger(entry).spent_epsilon()
    stated = ledger(entry, epsilon=ideal)
    assert ideal == spent_epsilon((entry,), 1e-6)
    assert stated.holds
    spent = [ideal]
    for distance in (1e-9, 3e-8, 2e-7):
        monkeypatch.setattr(ledger_module, "SAMPLING_DISTANCE", distance)
        spent.append(stated.spent_epsilon())
        left = 1e-6 - (1 + math.exp(spent[-1])) * distance
        assert 0 < left < 1e-6
        assert spent_epsilon((entry,), left) <= spent[-1]
        assert spent[-1] == pytest.approx(spent_epsilon((entry,), left), rel=1e-8)
    assert spent == sorted(spent)
    assert stated.is_calibrated
    if entry.mechanism == "gaussian":  # of the others delta changes next to nothing
        assert spent[-1] > ideal + 0.01
        assert not stated.within_budget
        assert not stated.holds
    monkeypatch.setattr(ledger_module, "SAMPLING_DISTANCE", 1e-6)
    assert stated.spent_epsilon() == math.inf
    assert not stated.holds


@pytest.mark.parametrize(("scale", "is_told"), [(0.06, True), (0.05, False)])
def test_what_is_spent_beyond_a_stated_epsilon_is_told_as_far_as_it_is_proved(scale, is_told):
    """As the ledgers of published methods without a guarantee do."""
    spent = ledger(gaussian(scale), epsilon=1.0)
    ideal = spent_epsilon((gaussian(scale),), 1e-6)
    assert ((1 + math.exp(ideal)) * SAMPLING_DISTANCE < 1e-6) == is_told
    assert spent.spent_epsilon() == (ideal if is_told else math.inf)
    assert spent.samplers_suffice
    assert not spent.holds


def test_the_samplers_take_of_delta_what_they_add_at_the_epsilon_that_is_found(monkeypatch):
    """Under replace-one it is larger than the stated one, under which little would be taken."""
    distance = 1e-14  # the real one matters at an epsilon of 140, which takes 9 s to add up
    monkeypatch.setattr(ledger_module, "SAMPLING_DISTANCE", distance)
    stated = ledger(laplace(1 / 14), epsilon=14.0)
    assert stated.spent_epsilon() == pytest.approx(14.0, rel=1e-3)
    assert stated.holds
    exchanged = (stated.entries[0].under_replace_one(),)
    assert spent_epsilon(exchanged, 1e-6 - stated.sampling_delta) < 29
    assert (1 + math.exp(spent_epsilon(exchanged, 1e-6))) * distance > 1e-6
    assert stated.spent_epsilon(REPLACE_ONE) == math.inf


def test_an_epsilon_that_is_never_reached_is_infinite(monkeypatch):
    """Every epsilon takes more of delta than the one before it leaves."""
    monkeypatch.setattr(ledger_module, "spent_epsilon", lambda _, delta: 1.0 / delta)
    monkeypatch.setattr(ledger_module, "SAMPLING_DISTANCE", 1e-3)
    assert ledger(gaussian(8.0), delta=0.4).spent_epsilon() == pytest.approx(2.6, abs=0.1)
    assert ledger(gaussian(8.0), delta=0.15).spent_epsilon() == math.inf
    growing = itertools.count()  # and if there is enough of delta for each
    monkeypatch.setattr(ledger_module, "spent_epsilon", lambda *_: next(growing))
    monkeypatch.setattr(ledger_module, "SAMPLING_DISTANCE", 1e-40)
    assert ledger(gaussian(8.0), delta=0.5).spent_epsilon() == math.inf


def test_a_pure_guarantee_stays_the_sum_and_is_one_up_to_what_the_samplers_add(monkeypatch):
    pure = ledger(laplace(10.0, 3), flipped(20.0, 2), delta=0.0)
    assert pure.holds
    assert 0 < pure.sampling_delta < 2e-120
    monkeypatch.setattr(ledger_module, "SAMPLING_DISTANCE", 1e-9)
    assert pure.spent_epsilon() == pytest.approx(0.3 + 0.2)
    assert pure.sampling_delta == pytest.approx((1 + math.e) * 1e-9)
    assert pure.holds


@pytest.mark.parametrize(("delta", "most"), [(1e-6, 263.0), (1e-12, 249.0), (0.0, 277.0)])
def test_the_guarantee_breaks_where_the_samplers_take_all_of_delta(delta, most):
    for epsilon, holds in ((most, True), (most + 1, False), (5000.0, False)):
        made = ledger(exponential(2 / epsilon), epsilon=epsilon, delta=delta)
        assert made.is_calibrated
        assert (made.samplers_suffice, made.holds) == (holds, holds)
        spent = epsilon if holds or delta == 0 else math.inf
        assert made.spent_epsilon() == pytest.approx(spent)
    assert ledger(cited(5000.0), epsilon=5000.0, delta=delta).holds


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 0.05, 0.1, 1.0, 8.0])
def test_rounding_is_a_small_part_of_epsilon_and_never_more_than_a_millionth(epsilon):
    assert slack(epsilon) == min(1e-6, 1e-5 * epsilon)
    for part, holds in ((0.9, True), (1.1, False)):
        made = ledger(cited(epsilon + part * slack(epsilon)), epsilon=epsilon, delta=0.0)
        assert (made.holds, made.within_budget, made.is_calibrated) == (holds,) * 3


def test_twice_a_tiny_epsilon_is_no_rounding():
    assert not ledger(laplace(1 / 1.9e-6), epsilon=1e-6, delta=0.0).holds
    assert ledger(laplace(1e6), epsilon=1e-6, delta=0.0).holds


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [0.001, 0.0011276894, 0.01, 1 / 15, 0.1, 0.25, 1.0])
def test_calibrated_noise_holds_at_small_epsilons(epsilon, delta):
    """Cells that losses are sorted into are wide beside these."""
    made = ledger(gaussian(1 / mu_of(epsilon, delta)), epsilon=epsilon, delta=delta)
    assert made.holds
