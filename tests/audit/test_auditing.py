"""Audits end early, go on where they were stopped, and state how much could be shown."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit
from dprepro.audit.case import Case, Ceiling
from dprepro.audit.distinguishers import Threshold, judge
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.lower_bounds import mu_lower_bound
from dprepro.runtime.errors import DpreproError

FITS = []


def told(shift, ceiling=None, rule=None):
    """N(0, 1), and with the canary N(shift, 1), under a ledger that spends epsilon 1."""

    def fit(present, seed):
        FITS.append(seed)
        entry = LedgerEntry("gaussian", "a sum", 1.0, "L2", 1 / 0.2367, 1, (1.0, 1e-6))
        noise = np.random.default_rng(seed).standard_normal()
        return SimpleNamespace(
            ledger_=Ledger(1.0, 1e-6, "zero-out", [entry]), x=shift * present + noise
        )

    return Case(
        "told", None, "none", fit, lambda outcome: np.array([outcome.x]),
        rule=rule, ceiling=ceiling and (lambda _: ceiling),
    )  # fmt: skip


def test_an_audit_ends_once_the_guarantee_is_refuted():
    result = audit(told(1.0), 12_000, seed=0)
    assert result.verdict is AuditVerdict.EXCEEDED
    assert result.trials == 1500 + 1050


def test_an_audit_that_is_within_makes_all_runs_however_near_its_ceiling():
    """Else a fault that shows more than could be shown without it would escape."""
    result = audit(told(0.2, Ceiling(0.4, "made up"), Threshold(0.1)), 12_000, seed=3)
    assert result.trials == 12_000
    assert result.lower_bound > 0.4
    assert result.verdict is AuditVerdict.WITHIN


def test_a_case_with_a_rule_of_its_own_learns_nothing_and_all_runs_judge():
    named, learnt = (
        audit(told(0.1, rule=Threshold(0.05)), 400, seed=0),
        audit(told(0.1), 400, seed=0),
    )
    assert (named.evidence.scores.size, learnt.evidence.scores.size) == (400, 200)
    assert named.evidence.threshold == 0.05
    assert named.ceiling is None


def test_the_ceiling_is_estimated_by_few_pairs():
    """The same noise in both worlds: 500 runs find the shift to a few percent, and no bias."""
    result = audit(told(0.15), 1000, seed=1)
    assert result.ceiling.epsilon == pytest.approx(epsilon_of(0.15, 1e-6), rel=0.1)
    assert "250 pairs" in result.ceiling.basis


def test_no_ceiling_exceeds_what_a_sound_ledger_spends():
    result = audit(told(3.0), 400, seed=1)
    assert result.ceiling.epsilon == pytest.approx(1.0, abs=1e-3)
    assert result.lower_bound > 5 * result.ceiling.epsilon


def test_an_audit_goes_on_after_a_kill_and_finds_the_same(tmp_path):
    case, made = told(0.1), []

    def killed(runs):
        made.append(runs)
        if sum(made) > 700:
            raise KeyboardInterrupt

    FITS.clear()
    with pytest.raises(KeyboardInterrupt):
        audit(case, 2000, seed=2, keep_in=tmp_path / "a.jsonl", advance=killed)
    result = audit(case, 2000, seed=2, keep_in=tmp_path / "a.jsonl")
    assert len(FITS) == 2000 + 2  # and one for the ledger each time
    np.testing.assert_array_equal(result.evidence.scores, audit(case, 2000, seed=2).evidence.scores)
    with pytest.raises(DpreproError, match="other options"):
        audit(case, 3000, seed=2, keep_in=tmp_path / "a.jsonl")


def test_ranks_show_more_than_guesses_and_refute_nothing():
    """Of Gaussian releases; twelve thousand runs are enough to see it."""
    result = audit(told(0.2, rule=Threshold(0.1)), 12_000, seed=3)
    evidence = result.evidence
    guesses = judge(Threshold(0.1), evidence.scores[:, None], evidence.present)
    # The last of three looks has 95 % of the risk.
    shown, refuting = (
        epsilon_of(float(mu_lower_bound(guesses, confidence=1 - 0.95 * risk)), 1e-6)
        for risk in (0.05, 0.0001)
    )
    assert result.lower_bound > shown + 0.01
    assert result.refuting_bound == pytest.approx(refuting, rel=1e-9)


def test_worlds_that_differ_a_lot_are_bounded_by_guesses():
    """Ranks say at most that mu is 1."""
    result = audit(told(3.0, rule=Threshold(1.5)), 12_000, seed=1)
    assert result.trials == 1200
    assert result.lower_bound > epsilon_of(2.0, 1e-6)


def test_few_runs_are_bounded_by_guesses_alone():
    result = audit(told(1.5, rule=Threshold(0.75)), 400, seed=1)
    guesses = judge(Threshold(0.75), result.evidence.scores[:, None], result.evidence.present)
    assert result.lower_bound == epsilon_of(float(mu_lower_bound(guesses)), 1e-6) > 0


def test_cases_that_share_runs_make_them_once_and_look_at_their_own_columns(tmp_path):
    whole = replace(told(0.2), observe=lambda outcome: np.array([0.0, outcome.x]), columns=(1,))
    part = replace(whole, subject="part", runs="told", columns=(0,))
    FITS.clear()
    first, second = (
        audit(case, 1000, seed=1, keep_in=tmp_path / "a.jsonl") for case in (whole, part)
    )
    assert len(FITS) == 1000 + 2  # and one for the ledger each time
    assert first.lower_bound > 0
    assert np.ptp(second.evidence.scores) == 0


def test_a_case_of_one_entry_is_held_against_what_that_entry_spends():
    case = told(0.2)
    entry = case.fit(True, 0).ledger_.entries[0]
    ledger = replace(case.fit(True, 0).ledger_, epsilon=5.0, entries=[entry, entry])
    part = replace(case, entry=1).audited_part(ledger)
    assert part.entries == [entry]
    assert part.epsilon == pytest.approx(1.0, rel=1e-3)
    assert case.audited_part(ledger) is ledger
