"""What results there are, on one screen: printed tables, configs and datasets, and how to ask."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dprepro.judge.cell_matching import printed_places, stands_in
from dprepro.papers.document import Document
from dprepro.report.layout import splits_needed
from dprepro.results.folder import ResultCell, Results
from dprepro.runtime.terminal import counted

# A folder of hundreds of configs still takes one screen: beyond so many only names are given, and
# of fewer where there are many printed tables.
_SCREEN = 40
_MOST_OWN = 8
_MOST_NAMES = 40
_LONGEST_NAME = 16

_Placed = Mapping[tuple[str, str], Sequence[ResultCell]]
"""By (document, table), the cells that stand there."""


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
    """All there is; `datasets` and `journals` are names."""

    parts: tuple[Part, ...]
    datasets: tuple[str, ...]
    journals: tuple[str, ...]
    cells: int
    partial: int


def build_index(results: Results, documents: Sequence[Document]) -> Index:
    """Count the cells of each printed table, and of each config that answers to none.

    Cells without a number count too, as in part; but not those that were skipped for a reason.
    """
    measured = [
        cell
        for cell in (*results.cells, *results.begun)
        if cell.values or cell.failed or not cell.skipped
    ]
    # Where nothing is known of any config that holds a cell, nobody knows what it answers to.
    known = [c for c in measured if c.papers is not None or results.plans.keys() & c.journals]
    placed = _placed(known, documents)
    printed = {id(cell) for found in placed.values() for cell in found}
    own = [cell for cell in measured if id(cell) not in printed]
    parts = [_printed(document, documents, placed) for document in documents]
    parts.append(_unprinted(own, results))
    partial = {id(cell) for cell in own if _is_partial(cell)}
    for document in documents:
        for name in document.tables:
            found = placed.get((document.paper, name), ())
            partial |= {id(cell) for cell in found if _is_partial(cell, document, name)}
    return Index(
        tuple(part for part in parts if part.lines),
        tuple(dict.fromkeys(cell.dataset for cell in measured)),
        results.journals,
        len(measured),
        len(partial),
    )


def _placed(cells: Sequence[ResultCell], documents: Iterable[Document]) -> _Placed:
    """Return the cells that stand in each printed table; tables without any are left out."""
    placed = {}
    for document in documents:
        places = printed_places(document)
        may = [cell for cell in cells if cell.papers is None or document.paper in cell.papers]
        for name in document.tables:
            found = [cell for cell in may if stands_in(cell, document, name, places)]
            if found:
                placed[document.paper, name] = found
    return placed


def _unprinted(cells: Sequence[ResultCell], results: Results) -> Part:
    """Return the part of configs that hold results of no printed table."""
    journals = dict.fromkeys(name for cell in cells for name in cell.journals)
    titles = dict.fromkeys(journals, "(config unknown)")
    titles |= {name: plan.title for name, plan in results.plans.items()}
    lines = tuple(
        _line(name, titles[name], [c.part(name) for c in cells if name in c.journals])
        for name in journals
    )
    return Part("Configs without a printed table", "dprepro table NAME", lines)


def render_index(index: Index, folder: Path, width: int) -> str:
    """Return the index as lines of at most `width` characters."""
    for most in range(_MOST_OWN, -1, -1):
        lines = list(_lines(index, folder, width, most))
        if len(lines) <= _SCREEN:
            break
    return "\n".join(lines)


def _lines(index: Index, folder: Path, width: int, most: int) -> Iterator[str]:
    in_part = f", {index.partial} of them in part" if index.partial else ""
    configs = counted(len(index.journals), "config")
    yield f"{folder}: {counted(index.cells, 'cell')}{in_part}, from {configs}"
    if not index.cells:
        from dprepro.experiment.config import to_run  # it takes time, and most folders have results

        yield ""
        yield from textwrap.wrap(
            f"No task has finished yet; `dprepro run CONFIG` runs them: "
            f"{_names([to_run(name) for name in index.journals])}",
            width,
            break_on_hyphens=False,
        )
        return
    for place, part in enumerate(index.parts):
        if most or not place:  # no room between them where there is none for single configs
            yield ""
        yield from _part_lines(part, width, most)
    yield ""
    yield "Datasets: dprepro table NAME"
    yield from _wrapped(_names(index.datasets), width)
    yield from textwrap.wrap(
        "All results of one metric: dprepro table --metric auc [--compare] [--format F]", width
    )


def _part_lines(part: Part, width: int, most: int) -> Iterator[str]:
    heading = f"{part.heading}: {part.command}"
    yield from [heading] if len(heading) <= width else [f"{part.heading}:", f"  {part.command}"]
    shown = part.lines if part.command != "dprepro table NAME" else part.lines[:most]
    for line in shown:
        count = counted(line.cells, "cell") + (f", {line.partial} in part" if line.partial else "")
        text = f"  {line.name:<{_LONGEST_NAME}} {line.title} ({count})"
        yield text if len(text) <= width else _cut(line, count, width)
    if rest := [line.name for line in part.lines[len(shown) :]]:
        yield from _wrapped(_names(rest), width)


def _cut(line: Line, count: str, width: int) -> str:
    room = max(10, width - max(_LONGEST_NAME, len(line.name)) - len(count) - 7)
    title = textwrap.wrap(line.title, room, max_lines=1, placeholder=" …")
    return f"  {line.name:<{_LONGEST_NAME}} {title[0]} ({count})"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def _printed(document: Document, documents: Sequence[Document], placed: _Placed) -> Part:
    lines = tuple(
        _line(name, layout.title, placed[document.paper, name], document, name)
        for name, layout in document.tables.items()
        if (document.paper, name) in placed
    )
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


def _line(
    name: str,
    title: str,
    cells: Iterable[ResultCell],
    document: Document | None = None,
    table: str = "",
) -> Line:
    found = list(cells)
    return Line(name, title, len(found), sum(_is_partial(c, document, table) for c in found))


def _is_partial(cell: ResultCell, document: Document | None = None, table: str = "") -> bool:
    """Whether the table marks it: splits are missing of the metric that has most of them."""
    needed = splits_needed(cell, cell.dataset, document, table)
    return all(len(values) < needed for values in cell.values.values())
