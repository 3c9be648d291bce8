"""What stands behind the figures: how noise was drawn, and what audits found."""

from dataclasses import replace

import pytest

from dprepro.privacy.standing import AuditVerdict
from dprepro.report.page.evidence import audit_sheet, ledger_sheet
from dprepro.report.read.audits import Audit
from dprepro.report.read.runs import Level, Spending

SPENDING = Spending(
    "adult", "dp-llm", "zero-out", 1e-5, (Level(1.0, 1.0, 2.0),), (), (), is_seeded=False
)


@pytest.mark.parametrize(
    ("listed", "words"),
    [(None, ""), ((), "exact"), (("sums: float32",), "floating point")],
    ids=["not recorded", "exact", "floating point"],
)
def test_the_sheet_of_ledgers_says_how_noise_was_drawn(listed, words):
    sheet = ledger_sheet([replace(SPENDING, floating_point=listed)])
    (row,) = sheet.rows
    at = [head.title for head in sheet.heads].index("Noise")
    assert row.cells[at].text == words
    assert row.cells[at].more == (listed or ())
    assert len(row.cells) == len(sheet.heads)
    assert row.cells[at - 2].text == "holds"


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [("within", "within"), ("too few runs", ""), ("above ledger", "exceeded"),
     ("EXCEEDED", "exceeded")],
)  # fmt: skip
def test_a_verdict_of_an_audit_reassures_only_if_something_could_have_been_found(verdict, tone):
    audit = Audit(
        subject="dp-llm", task="binary", neighbours="x", adjacency="zero-out", epsilon=1.0,
        delta=1e-5, ledger_epsilon=1.0, lower_bound=0.0, confidence=0.95, bound="GDP",
        verdict=AuditVerdict(verdict), trials=40,
    )  # fmt: skip
    sheet = audit_sheet([audit])
    (row,) = sheet.rows
    cell = row.cells[[head.title for head in sheet.heads].index("Verdict")]
    assert (cell.text, cell.tone) == (verdict, tone)
