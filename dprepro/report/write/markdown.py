"""Tables of results in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dprepro.report.layout.view import ResultTable
from dprepro.report.layout.words import Style, Words, column_headings, heading, legend, words
from dprepro.report.levels import level
from dprepro.text import markdown


def markdown_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return the tables in Markdown, each below a heading, and the legend."""
    parts = []
    for table in tables:
        header = column_headings(table)
        lines = [f"### {markdown(heading(table))}", ""]
        lines += [_markdown_row(map(markdown, header)), _markdown_row(["---"] * len(header))]
        for group in table.groups:
            for row in group.rows:
                cells = [_markdown_entry(words(e, group, table.metric.name, style)) for e in row]
                lines.append(_markdown_row([markdown(group.title), level(row[0].epsilon), *cells]))
        parts.append("\n".join(lines))
    notes = "\n".join(f"- {markdown(line)}" for line in legend(tables, style))
    return "\n\n".join([*parts, notes])


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_entry(entry: Words) -> str:
    measured = f"**{entry.measured}**" if entry.is_best else entry.measured
    beside = f"({entry.published}, {entry.verdict.value})" if entry.verdict else ""
    return " ".join(part for part in (measured, markdown(entry.mark), beside) if part) or "—"
