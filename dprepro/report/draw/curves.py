"""Tables as curves: metric against epsilon, one panel a dataset, one curve a method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dprepro.errors import DpreproError
from dprepro.report.read.metrics import Metric

if TYPE_CHECKING:  # processes that only draw panels need not load what makes them
    from dprepro.published.document import Column
    from dprepro.report.layout.view import Entry, Group, ResultTable

# Where values span more than this factor, small ones would lie flat on a linear axis.
_DECADE = 10.0


@dataclass(frozen=True)
class Point:
    """Mean and standard deviation over splits at one epsilon; ``inf`` is the non-private twin."""

    epsilon: float
    mean: float
    sd: float | None


@dataclass(frozen=True)
class Curve:
    """One method: what was measured and what is published, each in order of epsilon."""

    method: str
    title: str
    measured: tuple[Point, ...]
    published: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """The curves of one dataset. `notes` says what a reader must not overlook.

    `table` is the printed one that they come from, where there are panels of several.
    """

    dataset: str
    title: str
    metric: Metric
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()
    table: str = ""

    @property
    def points(self) -> list[Point]:
        """All points, measured and published."""
        return [p for curve in self.curves for p in (*curve.measured, *curve.published)]

    @property
    def is_logarithmic(self) -> bool:
        """Whether the means are positive and span more than a decade of a loss."""
        means = [point.mean for point in self.points]
        if self.metric.higher_is_better or min(means) <= 0:
            return False
        return max(means) > _DECADE * min(means)


def build_panels(tables: Iterable[ResultTable], methods: Sequence[str] = ()) -> list[Panel]:
    """Return one panel for each dataset of `tables`, built with ``compare=True``.

    Parameters
    ----------
    methods
        Only the curves of these labels; default all. A non-private twin belongs to the curve of
        its method.

    Raises
    ------
    DpreproError
        If a label is not among the columns of the tables.
    """
    from dprepro.experiment.naming import name_meant

    tables = list(tables)
    known = [column.method for table in tables for column in table.columns]
    methods = [name_meant(name, known) for name in methods]
    _require(methods, known)
    panels = [_panel(table, group, methods) for table in tables for group in table.groups]
    return _tell_apart([panel for panel in panels if panel.curves])


def _tell_apart(panels: Sequence[Panel]) -> list[Panel]:
    """Name the tables where several print a dataset; of these, leave out single points."""
    counts = Counter((panel.metric.name, panel.dataset) for panel in panels)
    found = []
    for panel in panels:
        if counts[panel.metric.name, panel.dataset] == 1:
            found.append(replace(panel, table=""))
        elif len({point.epsilon for point in panel.points}) > 1:
            place = f" ({_heading(panel.table)})" if panel.table else ""
            found.append(replace(panel, title=panel.title + place))
    return found


def _heading(table: str) -> str:
    return f"Table {table}" if table.isdigit() else table


def _require(methods: Iterable[str], known: Iterable[str]) -> None:
    from dprepro.experiment.naming import nearest_meant

    labels = list(dict.fromkeys(known))
    for name in methods:
        if name not in labels:
            raise DpreproError(
                f"no curve of method {name!r}{nearest_meant(name, labels) or '.'} "
                f"There are: {', '.join(labels)}"
            )


def _panel(table: ResultTable, group: Group, methods: Sequence[str]) -> Panel:
    curves = []
    for position, column in enumerate(table.columns):
        entries = [row[position] for row in group.rows]
        measured, published = _measured(entries, table.metric.name), _published(entries)
        if (not methods or column.method in methods) and (measured or published):
            curves.append(Curve(column.method, _title(column), measured, published))
    return Panel(
        group.dataset, group.title, table.metric, tuple(curves), _notes(table, group),
        table.table or "",
    )  # fmt: skip


def _title(column: Column) -> str:
    """Return the name beside a curve; the end of a long one is cut, so the mark comes first."""
    from dprepro.report.read.cell import MARK

    name, mark, _ = column.title.partition(MARK)
    return f"shipped run: {name}" if mark else name


def _measured(entries: Iterable[Entry], metric: str) -> tuple[Point, ...]:
    return tuple(
        Point(entry.epsilon, entry.result.mean(metric), entry.result.sd(metric))
        for entry in entries
        if entry.result and entry.result.splits(metric)
    )


def _published(entries: Iterable[Entry]) -> tuple[Point, ...]:
    cells = [entry.verdict.published for entry in entries if entry.verdict]
    return tuple(Point(cell.epsilon, cell.mean, cell.std) for cell in cells)


def _notes(table: ResultTable, group: Group) -> tuple[str, ...]:
    from dprepro.report.judge.verdicts import Verdict

    entries = [entry for row in group.rows for entry in row]
    name = table.metric.name
    notes = []
    if any(e.result and e.result.task.is_private for e in entries):
        notes.append("PRIVATE rows: exact scores, not for release")
    if any(e.result and 0 < e.result.splits(name) < e.planned for e in entries):
        notes.append("some points have fewer splits than planned")
    verdicts = [entry.verdict for entry in entries if entry.verdict]
    if verdicts and all(found.verdict is Verdict.IMPOSSIBLE for found in verdicts):
        notes.append(f"published: {verdicts[0].note}")
    return tuple(notes)
