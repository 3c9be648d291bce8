"""Render tables of results: rich for terminals, Markdown, LaTeX, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.text import Text

from dprepro.privacy.unverified import NO_LEDGER
from dprepro.report.judge.verdicts import CellVerdict, Verdict
from dprepro.report.layout.tables import Entry, Group, ResultTable
from dprepro.report.read.cell import TUNED
from dprepro.report.write.rows import table_rows
from dprepro.stacked import Column, Stacked

NON_PRIVATE = "Non-Private"
LOOKS = {"box": box.SIMPLE_HEAD, "title_justify": "left"}
STYLES = {
    Verdict.REPRODUCED: "green",
    Verdict.BETTER: "cyan",
    Verdict.WORSE: "red",
    Verdict.INCOMPLETE: "yellow",
    Verdict.NOT_RUN: "dim",
    Verdict.IMPOSSIBLE: "dim",
}
_LATEX_SYMBOLS = {
    Verdict.REPRODUCED: r"$=$",
    Verdict.BETTER: r"$\uparrow$",
    Verdict.WORSE: r"$\downarrow$",
    Verdict.INCOMPLETE: r"$\ldots$",
    Verdict.NOT_RUN: r"$\cdot$",
    Verdict.IMPOSSIBLE: r"$\times$",
}
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "²": r"\textsuperscript{2}",
    "ε": r"$\varepsilon$",
    "…": r"\ldots{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}


@dataclass(frozen=True)
class Style:
    """What to show: published values and verdicts beside the measured, the epsilon really spent."""

    compare: bool = False
    true_epsilon: bool = False


@dataclass(frozen=True)
class Words:
    """An entry in words: the measured number, a mark on it, the published number, its verdict."""

    measured: str
    mark: str
    published: str
    verdict: Verdict | None
    is_best: bool


def words(entry: Entry, group: Group, metric: str, style: Style) -> Words:
    """Put an entry into words; numbers get the group's digits after the point."""
    result, verdict = entry.result, entry.verdict if style.compare else None
    measured, marks = "", []
    if result and result.splits(metric):
        measured = number(result.mean(metric), result.sd(metric), group.decimals)
    if result and not result.is_complete(metric, entry.planned):
        if result.skipped and not result.splits(metric) and not result.failed:
            marks.append("skipped")
        else:
            failed = f", {result.failed} failed" if result.failed else ""
            marks.append(f"{result.splits(metric)}/{entry.planned}{failed}")
    elif entry.clash:
        marks.append(entry.clash.mark)
    elif result and verdict and verdict.note and verdict.tolerance is not None:
        marks.append(verdict.note)
    if result and result.is_unverified:
        marks.append("unverified")
    if result and result.is_tuned:
        marks.append("tuned")
    if style.true_epsilon and result and result.true_epsilon is not None:
        marks.append(f"ε {result.true_epsilon:.3g}")
    printed = verdict.published if verdict else None
    published = number(printed.mean, printed.std, printed.decimals) if printed else ""
    mark = f"[{'; '.join(marks)}]" if marks else ""
    return Words(measured, mark, published, verdict.verdict if verdict else None, entry.is_best)


def number(mean: float, sd: float | None, decimals: int) -> str:
    """Return ``mean ± sd`` with `decimals` digits after the point."""
    spread = "" if sd is None else f" ± {sd:.{decimals}f}"
    return f"{mean:.{decimals}f}{spread}"


def figures(cell: CellVerdict) -> list[str]:
    """Return published, measured, difference, interval, tolerance and p-value of a verdict.

    All but the published get a digit more than printed: rounding hides it.
    """
    printed, result, comparison = cell.published, cell.result, cell.comparison
    digits = printed.decimals + 1
    measured, difference, interval, p_value = "", "", "", ""
    if result is not None and cell.measured is not None:
        measured = number(cell.measured, result.sd(printed.metric), digits)
        difference = f"{cell.difference:+.{digits}f}"
    if comparison is not None:
        interval = f"{comparison.low:+.{digits}f} to {comparison.high:+.{digits}f}"
        p_value = f"{comparison.p_equivalence:.2g}"
    width = "" if cell.tolerance is None else f"{cell.tolerance:.{digits}f}"
    published = number(printed.mean, printed.std, printed.decimals)
    return [published, measured, difference, interval, width, p_value]


def level(epsilon: float) -> str:
    """Return the row heading of a privacy level."""
    return NON_PRIVATE if math.isinf(epsilon) else f"{epsilon:g}"


def legend(tables: Sequence[ResultTable], style: Style) -> list[str]:
    """Return the sentences below a table: what its marks mean, and why entries are missing."""
    entries = [(e, t) for t in tables for g in t.groups for row in g.rows for e in row]
    lines = ["Mean ± standard deviation over splits; the best of a row is bold."]
    if any(e.result and not e.result.is_complete(t.metric.name, e.planned) for e, t in entries):
        lines.append("[n/m]: n of the m splits that make it complete have finished.")
    if any(e.clash for e, _ in entries):
        lines.append("[n results]: configs differ in its settings, see the notes.")
    if style.true_epsilon and any(
        e.result and e.result.true_epsilon is not None for e, _ in entries
    ):
        lines.append("[ε]: what the guarantee really spends, recomposed from the ledger.")
    if any(e.result and e.result.is_unverified for e, _ in entries):
        lines.append(
            f"[unverified]: the method {NO_LEDGER}; nothing says what was really spent, and it is "
            "never the best of a row."
        )
    if any(e.result and e.result.is_tuned for e, _ in entries):
        lines.append(f"[tuned]: {TUNED}.")
    judged = {e.verdict.verdict for e, _ in entries if style.compare and e.verdict}
    if judged:
        symbols = ", ".join(f"{v.symbol} {v.value}" for v in Verdict if v in judged)
        lines.append(f"In brackets the published value and the verdict: {symbols}.")
    reasons = dict.fromkeys(
        f"{e.label}: {message}" for e, _ in entries if e.result for message in e.result.messages
    )
    notes = dict.fromkeys(f"Note: {note}" for table in tables for note in table.notes)
    return [*lines, *notes, *reasons]


def rich_tables(tables: Sequence[ResultTable], style: Style) -> RenderableType:
    """Return the tables for a terminal."""
    return Renderables(
        *(_rich_table(table, style) for table in tables),
        *(Text(line, style="dim") for line in legend(tables, style)),
    )


def _rich_table(table: ResultTable, style: Style) -> Stacked:
    rows = [(group, row) for group in table.groups for row in group.rows]
    first = {id(group.rows[0]): group.title for group in table.groups if group.rows}
    columns = [
        Column("Dataset", [first.get(id(row), "") for _, row in rows]),
        Column("ε", [level(row[0].epsilon) for _, row in rows]),
    ]
    for position, column in enumerate(table.columns):
        entries = (words(row[position], group, table.metric.name, style) for group, row in rows)
        columns.append(Column(column.title, [_rich_entry(entry) for entry in entries]))
    last = {id(group.rows[-1]) for group in table.groups if group.rows}
    ends = {position for position, (_, row) in enumerate(rows) if id(row) in last}
    return Stacked(heading(table), columns, 2, ends, LOOKS)


def _rich_entry(entry: Words) -> tuple[Text, ...]:
    """Return the number with what is printed below it; a mark is a piece of its own."""
    pieces = [Text(entry.measured, style="bold" if entry.is_best else "")]
    if entry.mark:
        pieces = [piece for piece in pieces if piece.plain] + [Text(entry.mark, style="yellow")]
    if entry.verdict:
        published = f"\n({entry.published}) {entry.verdict.symbol}"
        pieces[-1] = pieces[-1] + Text(published, style=STYLES[entry.verdict])
    return tuple(pieces)


def markdown_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return the tables in Markdown, each below a heading, and the legend."""
    parts = []
    for table in tables:
        header = _header(table)
        lines = [f"### {_markdown_escape(heading(table))}", ""]
        lines += [_markdown_row(header), _markdown_row(["---"] * len(header))]
        for group in table.groups:
            for row in group.rows:
                cells = [_markdown_entry(words(e, group, table.metric.name, style)) for e in row]
                lines.append(_markdown_row([group.title, level(row[0].epsilon), *cells]))
        parts.append("\n".join(lines))
    notes = "\n".join(f"- {_markdown_escape(line)}" for line in legend(tables, style))
    return "\n\n".join([*parts, notes])


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_escape(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _markdown_entry(entry: Words) -> str:
    measured = f"**{entry.measured}**" if entry.is_best else entry.measured
    beside = f"({entry.published}, {entry.verdict.value})" if entry.verdict else ""
    return " ".join(part for part in (measured, entry.mark, beside) if part) or "—"


def latex_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return the tables in LaTeX (package booktabs); with `compare`, published rows lie below."""
    notes = "\n".join(f"% {' '.join(line.split())}" for line in legend(tables, style))
    return "\n\n".join([notes, *(_latex_table(table, style) for table in tables)])


def _latex_table(table: ResultTable, style: Style) -> str:
    lines = [r"\begin{table}[t]", r"\centering", rf"\caption{{{latex_escape(heading(table))}}}"]
    lines += [rf"\begin{{tabular}}{{ll{'c' * len(table.columns)}}}", r"\toprule"]
    lines.append(_latex_row(latex_escape(title) for title in _header(table)))
    for group in table.groups:
        lines.append(r"\midrule")
        for position, row in enumerate(group.rows):
            entries = [words(e, group, table.metric.name, style) for e in row]
            first = latex_escape(group.title) if position == 0 else ""
            lines.append(_latex_row([first, level(row[0].epsilon), *map(_latex_measured, entries)]))
            if style.compare and any(entry.verdict for entry in entries):
                lines.append(_latex_row(["", "", *map(_latex_published, entries)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_number(text: str) -> str:
    return text.replace(" ± ", r" $\pm$ ")


def _latex_measured(entry: Words) -> str:
    number = _latex_number(entry.measured)
    # An entry that opens with a bracket would be read as the argument of the row end before it.
    mark = f"{{}}{latex_escape(entry.mark)}" if entry.mark else ""
    return " ".join(
        part for part in (rf"\textbf{{{number}}}" if entry.is_best else number, mark) if part
    )


def _latex_published(entry: Words) -> str:
    if entry.verdict is None:
        return ""
    symbol = _LATEX_SYMBOLS[entry.verdict]
    return rf"{{\footnotesize ({_latex_number(entry.published)}) {symbol}}}"


def latex_escape(text: str) -> str:
    """Return `text` with LaTeX's special characters escaped."""
    return "".join(_LATEX_SPECIAL.get(character, character) for character in text)


def csv_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return one CSV row an entry; ``inf`` stands for non-private, as in the published files."""
    rows = list(table_rows(tables, style.compare))
    for row in rows:
        row["config"] = "+".join(row["config"])
        row["epsilon"] = "inf" if row["epsilon"] is None else row["epsilon"]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def json_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return a JSON list with one object an entry; epsilon is null for non-private ones."""
    rows = list(table_rows(tables, style.compare))
    return json.dumps(rows, indent=1, allow_nan=False, ensure_ascii=False)


def heading(table: ResultTable) -> str:
    """Return the table's title, with the document's table number where it has one."""
    return f"{table.paper}, Table {table.table}: {table.title}" if table.paper else table.title


def _header(table: ResultTable) -> list[str]:
    return ["Dataset", "ε", *(column.title for column in table.columns)]
