"""A check for the programs of continuous integration: JUnit, GitHub's annotations, Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree import ElementTree

from dprepro.judge.check import Again, CheckReport
from dprepro.judge.claims import Outcome
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.report.findings import (
    Finding,
    advice,
    claim_in_words,
    figures_in_words,
    findings_again,
    place_in_words,
)
from dprepro.report.formatting import FIGURES, verdict_figures
from dprepro.results.margins import level
from dprepro.runtime.text import legible, markdown, markdown_table, one_line, visible

MOST_ANNOTATIONS = 10
"""GitHub shows so many errors, and so many warnings, of a step."""
_MOST_LISTED = 50
_UNFINISHED = (Verdict.NOT_RUN, Verdict.INCOMPLETE)


@dataclass(frozen=True)
class Case:
    """A test case of JUnit: `failure` says why it failed, `skipped` why it says nothing."""

    suite: str
    group: str
    name: str
    text: str = ""
    failure: str = ""
    skipped: str = ""


def cases(report: CheckReport, require_all: bool = False) -> Iterator[Case]:
    """Yield a case for each printed cell, column and claim, a suite for each document."""
    for paper in report.papers:
        own = report.of_paper(paper)
        yield from (_cell_case(cell, require_all) for cell in own.verdicts)
        for column in own.columns:
            yield Case(
                paper,
                f"{paper}.columns",
                f"Table {column.table}, {column.dataset}, {column.method}, {column.metric}",
                f"{column.state.value}: {column.omnibus.cells} cells, sum of squares "
                f"{column.omnibus.sum_of_squares:.0f}, p {column.omnibus.p_value:.2g}",
                failure="no cause was tested" if column in own.untested else "",
            )
        for claim in own.claims:
            idle = claim.outcome in (Outcome.NOT_RUN, Outcome.IMPOSSIBLE)
            yield Case(
                paper,
                f"{paper}.claims",
                claim.claim.name,
                f"{claim.words}: {claim_in_words(claim)}",
                failure=claim.words if claim.is_unexplained else "",
                skipped=claim.words if idle else "",
            )


def _cell_case(cell: CellVerdict, require_all: bool) -> Case:
    printed, words = cell.published, cell.verdict.value
    parts = [figures_in_words(cell), cell.explanation or ""]
    fails = cell.is_unexplained or (require_all and cell.verdict in _UNFINISHED)
    idle = not fails and not cell.verdict.is_final
    return Case(
        printed.paper,
        f"{printed.paper}.Table {printed.table}",
        f"{printed.dataset}, {printed.method}, ε {level(printed.epsilon)}, {printed.metric}",
        "\n".join([words, *filter(None, parts)]),
        failure=f"{words}: no explanation" if cell.is_unexplained else words if fails else "",
        skipped=f"{words}: {cell.note}" if idle and cell.note else words if idle else "",
    )


def cases_again(found: Again) -> Iterator[Case]:
    """Yield the cases of `--fast`."""
    said = {"run again": "", "recorded cell": "", "stale explanations": ""}
    for one in findings_again(found):
        said[one.title] += f"{one.text}\n"
    for name, text in said.items():
        skipped = "none recorded" if name == "recorded cell" and found.changed is None else ""
        yield Case("again", "again", name, text, text and f"{name}: differs", skipped)


def junit(found: Iterable[Case]) -> str:
    """Return the cases as JUnit's XML, those of a suite together in the order given."""
    root = ElementTree.Element("testsuites", name="dprepro check")
    everything = list(found)
    for name, own in groupby(everything, lambda case: case.suite):
        own_cases = list(own)
        named = {"name": _xml(name), **_counts(own_cases)}
        suite = ElementTree.SubElement(root, "testsuite", named)
        for case in own_cases:
            names = {"classname": _xml(case.group), "name": _xml(case.name)}
            element = ElementTree.SubElement(suite, "testcase", names)
            if case.failure:
                inner = ElementTree.SubElement(element, "failure", message=_xml(case.failure))
                inner.text = _xml(case.text)
            elif case.skipped:
                ElementTree.SubElement(element, "skipped", message=_xml(case.skipped))
            if case.text and not case.failure:
                ElementTree.SubElement(element, "system-out").text = _xml(case.text)
    root.attrib.update(_counts(everything))
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, "unicode")


def _counts(found: Sequence[Case]) -> dict[str, str]:
    failures = sum(bool(case.failure) for case in found)
    skipped = sum(bool(case.skipped) and not case.failure for case in found)
    numbers = {"tests": len(found), "failures": failures, "errors": 0, "skipped": skipped}
    return {name: str(number) for name, number in numbers.items()}


def _xml(text: str) -> str:
    return legible(visible(text))


def github(outcome: str, passes: bool, found: Iterable[Finding]) -> str:
    """Return workflow commands of GitHub: the outcome, and an annotation for each finding.

    GitHub shows ten errors and ten warnings of a step. The last one counts those left out.
    """
    known = list(found)
    lines = [] if passes else [_annotation("error", "dprepro check", outcome)]
    for kind, is_error in (("error", True), ("warning", False)):
        own = [one for one in known if one.is_error is is_error]
        room = MOST_ANNOTATIONS - sum(line.startswith(f"::{kind} ") for line in lines)
        shown = own if len(own) <= room else own[: room - 1]
        lines += [_annotation(kind, one.title, one.text) for one in shown]
        if more := len(own) - len(shown):
            said = f"{more} more: `dprepro check --details` shows all"
            lines.append(_annotation(kind, "dprepro check", said))
    lines += [_annotation("notice", "dprepro check", outcome)] if passes else []
    return "\n".join(lines)


def _annotation(kind: str, title: str, text: str) -> str:
    name = _escaped(one_line(title)).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={name}::{_escaped(visible(text))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown_outcome(outcome: str, passes: bool, found: Iterable[Finding]) -> Iterator[str]:
    """Yield the outcome, and what needs attention, as paragraphs of Markdown."""
    yield f"## dprepro check: {'passed' if passes else 'failed'}"
    yield markdown(outcome)
    known = list(found)
    lines = [f"- **{markdown(one.title)}**: {markdown(one.text)}" for one in known[:_MOST_LISTED]]
    if more := len(known) - len(lines):
        lines.append(f"- and {more} more")
    if lines:
        yield "\n".join(lines)


def markdown_check(
    report: CheckReport, outcome: str, passes: bool, found: Sequence[Finding], details: bool
) -> str:
    """Return a whole check for ``$GITHUB_STEP_SUMMARY``; `details` adds every cell and claim."""
    parts = list(markdown_outcome(outcome, passes, found))
    if said := advice(report):
        parts.append(markdown(said))
    shown = [verdict for verdict, count in report.counts.items() if count]
    heads = ["Document", "Cells", *(verdict.value for verdict in shown)]
    rows = []
    for paper in report.papers:
        own = report.of_paper(paper)
        counts = [str(own.counts[verdict] or "") for verdict in shown]
        rows.append([markdown(paper), str(len(own.verdicts)), *counts])
    parts.append(markdown_table(heads, rows, heads[1:]))
    if report.explained:
        parts.append(_folded("Reviewed deviations", _cells_table(report.explained)))
    if report.claims:
        heads = ["Claim", "Verdict", "States"]
        listed = report.claims if details else [c for c in report.claims if c.is_unexplained]
        claimed = [
            [markdown(f"{c.claim.name} ({c.paper})"), c.words, markdown(claim_in_words(c))]
            for c in listed
        ]
        if claimed:
            parts.append(_folded("Claims", markdown_table(heads, claimed)))
    if details:
        parts.append(_folded("All cells", _cells_table(report.verdicts)))
        parts.append(_folded("Notes", "\n".join(f"- {markdown(note)}" for note in report.notes)))
    return "\n\n".join(parts)


def _cells_table(cells: Sequence[CellVerdict]) -> str:
    heads = ["Cell", "Verdict", *FIGURES, "Note"]
    rows = []
    for cell in cells:
        figures = map(markdown, verdict_figures(cell).values())
        note = cell.explanation or cell.remark or ""
        rows.append([markdown(place_in_words(cell)), cell.verdict.value, *figures, markdown(note)])
    return markdown_table(heads, rows, FIGURES)


def _folded(title: str, text: str) -> str:
    """Return a part that a reader opens."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
