"""The tables of docs/evidence/forensics.md: `python -m tests.docs.forensics_tables` renews them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dprepro.cli.options import read
from dprepro.judge.check import CheckReport, check_documents
from dprepro.judge.deviations import load_deviations
from dprepro.judge.forensics import Column, columns_of, judge_held_out
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import select_documents
from dprepro.papers.hypotheses import load_held_out, load_hypotheses
from dprepro.report.forensics import markdown_columns, markdown_held_out
from dprepro.report.formatting import choice_rows
from dprepro.results.folder import Results, read_results
from dprepro.results.margins import margins
from dprepro.runtime.text import markdown_table
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "evidence" / "forensics.md"
HELD_OUT, CHOICES = "held-out", "choices"
BEGIN, END = "<!-- begin: {} -->\n", "<!-- end: {} -->"


def tables(method: str, results: Path = ROOT / "results") -> str:
    """Return what `dprepro forensics --format markdown --method METHOD` prints.

    For `HELD_OUT`, what it prints with ``--held-out``; for `CHOICES`, the counts of a check.
    """
    documents = select_documents(None)
    if method == HELD_OUT:
        measured = _measured(results)
        found = judge_held_out(load_held_out(), load_hypotheses(), documents, measured)
        return markdown_held_out(found)
    if method == CHOICES:
        report = check_documents(documents, read(results), load_deviations(), margins())
        return choices(report)
    return markdown_columns([c for c in _columns(results) if c.question.method == method])


def choices(report: CheckReport) -> str:
    """Return the verdicts of each document, on columns that were chosen and on others apart."""
    rows = choice_rows(report)
    verdicts = [verdict for verdict in Verdict if any(counts[verdict] for *_, counts in rows)]
    numbers = ["Cells", *(verdict.value for verdict in verdicts)]
    lines = (
        [paper, settings, f"{sum(counts.values())}", *(f"{counts[v]}" for v in verdicts)]
        for paper, settings, counts in rows
    )
    return markdown_table(["Document", "Settings", *numbers], lines, numbers) + "\n"


@cache  # reading all journals takes seconds
def _measured(results: Path) -> Results:
    return read_results(results)


@cache
def _columns(results: Path) -> list[Column]:
    return columns_of(load_hypotheses(), select_documents(None), _measured(results))


def parts(text: str, method: str) -> tuple[str, str, str]:
    """Return what stands before, between and after the marks of a method's tables."""
    before, rest = text.split(BEGIN.format(method))
    between, after = rest.split(END.format(method))
    return before, between, after


def methods(text: str) -> list[str]:
    """Return the methods that the page has tables of."""
    first, last = BEGIN.strip().split("{}")
    return [line[len(first) : -len(last)] for line in text.splitlines() if line.startswith(first)]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for method in methods(text):
        before, _, after = parts(text, method)
        text = f"{before}{BEGIN.format(method)}\n{tables(method)}\n{END.format(method)}{after}"
    PAGE.write_text(text)
