"""Lay cells out: rows epsilon, columns methods, a group of rows a dataset.

Drawn figures, as a page places them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from markupsafe import Markup

from dprepro.judge.cell_matching import Clash, answer_or_other, choose
from dprepro.judge.verdicts import CellVerdict
from dprepro.papers.cells import PublishedCell
from dprepro.papers.document import Column, Document
from dprepro.results.cell import is_shipped, shipped
from dprepro.results.folder import ResultCell, Results
from dprepro.results.metrics import Metric

# Where neither a document nor the metric sets the digits: so many significant ones.
_SIGNIFICANT = 4

_Field = tuple[str, str, float]
"""(dataset, label, epsilon): where a number stands in a table."""


def splits_needed(
    cell: ResultCell | None, dataset: str, document: Document | None = None, table: str = ""
) -> int:
    """Return how many splits make a cell complete: all planned, and all that a verdict takes.

    Parameters
    ----------
    document, table
        Where it is printed; None where it answers to nothing printed.
    """
    planned = cell.planned if cell else 1
    if document is None:
        return planned
    return max(planned, document.protocol_of(table, dataset).needed)


@dataclass(frozen=True)
class Entry:
    """One field of a table: what was measured and, when comparing, the verdict on it.

    Attributes
    ----------
    result
        The result that answers to the printed cell. Where none does, or nothing is printed, another
        result of this dataset, label and epsilon; the verdict then says "not run".
    planned
        The number of splits that make it complete.
    is_best
        Whether it is the best of its row.
    clash
        Several results with different settings; there is then no `result`.
    """

    label: str
    epsilon: float
    result: ResultCell | None = None
    verdict: CellVerdict | None = None
    planned: int = 1
    is_best: bool = False
    clash: Clash | None = None


@dataclass(frozen=True)
class Group:
    """The rows of one dataset.

    `decimals` is how many digits after the point its numbers get. `printed` are the methods of
    which the document prints numbers here, shipped runs of them included.
    """

    dataset: str
    title: str
    decimals: int
    rows: tuple[tuple[Entry, ...], ...]
    printed: frozenset[str] = frozenset()

    @property
    def clashes(self) -> list[Clash]:
        """The clashes of all rows, in order."""
        return [entry.clash for row in self.rows for entry in row if entry.clash]


@dataclass(frozen=True)
class ResultTable:
    """A table: one entry a column in each row; the non-private row is the last of its group."""

    title: str
    metric: Metric
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    paper: str | None = None
    table: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def entries(self) -> list[tuple[Group, Entry]]:
        """All entries, row by row, each with its group."""
        return [(group, entry) for group in self.groups for row in group.rows for entry in row]


def _present(headings: Sequence[Column], labels: set[str]) -> list[Column]:
    """Return the headings whose method appears, or whose non-private twin does and no other has."""
    twins = {column.nonprivate for column in headings if column.method in labels}
    shown = []
    for column in headings:
        lone = column.nonprivate in labels and column.nonprivate not in twins
        if column.method in labels or lone:
            shown.append(column)
            twins.add(column.nonprivate)
    return shown


def _shipped(column: Column) -> Column:
    twin = column.nonprivate and shipped(column.nonprivate)
    return Column(title=shipped(column.title), method=shipped(column.method), nonprivate=twin)


@dataclass(frozen=True)
class View:
    """Cells seen through one metric, beside what a document prints in a table.

    Attributes
    ----------
    names
        Headings of methods that no layout names, by name.
    printed, verdicts
        The cells of the printed table, and the verdicts on them.
    document, table
        What is printed; None and empty for results that answer to nothing printed.
    results
        All results, among which those are found that answer to printed cells.
    """

    metric: Metric
    names: Mapping[str, str]
    printed: Sequence[PublishedCell] = ()
    verdicts: Sequence[CellVerdict] = ()
    document: Document | None = None
    table: str = ""
    results: Results | None = None

    @cached_property
    def _printed_at(self) -> dict[_Field, PublishedCell]:
        return {(cell.dataset, cell.method, cell.epsilon): cell for cell in self.printed}

    @cached_property
    def _verdict_at(self) -> dict[_Field, CellVerdict]:
        found = ((verdict.published, verdict) for verdict in self.verdicts)
        return {(cell.dataset, cell.method, cell.epsilon): verdict for cell, verdict in found}

    def columns(self, cells: Iterable[ResultCell], headings: Sequence[Column]) -> list[Column]:
        """Return the headings of methods that appear, then a column for each other label."""
        cells = list(cells)
        labels = [cell.task.label for cell in cells]
        labels += [verdict.published.method for verdict in self.verdicts]
        if any(map(is_shipped, labels)):
            headings = [column for own in headings for column in (own, _shipped(own))]
        shown = _present(headings, set(labels))
        covered = {name for column in shown for name in (column.method, column.nonprivate)}
        others = [label for label in dict.fromkeys(labels) if label not in covered]
        methods = {cell.task.label: cell.task.method for cell in cells}
        return [
            *shown,
            *(
                Column(title=self._title(label, methods.get(label)), method=label)
                for label in others
            ),
        ]

    def _title(self, label: str, method: str | None) -> str:
        """Return the method's title, with the parameters behind the name in a grid's labels.

        What answers to nothing printed, or has a name of its own, keeps that name.
        """
        name, space, parameters = label.partition(" ")
        if self.document is None or name != method:
            return label
        return self.names.get(name, name) + space + parameters

    def group(
        self, dataset: str, title: str, cells: Sequence[ResultCell], columns: Sequence[Column]
    ) -> Group:
        """Return the rows of one dataset, made of these cells of it."""
        if any(cell.task.is_synthetic for cell in cells):
            title = f"{title} (SYNTHETIC data)"
        if any(cell.task.is_private for cell in cells):
            title = f"{title} (PRIVATE)"
        decimals = self._decimals(dataset, cells)
        epsilons = {cell.task.epsilon for cell in cells}
        epsilons |= {v.published.epsilon for v in self.verdicts if v.published.dataset == dataset}
        found: dict[tuple[str, float], list[ResultCell]] = {}
        for cell in cells:
            found.setdefault((cell.task.label, cell.task.epsilon), []).append(cell)
        rows = [
            self._mark_best([self._entry(dataset, found, c, eps) for c in columns], decimals)
            for eps in sorted(epsilons)
        ]
        printed = {c.method for c in self.printed if c.dataset == dataset}
        beside = printed | {shipped(method) for method in printed}
        return Group(dataset, title, decimals, tuple(rows), frozenset(beside))

    def _entry(
        self,
        dataset: str,
        cells: Mapping[tuple[str, float], Sequence[ResultCell]],
        column: Column,
        epsilon: float,
    ) -> Entry:
        label = column.label(epsilon)
        field = (dataset, label, epsilon)
        result = self._chosen(field, cells.get((label, epsilon), ()))
        verdict = self._verdict_at.get(field)
        if isinstance(result, Clash):
            clashing = (replace(c, planned=self._needed(c, dataset)) for c in result.cells)
            return Entry(label, epsilon, None, verdict, clash=Clash(tuple(clashing)))
        return Entry(label, epsilon, result, verdict, self._needed(result, dataset))

    def _needed(self, cell: ResultCell | None, dataset: str) -> int:
        return splits_needed(cell, dataset, self.document, self.table)

    def _chosen(self, field: _Field, cells: Sequence[ResultCell]) -> ResultCell | Clash | None:
        """Return what stands in a field; `cells` are the results of the table at this field."""
        if self.document is None or self.results is None:
            return choose(cells)
        printed = self._printed_at.get(field)
        return answer_or_other(printed, self.document, self.table, self.results, cells)

    def _mark_best(self, row: Sequence[Entry], decimals: int) -> tuple[Entry, ...]:
        """Mark the best complete means, ties at the printed precision included.

        A row with a single method has no best. An unverified one is none, nor is a refuted one.
        """
        name = self.metric.name
        means = {
            entry.label: round(entry.result.mean(name), decimals)
            for entry in row
            if entry.result
            and entry.result.is_complete(name, entry.planned)
            and entry.result.may_be_best
        }
        if len(means) < 2:
            return tuple(row)
        best = (max if self.metric.higher_is_better else min)(means.values())
        return tuple(replace(e, is_best=means.get(e.label) == best) for e in row)

    def _decimals(self, dataset: str, cells: Iterable[ResultCell]) -> int:
        """Return the printed digits after the point, else the metric's, else by magnitude."""
        name = self.metric.name
        printed = [c.decimals for c in self.printed if (c.dataset, c.metric) == (dataset, name)]
        if printed:
            return max(printed)
        if self.metric.decimals is not None:
            return self.metric.decimals
        means = [abs(cell.mean(name)) for cell in cells if cell.values]
        smallest = min((mean for mean in means if mean > 0), default=1.0)
        return max(0, _SIGNIFICANT - 1 - math.floor(math.log10(smallest)))


@dataclass(frozen=True)
class PageFigure:
    """A figure with its caption, and what the filters go by."""

    caption: str
    svg: Markup
    paper: str | None = None
    dataset: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureGroup:
    """Figures of one kind. `text` says how to read them, `notes` what is not among them."""

    title: str
    text: str
    figures: tuple[PageFigure, ...]
    notes: tuple[str, ...] = ()
