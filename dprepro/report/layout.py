"""Results laid out as tables: those that documents print, then what answers to no printed one.

Rows are privacy levels, columns methods, and a group of rows is a dataset.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dprepro.judge.cell_matching import (
    Clash,
    answer_or_other,
    apart_notes,
    choose,
    clash_notes,
    printed_places,
    stands_in,
)
from dprepro.judge.verdicts import CellVerdict, judge_cells
from dprepro.papers.document import Column, Document, TableLayout
from dprepro.papers.published_cell import PublishedCell
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import METRICS, Margin, Metric, find_metric, how_to_record
from dprepro.results.result_cell import is_shipped, shipped
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.terminal import counted

# Where neither a document nor the metric sets the digits: so many significant ones.
_SIGNIFICANT = 4
# The metric shown where neither a document nor a config names one: the first of these there is.
_PREFERRED = ("auc", "rmse", "accuracy")

_Field = tuple[str, str, float]
"""(dataset, label, epsilon): where a number stands in a table."""


def splits_needed(
    cell: ResultCell | None, dataset: str, document: Document | None = None, table: str = ""
) -> int:
    """Return how many splits make a cell complete: all planned, and all that a verdict takes.

    `document` and `table` say where it is printed, if it answers to anything printed.
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
        Of its row.
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
    """A table: one entry a column in each row; the non-private row is the last of its group.

    `layout` is the document's, None of a table that no document prints. `remarks` are the notes
    that do not depend on which columns are shown.
    """

    title: str
    metric: Metric
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    paper: str | None = None
    table: str | None = None
    remarks: tuple[str, ...] = ()
    layout: TableLayout | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: of the printed table, of columns that it lacks, of ours."""
        if self.layout is None:
            return self.remarks
        printed = {label for c in self.layout.columns for label in (c.method, c.nonprivate)}
        ours = [
            column.title
            for column in self.columns
            if column.method not in printed and not is_shipped(column.method)
        ]
        said = f"Table {self.table} of {self.paper} does not print: {', '.join(ours)}."
        return (*self.layout.notes, *([said] if ours else []), *self.remarks)

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


def mark_best(row: Sequence[Entry], metric: Metric, decimals: int) -> tuple[Entry, ...]:
    """Mark the best of several complete means, with ties at so many digits after the point."""
    found = [(entry.label, entry.result, entry.planned) for entry in row if entry.result]
    means = {
        label: round(result.mean(metric.name), decimals)
        for label, result, planned in found
        if result.is_complete(metric.name, planned) and result.may_be_best
    }
    best = None
    if len(means) > 1:
        best = (max if metric.higher_is_better else min)(means.values())
    return tuple(replace(e, is_best=e.label in means and means[e.label] == best) for e in row)


@dataclass(frozen=True)
class View:
    """Cells seen through one metric, beside what a document prints in a table.

    `names` are headings of methods that no layout names, by name. `printed` and `verdicts` are the
    cells of the printed table and the verdicts on them; without a `document`, results answer to
    nothing printed. `results` are all, among which those are found that answer to printed cells.
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
        own = [(label, self._title(label, methods.get(label))) for label in others]
        return [*shown, *(Column(title=title, method=label) for label, title in own)]

    def _title(self, label: str, method: str | None) -> str:
        """Return a method's title with a grid's parameters; the label of what is not printed."""
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
            mark_best([self._entry(dataset, found, c, eps) for c in columns], self.metric, decimals)
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


_Key = tuple[str, tuple[str, ...]]
"""(metric, documents that the configs name): one table each."""


def unprinted_tables(
    cells: Iterable[ResultCell], metric: str | None, names: Mapping[str, str]
) -> list[ResultTable]:
    """Lay out results without a printed counterpart: a table for each metric and document named.

    `metric` is by default the config's, else AUROC, RMSE or accuracy. `names` are headings of
    methods, by name.
    """
    parts: dict[_Key, list[ResultCell]] = {}
    unfinished: list[ResultCell] = []
    without: list[ResultCell] = []
    for cell in cells:
        wanted = [metric] if metric else [cell.metric, *_PREFERRED, *METRICS]
        if shown := next((name for name in wanted if name in cell.values), None):
            parts.setdefault((shown, _named(cell)), []).append(cell)
        else:
            (without if cell.values else unfinished).append(cell)
    _place_unfinished(parts, unfinished, metric)
    return [
        _table(found, shown, papers, names, without) for (shown, papers), found in parts.items()
    ]


def _named(cell: ResultCell) -> tuple[str, ...]:
    return tuple(sorted(cell.papers or ()))


def _place_unfinished(
    parts: dict[_Key, list[ResultCell]], unfinished: Iterable[ResultCell], metric: str | None
) -> None:
    """Add cells without a number where finished ones of their dataset stand, else by metric."""
    measured = dict(parts)
    for cell in unfinished:
        beside = [
            key
            for key, found in measured.items()
            if key[1] == _named(cell) and cell.dataset in {other.dataset for other in found}
        ]
        beside.sort(key=lambda key: key[0] != cell.metric)
        if beside:
            parts[beside[0]].append(cell)
        elif measured and not metric and cell.metric in METRICS:
            parts.setdefault((cell.metric, _named(cell)), []).append(cell)


def _table(
    cells: Sequence[ResultCell],
    metric: str,
    papers: tuple[str, ...],
    names: Mapping[str, str],
    without: Iterable[ResultCell],
) -> ResultTable:
    view = View(find_metric(metric), names)
    columns = view.columns(cells, ())
    of_dataset: dict[str, list[ResultCell]] = {}
    for cell in cells:
        of_dataset.setdefault(cell.dataset, []).append(cell)
    groups = [
        view.group(dataset, title, shown, columns)
        for dataset, found in of_dataset.items()
        for title, shown in _groups(dataset, found)
    ]
    of = "results without a printed counterpart"
    if papers:
        of = f"the configs of {', '.join(papers)}, not printed there"
    beside = [c for c in without if c.dataset in of_dataset and _named(c) == papers]
    clashes = (note for found in of_dataset.values() for note in apart_notes(found))
    return ResultTable(
        f"{view.metric.title} of {of}",
        view.metric,
        tuple(columns),
        tuple(groups),
        remarks=(*clashes, *_lacking(beside, metric)),
    )


def _lacking(cells: Sequence[ResultCell], metric: str) -> Iterator[str]:
    """Yield which results of the table's datasets have no value of its metric, and why."""
    by_reason: dict[str, dict[str, None]] = {}
    for cell in cells:
        reason = cell.absent.get(metric, "")
        by_reason.setdefault(reason, {})[f"{cell.task.label} on {cell.dataset}"] = None
    for reason, places in by_reason.items():
        why = f" ({reason})." if reason else f". {how_to_record(metric)}"
        yield f"Without {find_metric(metric).title}: {', '.join(places)}{why}".strip()


def _groups(dataset: str, cells: Sequence[ResultCell]) -> list[tuple[str, list[ResultCell]]]:
    """Return a dataset's cells; where two clash, the records that each config asks for."""
    places = [(cell.task.label, cell.task.epsilon) for cell in cells]
    if len(set(places)) == len(places):
        return [(dataset, list(cells))]
    parts: dict[str, list[ResultCell]] = {}
    for cell in cells:
        for journal in cell.journals:
            parts.setdefault(f"{dataset} ({journal})", []).append(cell.part(journal))
    return list(parts.items())


def build_tables(
    results: Results,
    documents: Sequence[Document],
    metric: str | None = None,
    datasets: Sequence[str] = (),
    compare: bool = False,
    margins: Mapping[str, Margin] | None = None,
    unprinted: bool = True,
    titles: Mapping[str, str] | None = None,
    tables: Collection[tuple[str, str]] | None = None,
) -> list[ResultTable]:
    """Return a table for each printed table that has results, then one for each metric of the rest.

    A printed table holds the results whose config answers to it. Results of a config that is not
    known stand in the first of `documents` that prints their dataset. What answers to nothing
    printed gets tables of its own, each method under its own name.

    Of a config that was run in part, methods and epsilons of which nothing has run are left out,
    and a note counts them.

    Raises DpreproError if a dataset or the metric is not among the results, or nothing is left to
    show.

    Parameters
    ----------
    metric
        By default that of the printed table, else the config's, else AUROC, RMSE or accuracy.
    datasets, tables
        Only these datasets, and these printed tables, as (document, table); default all.
    compare
        Judge each entry, and keep columns and rows that are printed but not measured.
    unprinted
        Show also what answers to no printed table.
    titles
        Headings of methods that no layout names, by name; default the names themselves.
    """
    chosen_data = results.of_datasets(datasets) if datasets else results
    cells = [*chosen_data.cells, *chosen_data.begun]
    names = titles or {}
    widths = margins or {name: entry.margin for name, entry in METRICS.items()}
    builder = _Builder(results, cells, names, widths if compare else None)
    found = [t for document in documents for t in builder.printed_tables(document, metric, tables)]
    is_limited = tables is not None or not unprinted
    if not is_limited:
        found += unprinted_tables(builder.rest, metric, names)
    if found:
        return [_with_left_out(table, chosen_data) for table in found]
    if not is_limited or not any(cell.values for cell in cells):
        raise DpreproError(_nothing_to_show(cells, metric))
    wanted = [document.paper for document in documents]
    if tables is not None:
        wanted = [f"Table {name} of {paper}" for paper, name in tables]
    in_metric = f" in {metric}" if metric else ""
    raise DpreproError(
        f"no results of what {' or '.join(wanted)} prints{in_metric}; there are results of "
        f"{', '.join(dict.fromkeys(cell.dataset for cell in cells))}. `dprepro table` lists what "
        "can be shown."
    )


@dataclass
class _Builder:
    """Builds printed tables one by one, and knows what they showed; no `widths`, no verdicts."""

    results: Results
    cells: Sequence[ResultCell]
    names: Mapping[str, str]
    widths: Mapping[str, Margin] | None
    shown: set[int] = field(default_factory=set)

    @property
    def rest(self) -> list[ResultCell]:
        """The results that no table has shown so far."""
        return [cell for cell in self.cells if id(cell) not in self.shown]

    def printed_tables(
        self, document: Document, metric: str | None, tables: Collection[tuple[str, str]] | None
    ) -> Iterator[ResultTable]:
        """Yield the tables of a document of which there are results."""
        unclaimed = [cell for cell in self.rest if cell.papers is None]
        claimed = [cell for cell in self.cells if cell.papers]
        places = printed_places(document)
        for name, printed, layout in document.printed_in(metric):
            if tables is not None and (document.paper, name) not in tables:
                continue
            chosen = [
                cell
                for cell in (*unclaimed, *claimed)
                if stands_in(cell, document, name, places)
                and (printed in cell.values or not cell.values)
            ]
            if chosen:
                self.shown |= {id(cell) for cell in chosen}
                yield self._printed_table(document, name, printed, layout, chosen)

    def _printed_table(
        self,
        document: Document,
        name: str,
        printed: str,
        layout: TableLayout,
        cells: Sequence[ResultCell],
    ) -> ResultTable:
        datasets = {cell.dataset for cell in cells}
        there = [c for c in document.cells() if (c.table, c.metric) == (name, printed)]
        of_table = [cell for cell in there if cell.dataset in datasets]
        verdicts = judge_cells(document, self.results, self.widths, of_table) if self.widths else []
        view = View(
            find_metric(printed), self.names, of_table, verdicts, document, name, self.results
        )
        columns = view.columns(cells, layout.columns)
        groups = tuple(
            view.group(dataset, title, [c for c in cells if c.dataset == dataset], columns)
            for dataset, title in layout.datasets.items()
            if dataset in datasets
        )
        remarks = tuple(clash_notes([clash for group in groups for clash in group.clashes]))
        if self.widths:
            labels = {cell.task.label for cell in cells}
            remarks += _chosen(document, [c for c in of_table if c.method in labels])
        return ResultTable(
            layout.title, view.metric, tuple(columns), groups, document.paper, name, remarks, layout
        )


def _with_left_out(table: ResultTable, results: Results) -> ResultTable:
    """Say how many cells of the table's configs are left out, as no run has come to them."""
    shown = [entry.result for _, entry in table.entries if entry.result]
    journals = dict.fromkeys(name for cell in shown for name in cell.journals)
    begun = {id(cell) for cell in results.begun}
    rest = [cell.journals[0] for cell in results.planned if id(cell) not in begun]
    notes = tuple(
        f"Left out: {counted(rest.count(name), 'cell')} of which nothing has run yet. "
        f"`dprepro run {name}` runs all."
        for name in journals
        if name in rest and not is_shipped(name)
    )
    return replace(table, remarks=(*table.remarks, *notes))


def _chosen(document: Document, cells: Sequence[PublishedCell]) -> tuple[str, ...]:
    """Say which columns were chosen by looking at printed numbers; nothing if none was."""
    found: dict[str, set[int]] = {}
    for cell in cells:
        if choice := document.choice_of(cell):
            found.setdefault(cell.method, set()).add(choice.selected_from)
    spans = {method: sorted({min(own), max(own)}) for method, own in found.items()}
    said = ", ".join(f"{m} (of {' to '.join(map(str, span))})" for m, span in spans.items())
    if not said:
        return ()
    return (
        f"Settings or rows chosen by looking at printed numbers, of so many: {said}. They agree "
        "more easily: `dprepro forensics --held-out`.",
    )


def _nothing_to_show(cells: Sequence[ResultCell], metric: str | None) -> str:
    available = sorted({name for cell in cells for name in cell.values})
    if not available:
        reasons = dict.fromkeys(m for cell in cells for m in cell.messages)
        return f"no task has finished yet. {'; '.join(reasons) or '`dprepro run` runs them'}"
    reasons = dict.fromkeys(c.absent[metric] for c in cells if metric and metric in c.absent)
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return (
        f"no result has the metric {metric!r}{why}{nearest(str(metric), available) or '.'} "
        f"The results have: {', '.join(available)}. {how_to_record(str(metric))}"
    ).strip()
