"""Tables for terminals as Markdown and as LaTeX (package booktabs), each with its notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from dprepro.runtime.terminal import Stacked, StackedCell
from dprepro.runtime.text import latex, markdown, markdown_table, one_line


def written_tables(tables: Sequence[Stacked], notes: Iterable[str], format: str) -> str:
    """Return tables one below the other in ``markdown`` or ``latex``.

    Notes are a list below the tables; in LaTeX they are comments above them.
    """
    if format == "markdown":
        listed = "\n".join(f"- {markdown(note)}" for note in notes)
        return "\n\n".join([*map(_markdown, tables), listed])
    comments = "\n".join(f"% {one_line(note)}" for note in notes)
    return "\n\n".join([comments, *map(_latex, tables)])


def _rows(table: Stacked) -> Iterator[list[str]]:
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        yield [_words(cell) for cell in cells]


def _words(cell: StackedCell) -> str:
    return cell if isinstance(cell, str) else Text(" ").join(cell).plain


def _markdown(table: Stacked) -> str:
    heads = [markdown(column.title) for column in table.columns]
    numbers = {markdown(column.title) for column in table.columns if column.justify == "right"}
    rows = [[markdown(cell) for cell in row] for row in _rows(table)]
    return f"### {markdown(table.title)}\n\n{markdown_table(heads, rows, numbers)}"


def _latex(table: Stacked) -> str:
    places = "".join("r" if column.justify == "right" else "l" for column in table.columns)
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{latex(table.title)}}}",
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        _line(column.title for column in table.columns),
        r"\midrule",
    ]
    for place, row in enumerate(_rows(table)):
        lines += [_line(row)] + [r"\addlinespace"] * (place in table.ends)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _line(cells: Iterable[str]) -> str:
    return " & ".join(map(latex, cells)) + r" \\"
