"""Tables of results for papers and pages: in Markdown, and in LaTeX (package booktabs)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dprepro.report.judge.verdicts import Verdict
from dprepro.report.layout.view import ResultTable
from dprepro.report.layout.words import Style, Words, column_headings, heading, legend, words
from dprepro.report.levels import level
from dprepro.text import latex, markdown, markdown_table, one_line

_LATEX_SYMBOLS = {
    Verdict.EQUIVALENT: r"$\approx$",
    Verdict.BETTER: r"$\uparrow$",
    Verdict.WORSE: r"$\downarrow$",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INCOMPLETE: r"$\ldots$",
    Verdict.NOT_RUN: r"$\cdot$",
    Verdict.IMPOSSIBLE: r"$\times$",
}


def markdown_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return the tables in Markdown, each below a heading, and the legend."""
    parts = []
    for table in tables:
        rows = [
            [
                markdown(group.title),
                level(row[0].epsilon),
                *(_markdown_entry(words(e, group, table.metric.name, style)) for e in row),
            ]
            for group in table.groups
            for row in group.rows
        ]
        heads = list(map(markdown, column_headings(table)))
        parts.append(f"### {markdown(heading(table))}\n\n{markdown_table(heads, rows)}")
    notes = "\n".join(f"- {markdown(line)}" for line in legend(tables, style))
    return "\n\n".join([*parts, notes])


def _markdown_entry(entry: Words) -> str:
    measured = f"**{entry.measured}**" if entry.is_best else entry.measured
    beside = f"({entry.published}, {entry.verdict.value})" if entry.verdict else ""
    return " ".join(part for part in (measured, markdown(entry.mark), beside) if part) or "—"


def latex_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return the tables in LaTeX (package booktabs); with `compare`, published rows lie below."""
    notes = "\n".join(f"% {one_line(line)}" for line in legend(tables, style))
    return "\n\n".join([notes, *(_latex_table(table, style) for table in tables)])


def _latex_table(table: ResultTable, style: Style) -> str:
    lines = [r"\begin{table}[t]", r"\centering", rf"\caption{{{latex(heading(table))}}}"]
    lines += [rf"\begin{{tabular}}{{ll{'c' * len(table.columns)}}}", r"\toprule"]
    lines.append(_latex_row(latex(title) for title in column_headings(table)))
    for group in table.groups:
        lines.append(r"\midrule")
        for position, row in enumerate(group.rows):
            entries = [words(e, group, table.metric.name, style) for e in row]
            first = latex(group.title) if position == 0 else ""
            lines.append(_latex_row([first, level(row[0].epsilon), *map(_latex_measured, entries)]))
            if style.compare and any(entry.verdict for entry in entries):
                lines.append(_latex_row(["", "", *map(_latex_published, entries)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_measured(entry: Words) -> str:
    number = latex(entry.measured)
    mark = latex(entry.mark)
    return " ".join(
        part for part in (rf"\textbf{{{number}}}" if entry.is_best else number, mark) if part
    )


def _latex_published(entry: Words) -> str:
    if entry.verdict is None:
        return ""
    symbol = _LATEX_SYMBOLS[entry.verdict]
    return rf"{{\footnotesize ({latex(entry.published)}) {symbol}}}"
