"""Results as tables: those that documents print, then what answers to no printed one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dprepro.errors import DpreproError, nearest
from dprepro.published.document import Column, Document, TableLayout
from dprepro.report.judge.clash import apart_notes, clash_notes
from dprepro.report.judge.verdicts import judge
from dprepro.report.layout.view import Entry, Group, View
from dprepro.report.read.metrics import METRICS, Metric, Tolerance, find_metric
from dprepro.report.read.results import ResultCell, Results

__all__ = ["Entry", "Group", "ResultTable", "build_tables"]

# The metric shown where neither a document nor a config names one: the first of these there is.
_PREFERRED = ("auc", "rmse", "accuracy")
_OWN = "results that answer to no printed table"


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
    tables: Collection[tuple[str, str]] | None = None,
) -> list[ResultTable]:
    """Return a table for each printed one that we have results of, then one a metric for the rest.

    A printed table holds the results whose config answers to it. Results of a config that is not
    known stand in the first of `documents` that prints their dataset. What answers to nothing
    printed gets tables of its own, each method under its own name.

    Parameters
    ----------
    metric
        Show this metric; default that of the printed table, else the config's, else AUROC, RMSE or
        accuracy.
    datasets
        Only these; default all measured ones.
    compare
        Judge each entry, and keep columns and rows that are printed but not measured.
    unprinted
        Show also what answers to no printed table.
    titles
        Headings of methods that no layout names, by name; default the names themselves.
    tables
        Only these printed ones, as (document, table); default all.

    Raises
    ------
    DpreproError
        If a dataset or the metric is not among the results, or nothing is left to show.
    """
    chosen_data = results.of_datasets(datasets) if datasets else results
    cells = [*chosen_data.cells, *chosen_data.planned]
    names = titles or {}
    widths = tolerances or {name: entry.tolerance for name, entry in METRICS.items()}
    found: list[ResultTable] = []
    shown: set[int] = set()
    for document in documents:
        unclaimed = [cell for cell in cells if cell.papers is None and id(cell) not in shown]
        places = printed_places(document)
        for name, printed, layout in document.printed_in(metric):
            if tables is not None and (document.paper, name) not in tables:
                continue
            chosen = [
                cell
                for cell in (*unclaimed, *(c for c in cells if c.papers))
                if answers(cell, document, name, places)
                and (printed in cell.values or not cell.values)
            ]
            if not chosen:
                continue
            shown |= {id(cell) for cell in chosen}
            found.append(
                _printed_table(
                    document, name, printed, layout, chosen, results, names,
                    widths if compare else None,
                )
            )  # fmt: skip
    rest = [cell for cell in cells if id(cell) not in shown]
    if unprinted and tables is None:
        found += _own_tables(rest, metric, names)
    if not found:
        wanted = [d.paper for d in documents] if tables is None else _numbered(tables)
        is_limited = tables is not None or not unprinted
        raise DpreproError(
            _nothing_printed(cells, wanted, metric)
            if is_limited
            else _nothing_to_show(cells, metric)
        )
    return found


def _numbered(tables: Iterable[tuple[str, str]]) -> list[str]:
    return [f"Table {name} of {paper}" for paper, name in tables]


def printed_places(document: Document) -> set[tuple[str, str, str, float]]:
    """Return (table, dataset, method, epsilon) of every printed cell."""
    return {(c.table, c.dataset, c.method, c.epsilon) for c in document.cells()}


def answers(
    cell: ResultCell, document: Document, name: str, places: Collection[tuple[str, str, str, float]]
) -> bool:
    """Whether a cell stands in a printed table; `places` are the document's `printed_places`.

    Its config answers to the document, and to no other table of it that prints the dataset; what
    this table prints is never another's.
    """
    if cell.dataset not in document.tables[name].datasets:
        return False
    if cell.papers is None:
        return True
    if document.paper not in cell.papers:
        return False
    if (name, cell.dataset, cell.task.label, cell.task.epsilon) in places:
        return True
    answered = {
        table
        for paper, table in cell.tables
        if paper == document.paper
        and table in document.tables
        and cell.dataset in document.tables[table].datasets
    }
    return not answered or name in answered


def _printed_table(
    document: Document,
    name: str,
    printed: str,
    layout: TableLayout,
    cells: Sequence[ResultCell],
    results: Results,
    names: Mapping[str, str],
    widths: Mapping[str, Tolerance] | None,
) -> ResultTable:
    """Return a printed table as measured; `widths` are the tolerances of verdicts, if wanted."""
    datasets = {cell.dataset for cell in cells}
    of_table = [
        c
        for c in document.cells()
        if (c.table, c.metric) == (name, printed) and c.dataset in datasets
    ]
    verdicts = judge(document, results, widths, of_table) if widths else []
    view = View(find_metric(printed), names, of_table, verdicts, document, name)
    columns = view.columns(cells, layout.columns)
    groups = [
        view.group(dataset, title, [c for c in cells if c.dataset == dataset], columns)
        for dataset, title in layout.datasets.items()
        if dataset in datasets
    ]
    headed = [column.title for column in columns if column not in layout.columns]
    ours = f"{document.paper} does not have in its Table {name}: {', '.join(headed)}."
    clashes = [clash for group in groups for clash in group.clashes]
    return ResultTable(
        layout.title,
        view.metric,
        tuple(columns),
        tuple(groups),
        document.paper,
        name,
        (*layout.notes, *([ours] if headed else []), *clash_notes(clashes)),
    )


def _own_tables(
    cells: Iterable[ResultCell], metric: str | None, names: Mapping[str, str]
) -> list[ResultTable]:
    """Lay out what answers to no printed table: a table for each metric and document claimed."""
    parts: dict[tuple[str, tuple[str, ...]], list[ResultCell]] = {}
    unfinished = []
    for cell in cells:
        wanted = [metric] if metric else [cell.metric, *_PREFERRED, *METRICS]
        shown = next((name for name in wanted if name in cell.values), None)
        claimed = tuple(sorted(cell.papers or ()))
        if shown:
            parts.setdefault((shown, claimed), []).append(cell)
        elif not cell.values:
            unfinished.append((claimed, cell))
    measured = dict(parts)
    for claimed, cell in unfinished:
        # Without a number it must not vanish: it stands where those of its config do.
        beside = [
            key
            for key, found in measured.items()
            if key[1] == claimed and cell.dataset in {other.dataset for other in found}
        ]
        beside.sort(key=lambda key: key[0] != cell.metric)
        if beside:
            parts[beside[0]].append(cell)
        elif measured and not metric and cell.metric in METRICS:
            parts.setdefault((cell.metric, claimed), []).append(cell)
    return [_own_table(found, shown, papers, names) for (shown, papers), found in parts.items()]


def _own_table(
    cells: Sequence[ResultCell], metric: str, papers: Sequence[str], names: Mapping[str, str]
) -> ResultTable:
    view = View(METRICS[metric], names)
    columns = view.columns(cells, ())
    of_dataset: dict[str, list[ResultCell]] = {}
    for cell in cells:
        of_dataset.setdefault(cell.dataset, []).append(cell)
    groups = [
        view.group(dataset, title, shown, columns)
        for dataset, found in of_dataset.items()
        for title, shown in _groups(dataset, found)
    ]
    of = f"the configs of {', '.join(papers)}, not printed there" if papers else _OWN
    return ResultTable(
        f"{METRICS[metric].title} of {of}",
        view.metric,
        tuple(columns),
        tuple(groups),
        notes=tuple(note for found in of_dataset.values() for note in apart_notes(found)),
    )


def _groups(dataset: str, cells: Sequence[ResultCell]) -> list[tuple[str, list[ResultCell]]]:
    """Return a dataset's cells under its name; apart by config where two of them clash.

    Under a config's name stand the records that it asks for, not those it shares with others.
    """
    places = [(cell.task.label, cell.task.epsilon) for cell in cells]
    if len(set(places)) == len(places):
        return [(dataset, list(cells))]
    journals = dict.fromkeys(name for cell in cells for name in cell.journals)
    return [
        (
            f"{dataset} ({journal})",
            [cell.part(journal) for cell in cells if journal in cell.journals],
        )
        for journal in journals
    ]


def _nothing_to_show(cells: Sequence[ResultCell], metric: str | None) -> str:
    available = sorted({name for cell in cells for name in cell.values})
    if not available:
        reasons = dict.fromkeys(m for cell in cells for m in cell.messages)
        return f"no task has finished yet. {'; '.join(reasons) or '`dprepro run` runs them'}"
    return (
        f"no result has the metric {metric!r}{nearest(str(metric), available) or '.'} "
        f"The results have: {', '.join(available)}"
    )


def _nothing_printed(cells: Sequence[ResultCell], wanted: Sequence[str], metric: str | None) -> str:
    if not any(cell.values for cell in cells):
        return _nothing_to_show(cells, metric)
    datasets = ", ".join(dict.fromkeys(cell.dataset for cell in cells))
    in_metric = f" in {metric}" if metric else ""
    return (
        f"no results of what {' or '.join(wanted)} prints{in_metric}; there are results of "
        f"{datasets}. `dprepro table` lists what can be shown."
    )
