"""Verdicts, and what a result says."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.audit.auditing import OneRunResult
from dprepro.audit.case import Ceiling
from dprepro.audit.distinguishers import Claim, claim_of
from dprepro.audit.result import reasons
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.lower_bounds import REFUTING, Guesses, mu_lower_bound
from dprepro.privacy.sensitivity import ADD_REMOVE
from tests.audit.test_render import text


@pytest.mark.parametrize(
    ("refuting", "shown", "verdict"),
    [(0.0, 0.0, "within"), (0.0, 0.8, "within"), (0.8, 0.8, "within"), (0.0, 0.9, "undecided"),
     (0.8, 1.1, "undecided"), (0.9, 0.9, "above ledger"), (1.0, 1.1, "above ledger"),
     (1.1, 1.2, "EXCEEDED")],
)  # fmt: skip
def test_bounds_are_judged_by_what_is_stated_and_by_what_is_recorded(refuting, shown, verdict):
    audited = OneRunResult(
        "x", None, "one row more", ADD_REMOVE, 1.0, 1e-6, 0.8, (), 10, 5, 5,
        lower_bound=shown, curve_bound=None, independent_bound=None, refuting_bound=refuting,
        confidence=0.95,
    )  # fmt: skip
    assert audited.verdict is AuditVerdict(verdict)
    assert audited.verdict.is_refuted == (refuting > 0.8)


@pytest.mark.parametrize("trials", [40, 60, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_sound_method_is_hardly_ever_refuted(trials, epsilon):
    """An audit of 40 runs called a sound release EXCEEDED, by a bound that holds with 95 %."""
    mu = mu_of(epsilon, 1e-6)
    wrong = np.arange(trials + 1)
    half = trials / 2
    refuting = mu_lower_bound(Guesses(wrong, half, 0 * wrong, half), confidence=REFUTING)
    # It spends all that it may, and the best distinguisher makes the fewest mistakes.
    likely = binom.pmf(wrong, trials, ndtr(-mu / 2))
    assert 0 < likely[refuting > mu].sum() <= 1e-4


def test_what_may_be_chance_is_undecided():
    case = find_case("gaussian", epsilon=1.0)
    results = [audit(case, 40, seed=seed) for seed in range(60)]
    lucky = [result for result in results if result.lower_bound > 1.0]
    assert {result.verdict for result in lucky} == {AuditVerdict.UNDECIDED}
    assert "undecided: the bound is above what is stated" in text(lucky[:1])
    assert not any(result.unexplained for result in results)


def test_a_result_is_json_without_its_evidence():
    result = audit(find_case("gaussian", epsilon=4.0), 400, seed=0)
    facts = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert facts["subject"] == "gaussian"
    assert facts["bound"] == "GDP"
    assert facts["verdict"] == "within"
    assert 0 < facts["lower_bound"] < facts["epsilon"] == 4.0
    assert facts["trials"] == 400
    assert "evidence" not in facts
    assert result.evidence.scores.size == 400
    assert facts["ceiling"] == pytest.approx(4.0)
    assert facts["ceiling_basis"] == result.ceiling.basis
    assert not result.unexplained


def test_the_share_of_a_ceiling_is_stated_where_anything_can_be_shown():
    result = audit(find_case("gaussian", epsilon=4.0), 400, seed=0)
    assert result.share_of_ceiling == pytest.approx(result.lower_bound / 4.0)
    assert replace(result, ceiling=None).share_of_ceiling is None
    assert replace(result, ceiling=Ceiling(0.0, "nothing")).share_of_ceiling is None


def test_a_fixed_seed_of_the_audit_is_no_reason_for_an_excess():
    ledger = Ledger(1.0, 0.0, "zero-out", unaccounted=["bounds of x"], gaps=["a gap"])
    ledger.note_seed(5)
    assert reasons(ledger) == ("bounds of x", "a gap")


def test_a_claim_is_as_strong_as_all_entries_are():
    gaussian, laplace, rounds = (
        LedgerEntry(mechanism, "a sum", 1.0, "L2", scale, uses, (1.0, 0.0))
        for mechanism, scale, uses in (
            ("gaussian", 30.0, 1), ("laplace", 30.0, 1), ("exponential", 2 / 0.08, 25),
        )
    )  # fmt: skip

    def claim(*entries, delta=1e-6):
        return claim_of(Ledger(1.0, delta, "zero-out", [*entries]))

    assert claim(gaussian) is Claim.GDP
    assert claim(gaussian, laplace) is claim(rounds) is claim(rounds, laplace) is Claim.ZCDP
    assert claim(rounds, delta=0.0) is claim(rounds, rounds) is Claim.PLAIN
    assert claim(replace(gaussian, sampling=0.5)) is Claim.PLAIN


def test_what_a_claim_expects_of_the_best_distinguisher_it_does_not_refute():
    for claim in Claim:
        error = claim.least_error(1.0, 1e-6)
        runs = 1e9
        half = Guesses(error * runs / 2, runs / 2, error * runs / 2, runs / 2)
        found = float(claim.bound(1e-6, 0.95)(half, "accuracy"))
        assert 0.75 < claim.epsilon(found, 1e-6) < 1.0
