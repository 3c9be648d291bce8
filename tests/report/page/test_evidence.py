"""What stands behind the figures: how noise was drawn."""

from dataclasses import replace

import pytest

from dprepro.report.page.evidence import ledger_sheet
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
