"""Which result answers to a printed cell: decided here, for tables, verdicts and the page alike."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dprepro.papers.document import Document, Protocol
from dprepro.papers.published_cell import PublishedCell
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import NON_PRIVATE, level
from dprepro.runtime.text import shell

Place = tuple[str, str, str, float]
"""(table, dataset, method, epsilon) of a printed cell."""


@dataclass(frozen=True)
class Clash:
    """Two or more results of one label, dataset and epsilon, with different settings."""

    cells: tuple[ResultCell, ...]

    @property
    def mark(self) -> str:
        """What a table shows instead of a number."""
        return f"{len(self.cells)} results"

    @property
    def differences(self) -> str:
        """Name the settings that differ, parameters one by one, and their values."""
        found = [cell.task.to_json() for cell in self.cells]
        tasks = [{**task, **task["params"], "params": None, "split": None} for task in found]
        names = dict.fromkeys(name for task in tasks for name in task)
        differ = {
            name: values
            for name in names
            if len(set(values := [str(task.get(name, "default")) for task in tasks])) > 1
        }
        return ", ".join(f"{name} {' or '.join(found)}" for name, found in differ.items())

    @property
    def place(self) -> str:
        """The dataset and the label."""
        return f"{self.cells[0].dataset}, {self.cells[0].task.label}"

    def __str__(self) -> str:
        return _sentence(self, "")


def clash_notes(clashes: Iterable[Clash]) -> list[str]:
    """Say once for each dataset, label and set of configs how their results differ.

    The settings are those at the first privacy level; all levels are named.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[Clash]] = {}
    for clash in clashes:
        journals = tuple(_names(cell) for cell in clash.cells)
        groups.setdefault((clash.place, journals), []).append(clash)
    return [_sentence(found[0], _levels(found)) for found in groups.values()]


def apart_notes(cells: Iterable[ResultCell]) -> list[str]:
    """Say once for each label and set of configs why their results stand apart."""
    places: dict[tuple[str, float], list[ResultCell]] = {}
    for cell in cells:
        if cell.has_records:
            places.setdefault((cell.task.label, cell.task.epsilon), []).append(cell)
    groups: dict[tuple[str, ...], list[Clash]] = {}
    for found in places.values():
        if len(found) > 1:
            clash = Clash(tuple(found))
            groups.setdefault((clash.place, *map(_names, found)), []).append(clash)
    return [
        f"{clashes[0].place}{_levels(clashes)}: {' and '.join(names)} differ in their settings "
        f"({clashes[0].differences}), and stand apart"
        for (_, *names), clashes in groups.items()
    ]


def _sentence(clash: Clash, levels: str) -> str:
    names = [_names(cell) for cell in clash.cells]
    return (
        f"{clash.place}{levels}: {clash.mark} with different settings ({clash.differences}), in "
        f"{' and '.join(names)}. Choose one with --config "
        f"{shell(clash.cells[0].journals[0])}, or give one of them a label of its own in its config"
    )


def _levels(clashes: Sequence[Clash]) -> str:
    levels = dict.fromkeys(level(clash.cells[0].task.epsilon) for clash in clashes)
    return f" at epsilon {', '.join(levels)}" if list(levels) != [NON_PRIVATE] else ""


def _names(cell: ResultCell) -> str:
    return "+".join(cell.journals)


def answer(cell: PublishedCell, document: Document, results: Results) -> ResultCell | Clash | None:
    """Return the result that answers to a printed cell; None if there is none.

    A result answers if it `follows` the document and has the cell's metric, or has no metric yet
    because its splits failed or were skipped. Of several, see `choose`.
    """
    found = following(cell, document, results)
    measured = [result for result in found if cell.metric in result.values or not result.values]
    return choose(measured, (document.paper, cell.table))


def following(cell: PublishedCell, document: Document, results: Results) -> list[ResultCell]:
    """Return the results at a printed cell's dataset, method and epsilon that follow `document`."""
    protocol = document.protocol_of(cell.table, cell.dataset)
    candidates = results.all(cell.dataset, cell.method, cell.epsilon)
    return [result for result in candidates if follows(result, document.paper, protocol)]


def answer_or_other(
    cell: PublishedCell | None,
    document: Document,
    table: str,
    results: Results,
    shown: Sequence[ResultCell],
) -> ResultCell | Clash | None:
    """Return what a printed table shows in a field: the answer to its printed cell, else another.

    `cell` is None where nothing is printed. `shown` are the results of the field's dataset, method
    and epsilon that stand in the table. Where nothing answers, or nothing is printed, one of these
    is shown: one that follows the document, if there is one.
    """
    found = answer(cell, document, results) if cell else None
    if found is not None or not shown:
        return found
    protocol = document.protocol_of(table, shown[0].dataset)
    alike = [r for r in shown if r.has_records and follows(r, document.paper, protocol)]
    return choose(alike or shown, (document.paper, table))


def choose(
    cells: Sequence[ResultCell], place: tuple[str, str] | None = None
) -> ResultCell | Clash | None:
    """Return the only result; a `Clash` if there are several, None if there is none.

    One that is planned and has no record yet counts only where there is no other. `place` is a
    document and its table: results whose config answers to these are preferred, and of each only
    what is `answering`.
    """
    cells = [cell for cell in cells if cell.has_records] or cells[:1]
    if place is not None and len(cells) > 1:
        cells = [cell for cell in cells if place in cell.tables] or cells
    cells = [cell.answering for cell in cells] if place is not None else cells
    if len(cells) > 1:
        return Clash(tuple(cells))
    return cells[0] if cells else None


def follows(result: ResultCell, paper: str, protocol: Protocol) -> bool:
    """Whether `result` follows a document: its config names it, and it ran by its protocol.

    Results on synthetic data follow no document. A delta of 0 is the stronger promise and always
    counts: non-private and purely epsilon-private methods are recorded with it.
    """
    if result.task.is_synthetic:
        return False
    if result.papers is not None and paper not in result.papers:
        return False
    return keeps_to(result, protocol)


def keeps_to(result: ResultCell, protocol: Protocol) -> bool:
    """Whether `result` ran by a protocol: its delta, and how its test rows were chosen."""
    task = result.task
    same_delta = task.delta == 0 or math.isclose(task.delta, protocol.delta)
    same_rows = task.evaluation == protocol.evaluation
    return same_delta and same_rows and math.isclose(task.test_share, protocol.held_out)


def printed_places(document: Document) -> set[Place]:
    """Return the place of every printed cell."""
    return {(c.table, c.dataset, c.method, c.epsilon) for c in document.cells()}


def of_document(results: Results, document: Document) -> Results:
    """Return the results that stand in a table of a document, of each what is `answering`."""
    places = printed_places(document)
    cells = [
        cell.answering
        for cell in results.cells
        if any(stands_in(cell, document, table, places) for table in document.tables)
    ]
    return Results(tuple(cells), results.plans, held=results.held)


def stands_in(
    result: ResultCell, document: Document, table: str, places: Collection[Place]
) -> bool:
    """Whether a result stands in a printed table; `places` are the document's `printed_places`.

    It does if the table prints its dataset and its config names the document, unless the config
    names other tables that print the dataset. A cell that this table prints always stands in it.
    """
    if result.dataset not in document.tables[table].datasets:
        return False
    if result.papers is None:
        return True
    if document.paper not in result.papers:
        return False
    if (table, result.dataset, result.task.label, result.task.epsilon) in places:
        return True
    named = {
        name
        for paper, name in result.tables
        if paper == document.paper
        and name in document.tables
        and result.dataset in document.tables[name].datasets
    }
    return not named or table in named
