"""Lay results out as the documents do: rows epsilon, columns methods, a group of rows a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dprepro.errors import DpreproError, nearest
from dprepro.published.document import Column, Document, TableLayout
from dprepro.published.published import PublishedCell
from dprepro.report.metrics import METRICS, Metric, Tolerance, find_metric
from dprepro.report.results import ResultCell, Results, only
from dprepro.report.verdicts import CellVerdict, follows, judge

# The metric shown for a dataset that no document prints: the first of these that it has.
_PREFERRED = ("auc", "rmse", "accuracy")
# Where neither a document nor the metric sets the digits: so many significant ones.
_SIGNIFICANT = 4


@dataclass(frozen=True)
class Entry:
    """One field of a table: what was measured and, when comparing, the verdict on it.

    `planned` is the number of splits that make it complete; `is_best` marks the best of its row.
    """

    label: str
    epsilon: float
    result: ResultCell | None = None
    verdict: CellVerdict | None = None
    planned: int = 1
    is_best: bool = False


@dataclass(frozen=True)
class Group:
    """The rows of one dataset. `decimals` is how many digits after the point its numbers get."""

    dataset: str
    title: str
    decimals: int
    rows: tuple[tuple[Entry, ...], ...]


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


def build_tables(
    results: Results,
    documents: Sequence[Document],
    metric: str | None = None,
    datasets: Sequence[str] = (),
    compare: bool = False,
    tolerances: Mapping[str, Tolerance] | None = None,
    unprinted: bool = True,
    titles: Mapping[str, str] | None = None,
) -> list[ResultTable]:
    """Return a table for each printed one that we have results of, then one a metric for the rest.

    Results whose config answers to a document are shown with that document alone; others with the
    first of `documents` that prints their dataset.

    Parameters
    ----------
    metric
        Show this metric; default that of the printed table, else AUROC, RMSE or accuracy.
    datasets
        Only these; default all measured ones.
    compare
        Judge each entry, and keep columns and rows that are printed but not measured.
    unprinted
        Show also what no document prints.
    titles
        Headings of methods that no layout names, by name; default the names themselves.

    Raises
    ------
    DpreproError
        If a dataset or the metric is not among the results, or nothing is left to show.
    """
    measured = _measured_datasets(results, datasets)
    rest = list(measured)
    unclaimed = {cell.task.dataset for cell in results.cells if not cell.papers}
    names = titles or {}
    widths = tolerances or {name: entry.tolerance for name, entry in METRICS.items()}
    tables: list[ResultTable] = []
    for document in documents:
        answering = {c.task.dataset for c in results.cells if document.paper in (c.papers or ())}
        wanted = {d for d in measured if (d in rest and d in unclaimed) or d in answering}
        shown: set[str] = set()
        for name, printed, layout in document.printed_in(metric):
            headings = {d: title for d, title in layout.datasets.items() if d in wanted}
            if not headings:
                continue
            shown |= headings.keys()
            cells = [
                c
                for c in document.cells()
                if (c.table, c.metric) == (name, printed) and c.dataset in headings
            ]
            verdicts = judge(document, results, widths, cells) if compare else []
            view = _View(results, find_metric(printed), names, cells, verdicts, document, name)
            columns, groups = view.lay_out(headings, layout.columns)
            tables.append(
                ResultTable(
                    layout.title,
                    view.metric,
                    columns,
                    groups,
                    document.paper,
                    name,
                    tuple(layout.notes),
                )
            )
        rest = [d for d in rest if d not in shown]
    if unprinted:
        tables += _unprinted_tables(results, documents, metric, rest, names)
    elif not tables:
        papers = ", ".join(document.paper for document in documents)
        raise DpreproError(
            f"no results of what {papers} prints{f' in {metric}' if metric else ''}; there are "
            f"results of {', '.join(rest)}. Leave --paper out to see them."
        )
    if not tables:
        raise DpreproError(_nothing_to_show(results, metric))
    return tables


def _nothing_to_show(results: Results, metric: str | None) -> str:
    available = sorted({name for cell in results.cells for name in cell.values})
    if not available:
        reasons = dict.fromkeys(m for cell in results.cells for m in cell.messages)
        return f"no task has finished yet. {'; '.join(reasons) or '`dprepro run` runs them'}"
    return (
        f"no result has the metric {metric!r}{nearest(str(metric), available) or '.'} "
        f"The results have: {', '.join(available)}"
    )


def _measured_datasets(results: Results, datasets: Sequence[str]) -> list[str]:
    measured = list(dict.fromkeys(cell.task.dataset for cell in results.cells))
    for name in datasets:
        if name not in measured:
            raise DpreproError(
                f"no results of dataset {name!r}{nearest(name, measured) or '.'} "
                f"There are: {', '.join(measured)}"
            )
    return [name for name in measured if not datasets or name in datasets]


def _unprinted_tables(
    results: Results,
    documents: Sequence[Document],
    metric: str | None,
    datasets: Sequence[str],
    names: Mapping[str, str],
) -> list[ResultTable]:
    """Lay out the datasets that no document prints, a table a metric, under the same headings."""
    by_metric: dict[str, dict[str, str]] = {}
    for dataset in datasets:
        available = {m for c in results.cells if c.task.dataset == dataset for m in c.values}
        shown = next((m for m in ([metric] if metric else _PREFERRED) if m in available), None)
        if shown:
            by_metric.setdefault(shown, {})[dataset] = dataset
    tables = []
    for shown, titles in by_metric.items():
        view = _View(results, METRICS[shown], names)
        layouts = [layout for d in documents for layout in d.tables.values()]
        columns, groups = view.lay_out(titles, _headings(layouts, shown))
        tables.append(ResultTable(METRICS[shown].title, view.metric, columns, groups))
    return tables


def _headings(layouts: Iterable[TableLayout], metric: str) -> list[Column]:
    """Return the columns of all layouts, a method once; layouts of the same metric come first."""
    ordered = sorted(layouts, key=lambda layout: layout.metric != metric)
    columns: dict[str, Column] = {}
    for column in (c for layout in ordered for c in layout.columns):
        columns.setdefault(column.method, column)
    return list(columns.values())


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


@dataclass(frozen=True)
class _View:
    """Results seen through one metric, beside what a document prints."""

    results: Results
    metric: Metric
    names: Mapping[str, str]
    printed: Sequence[PublishedCell] = ()
    verdicts: Sequence[CellVerdict] = ()
    document: Document | None = None
    table: str = ""

    def lay_out(
        self, titles: Mapping[str, str], headings: Sequence[Column]
    ) -> tuple[tuple[Column, ...], tuple[Group, ...]]:
        """Return the columns and one group of rows a dataset (`titles`: name -> heading)."""
        columns = self._columns(titles, headings)
        groups = [self._group(dataset, title, columns) for dataset, title in titles.items()]
        return tuple(columns), tuple(groups)

    def _cells(self, datasets: Iterable[str]) -> list[ResultCell]:
        # A cell without any metric failed or was skipped: it must not vanish from the table.
        chosen = set(datasets)
        return [
            cell
            for cell in self.results.cells
            if cell.task.dataset in chosen
            and (self.metric.name in cell.values or not cell.values)
            and not self._is_anothers(cell)
        ]

    def _is_anothers(self, cell: ResultCell) -> bool:
        """Whether the cell answers to other documents, or to other tables that print its dataset.

        What this table prints is never another's.
        """
        document = self.document
        if not document or not cell.papers:
            return False
        if document.paper not in cell.papers:
            return True
        place = (cell.task.dataset, cell.task.label, cell.task.epsilon)
        if place in {(c.dataset, c.method, c.epsilon) for c in self.printed}:
            return False
        printing = {
            (document.paper, name)
            for name, layout in document.tables.items()
            if cell.task.dataset in layout.datasets
        }
        answered = cell.tables & printing
        return bool(answered) and (document.paper, self.table) not in answered

    def _columns(self, datasets: Iterable[str], headings: Sequence[Column]) -> list[Column]:
        """Return the headings of methods that appear, then a column for each other label."""
        labels = [cell.task.label for cell in self._cells(datasets)]
        labels += [verdict.published.method for verdict in self.verdicts]
        shown = _present(headings, set(labels))
        covered = {name for column in shown for name in (column.method, column.nonprivate)}
        others = [label for label in dict.fromkeys(labels) if label not in covered]
        return [*shown, *(Column(title=self._title(label), method=label) for label in others)]

    def _title(self, label: str) -> str:
        """Return the method's title; the parameters behind the name in a grid's labels stay."""
        name, space, parameters = label.partition(" ")
        return self.names.get(label) or self.names.get(name, name) + space + parameters

    def _group(self, dataset: str, title: str, columns: Sequence[Column]) -> Group:
        cells = self._cells([dataset])
        if any(cell.task.is_synthetic for cell in cells):
            title = f"{title} (SYNTHETIC data)"
        if any(cell.task.is_private for cell in cells):
            title = f"{title} (PRIVATE rows: exact scores, not for release)"
        decimals = self._decimals(dataset, cells)
        epsilons = {cell.task.epsilon for cell in cells}
        epsilons |= {v.published.epsilon for v in self.verdicts if v.published.dataset == dataset}
        rows = [
            self._mark_best([self._entry(dataset, c, epsilon) for c in columns], decimals)
            for epsilon in sorted(epsilons)
        ]
        return Group(dataset, title, decimals, tuple(rows))

    def _entry(self, dataset: str, column: Column, epsilon: float) -> Entry:
        label = column.label(epsilon)
        found = self.results.all(dataset, label, epsilon)
        if self.document:
            protocol = self.document.protocol_of(self.table, dataset)
            found = [c for c in found if follows(c, self.document.paper, protocol)] or found
        result = only(found)
        verdict = next(
            (
                v
                for v in self.verdicts
                if (v.published.dataset, v.published.method, v.published.epsilon)
                == (dataset, label, epsilon)
            ),
            None,
        )
        planned = result.planned if result else 1
        if self.document:
            planned = self.document.protocol_of(self.table, dataset).needed
        return Entry(label, epsilon, result, verdict, planned)

    def _mark_best(self, row: Sequence[Entry], decimals: int) -> tuple[Entry, ...]:
        """Mark the best complete means, ties at the printed precision included.

        A row with a single method has no best, and an unverified one is none.
        """
        name = self.metric.name
        means = {
            entry.label: round(entry.result.mean(name), decimals)
            for entry in row
            if entry.result
            and entry.result.is_complete(name, entry.planned)
            and not entry.result.is_unverified
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
            return printed[0]
        if self.metric.decimals is not None:
            return self.metric.decimals
        means = [abs(cell.mean(name)) for cell in cells if cell.values]
        smallest = min((mean for mean in means if mean > 0), default=1.0)
        return max(0, _SIGNIFICANT - 1 - math.floor(math.log10(smallest)))
