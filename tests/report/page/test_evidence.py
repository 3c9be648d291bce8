"""What stands behind the figures: how noise was drawn, and what audits found."""

import math
from dataclasses import replace

import pytest

from dprepro.privacy.guarantee_status import AuditVerdict
from dprepro.report.page.evidence import audit_sheet, ledger_sheet
from dprepro.results.audits import Audit
from dprepro.results.runs import Level, Spending

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


def audit(**fields):
    given = {
        "subject": "dp-llm", "task": "binary", "neighbours": "a row more", "adjacency": "zero-out",
        "epsilon": 1.0, "delta": 1e-5, "ledger_epsilon": 1.0, "lower_bound": 0.25,
        "confidence": 0.95, "bound": "GDP", "verdict": AuditVerdict("within"), "trials": 4000,
    }  # fmt: skip
    return Audit(**{**given, **fields})


def shown(sheet, name):
    """Return the only row's field under a heading."""
    (row,) = sheet.rows
    return row.cells[[head.title for head in sheet.heads].index(name)]


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [("within", "within"), ("too few runs", ""), ("above ledger", "exceeded"),
     ("EXCEEDED", "exceeded")],
)  # fmt: skip
def test_a_verdict_of_an_audit_reassures_only_if_something_could_have_been_found(verdict, tone):
    sheet = audit_sheet([audit(verdict=AuditVerdict(verdict))])
    (row,) = sheet.rows
    cell = row.cells[[head.title for head in sheet.heads].index("Verdict")]
    assert (cell.text, cell.tone) == (verdict, tone)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "a row more; 4,000 runs, bound by GDP"),
        ({"trials": None}, "a row more, bound by GDP"),
        ({"ceiling": 0.5}, "a row more; 4,000 runs, bound by GDP; at most 0.500 can be shown here"),
        ({"guesses": 90, "correct": 61}, "a row more; 61 of 90 guesses right in one run"),
        (
            {"guesses": 90, "correct": 61, "curve_bound": 0.4, "independent_bound": 0.75},
            "a row more; 61 of 90 guesses right in one run; at least 0.400 under a Gaussian "
            "trade-off curve; at least 0.750 if the noise is independent",
        ),
    ],
)
def test_an_audit_says_by_what_it_was_found(fields, words):
    assert shown(audit_sheet([audit(**fields)]), "By").text == words


def test_an_audit_shows_its_bounds_and_counts_the_gaps_that_its_ledger_names():
    sheet = audit_sheet([audit(gaps=("one", "two"), ledger_epsilon=None)])
    assert shown(sheet, "ε at least").text == "0.250"
    assert shown(sheet, "Ledger").text == "infinite"
    assert (shown(sheet, "Named in the ledger").text, shown(sheet, "Stated").text) == ("2", "1")
    assert shown(sheet, "Named in the ledger").more == ("one", "two")
    assert shown(audit_sheet([audit()]), "Named in the ledger").text == ""


def test_spent_epsilons_stand_beside_the_stated_ones():
    spending = replace(SPENDING, levels=(Level(1.0, 0.5, 2.0), Level(2.0, math.inf, 4.0)))
    texts = [
        cell.text.replace("\N{NO-BREAK SPACE}", " ")
        for cell in ledger_sheet([spending]).rows[0].cells
    ]
    assert "1 → 0.5, 2 → no bound" in texts
    assert "no bound" in texts
    texts = [cell.text for cell in ledger_sheet([SPENDING]).rows[0].cells]
    assert "100.0 %" in texts
    assert "200.0 %" in texts


def test_a_spending_without_a_ledger_has_levels_and_no_shares():
    spending = replace(SPENDING, levels=(), unverified=(0.5, 4.0))
    (row,) = ledger_sheet([spending]).rows
    texts = [cell.text for cell in row.cells]
    assert "0.5, 4" in texts
    assert "unverified" in texts
    assert not any("%" in text for text in texts)
