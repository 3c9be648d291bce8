import io
import re

import pytest
from rich.console import Console

from dprepro.report.judge.verdicts import Verdict
from dprepro.report.read.results import ResultCell
from dprepro.report.write.tables import rich_tables
from tests.report.journals import task
from tests.report.samples import CELLS, COMPARE, PLAIN, SPENT, measured, tables


def shown(style=PLAIN, cells=CELLS, width=300):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(rich_tables(tables(style, cells), style))
    return console.export_text(clear=False), console.export_text(styles=True)


def test_rich_shows_values_marks_and_reasons():
    text, styled = shown()
    assert "0.883 ± 0.005" in text
    assert "0.700 ± 0.005 [3/25]" in text
    assert "[0/25, 2 failed]" in text
    assert "[skipped]" in text
    assert "broken: ValueError: a|b_c" in text
    assert "absent: not installed" in text
    assert re.search(r"\x1b\[1m0\.883", styled), "the best is bold"
    assert not re.search(r"\x1b\[1m0\.800", styled)


def test_rich_compares_below_each_value():
    text, _ = shown(COMPARE)
    assert "(0.883 ± 0.005) =" in text
    assert "(0.880 ± 0.006) ↓" in text
    assert "(0.558 ± 0.045) ·" in text
    legend = next(line for line in text.splitlines() if line.startswith("In brackets"))
    found = {v for v in Verdict if f"{v.symbol} {v.value}" in legend}
    judged = {
        e.verdict.verdict
        for t in tables(COMPARE)
        for g in t.groups
        for r in g.rows
        for e in r
        if e.verdict
    }
    assert found == judged
    assert Verdict.IMPOSSIBLE not in found


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_narrow_console_keeps_marks_verdicts_and_bold(width):
    text, styled = shown(COMPARE, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert all(f" {t.strip()}" in text for t in ("0.883 ± 0.005", "(0.880 ± 0.006) ↓", "[3/25]"))
    assert "[0/25, 2 failed]" in text
    assert re.search(r"\x1b\[1m0\.883", styled)


def test_names_are_no_markup():
    assert "[red]" in shown(PLAIN, [measured(0.7, "[red]")])[0]


def test_the_epsilon_really_spent_is_shown_on_request():
    spent = ResultCell(
        task(epsilon=0.5), ("t",), {"auc": (0.87, 0.88)}, planned=2, spent_epsilon=0.4371
    )
    assert "ε 0.437" in shown(SPENT, [spent])[0]
    assert "spent epsilon, which the releases of the ledger" in shown(SPENT, [spent])[0]
    assert "ε 0.437" not in shown(PLAIN, [spent])[0]
