"""Verdicts, and what a result says."""

import json
from dataclasses import replace

import pytest

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.audit.case import Ceiling
from dprepro.audit.one_run import OneRunResult
from dprepro.audit.result import is_gaussian, reasons
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ADD_REMOVE


@pytest.mark.parametrize(
    ("lower_bound", "verdict"),
    [(0.0, "within"), (0.8, "within"), (0.9, "above ledger"), (1.0, "above ledger"),
     (1.1, "EXCEEDED")],
)  # fmt: skip
def test_a_bound_is_judged_by_what_is_stated_and_by_what_is_recorded(lower_bound, verdict):
    audited = OneRunResult(
        "x",
        None,
        "one row more",
        ADD_REMOVE,
        1.0,
        1e-6,
        0.8,
        (),
        10,
        5,
        5,
        lower_bound,
        None,
        None,
        0.95,
    )
    assert audited.verdict is AuditVerdict(verdict)


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
    ledger = Ledger(1.0, 0.0, "zero-out", unpaid=["bounds of x"], gaps=["a gap"])
    ledger.note_seed(5)
    assert reasons(ledger) == ("bounds of x", "a gap")


def test_gaussian_means_all_releases_are():
    entries = [
        LedgerEntry(mechanism, "a sum", 1.0, "L2", 1.0, 1, (1.0, 0.0))
        for mechanism in ("gaussian", "laplace")
    ]
    assert is_gaussian(Ledger(1.0, 1e-6, "zero-out", entries[:1]))
    assert not is_gaussian(Ledger(1.0, 1e-6, "zero-out", entries))
