"""What results there are, on one screen: printed tables, configs and datasets, and how to ask."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dprepro.published.document import Document
from dprepro.report.results import ResultCell, Results
from dprepro.report.tables import answers, printed_places

# A folder of hundreds of configs still takes one screen: beyond so many only names are given.
_MOST_OWN = 8
_MOST_NAMES = 40
_LONGEST_NAME = 16


@dataclass(frozen=True)
class Line:
    """A table or a config, and its cells: how many hold numbers, and how many of these in part."""

    name: str
    title: str
    cells: int
    partial: int


@dataclass(frozen=True)
class Part:
    """Lines that one command shows, each by its name in the place of the capitals."""

    heading: str
    command: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Index:
    """All there is. `datasets` are in the order of the journals."""

    parts: tuple[Part, ...]
    datasets: tuple[str, ...]
    journals: int
    cells: int
    partial: int


def build_index(results: Results, documents: Sequence[Document]) -> Index:
    """Count the cells of each printed table, and of each config that answers to none.

    Cells without a number count too, as in part; but not those that were skipped for a reason.
    """
    measured = [
        cell
        for cell in (*results.cells, *results.planned)
        if cell.values or cell.failed or not cell.skipped
    ]
    parts = [_printed(document, documents, measured) for document in documents]
    placed = {
        id(cell)
        for document, places in ((d, printed_places(d)) for d in documents)
        for cell in measured
        for name in document.tables
        if answers(cell, document, name, places)
    }
    own = [cell for cell in measured if id(cell) not in placed]
    journals = dict.fromkeys(name for cell in own for name in cell.journals)
    lines = tuple(
        _line(name, _title(results, name), [cell for cell in own if name in cell.journals])
        for name in journals
    )
    parts.append(Part("Configs without a printed table", "dprepro table NAME", lines))
    return Index(
        tuple(part for part in parts if part.lines),
        tuple(dict.fromkeys(cell.dataset for cell in measured)),
        len({name for cell in results.cells for name in cell.journals}),
        len(measured),
        sum(map(_is_partial, measured)),
    )


def render_index(index: Index, folder: Path, width: int) -> str:
    """Return the index as lines of at most `width` characters."""
    return "\n".join(_lines(index, folder, width))


def _lines(index: Index, folder: Path, width: int) -> Iterator[str]:
    in_part = f", {index.partial} of them in part" if index.partial else ""
    yield f"{folder}: {index.cells} cells{in_part}, from {index.journals} configs"
    for part in index.parts:
        yield ""
        yield f"{part.heading}: {part.command}"
        shown = part.lines if part.command != "dprepro table NAME" else part.lines[:_MOST_OWN]
        for line in shown:
            cells = f"{line.cells} cell{'s' if line.cells > 1 else ''}"
            count = cells + (f", {line.partial} in part" if line.partial else "")
            text = f"  {line.name:<{_LONGEST_NAME}} {line.title} ({count})"
            yield text if len(text) <= width else _cut(line, count, width)
        if rest := [line.name for line in part.lines[len(shown) :]]:
            yield from _wrapped(_names(rest), width)
    yield ""
    yield "Datasets: dprepro table NAME"
    yield from _wrapped(_names(index.datasets), width)
    yield ""
    yield from textwrap.wrap(
        "All that has a metric: dprepro table --metric auc. Published numbers and verdicts beside "
        "ours: --compare. To a file: --format markdown, latex, csv or json.",
        width,
    )


def _cut(line: Line, count: str, width: int) -> str:
    room = max(10, width - max(_LONGEST_NAME, len(line.name)) - len(count) - 7)
    return f"  {line.name:<{_LONGEST_NAME}} {line.title[:room].rstrip()}… ({count})"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def _printed(
    document: Document, documents: Sequence[Document], measured: Sequence[ResultCell]
) -> Part:
    places = printed_places(document)
    found = [
        (name, layout.title, [c for c in measured if answers(c, document, name, places)])
        for name, layout in document.tables.items()
    ]
    lines = tuple(_line(name, title, cells) for name, title, cells in found if cells)
    command = f"dprepro table TABLE --paper {_beginning(document, documents)}"
    return Part(document.paper, command, lines)


def _beginning(document: Document, documents: Sequence[Document]) -> str:
    """Return the words that begin this document's name and no other's."""
    words = document.paper.split("-")
    for count in range(1, len(words)):
        short = "-".join(words[:count])
        if sum(other.paper.startswith(short) for other in documents) == 1:
            return short
    return document.paper


def _title(results: Results, journal: str) -> str:
    plan = results.plans.get(journal)
    return plan.title if plan else ""


def _line(name: str, title: str, cells: Iterable[ResultCell]) -> Line:
    found = list(cells)
    return Line(name, title, len(found), sum(map(_is_partial, found)))


def _is_partial(cell: ResultCell) -> bool:
    return max(map(len, cell.values.values()), default=0) < cell.planned
