"""Tables of the results that no printed table has a place for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dprepro.report.judge.clash import apart_notes
from dprepro.report.layout.view import ResultTable, View
from dprepro.report.read.metrics import METRICS, find_metric, how_to_record
from dprepro.report.read.results import ResultCell

# The metric shown where neither a document nor a config names one: the first of these there is.
_PREFERRED = ("auc", "rmse", "accuracy")
_OWN = "results that no printed table has"


_Key = tuple[str, tuple[str, ...]]
"""(metric, documents that the configs name): one table each."""


def unprinted_tables(
    cells: Iterable[ResultCell], metric: str | None, names: Mapping[str, str]
) -> list[ResultTable]:
    """Lay out the results that no printed table has: a table for each metric and document named.

    Parameters
    ----------
    metric
        Show this metric; default the config's, else AUROC, RMSE or accuracy.
    names
        Headings of methods, by name.
    """
    parts: dict[_Key, list[ResultCell]] = {}
    unfinished: list[ResultCell] = []
    without: list[ResultCell] = []
    for cell in cells:
        shown = _shown_metric(cell, metric)
        if shown:
            parts.setdefault((shown, _named(cell)), []).append(cell)
        else:
            (without if cell.values else unfinished).append(cell)
    _place_unfinished(parts, unfinished, metric)
    return [
        _table(found, shown, papers, names, without) for (shown, papers), found in parts.items()
    ]


def _shown_metric(cell: ResultCell, metric: str | None) -> str | None:
    wanted = [metric] if metric else [cell.metric, *_PREFERRED, *METRICS]
    return next((name for name in wanted if name in cell.values), None)


def _named(cell: ResultCell) -> tuple[str, ...]:
    return tuple(sorted(cell.papers or ()))


def _place_unfinished(
    parts: dict[_Key, list[ResultCell]], unfinished: Iterable[ResultCell], metric: str | None
) -> None:
    """Add cells without a number to the tables where finished ones of their dataset stand.

    Where there is no such table, a cell gets one of its config's metric.
    """
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
    of = f"the configs of {', '.join(papers)}, not printed there" if papers else _OWN
    beside = [c for c in without if c.dataset in of_dataset and _named(c) == papers]
    clashes = (note for found in of_dataset.values() for note in apart_notes(found))
    return ResultTable(
        f"{view.metric.title} of {of}",
        view.metric,
        tuple(columns),
        tuple(groups),
        notes=(*clashes, *_lacking(beside, metric)),
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
