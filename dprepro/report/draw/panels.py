"""What curves show: metric against epsilon, one panel a dataset, one curve a method.

Methods that are worth it get a closer look: a second range that shows them alone.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprepro.report.draw.style import MOST_COLOURED
from dprepro.results.margins import Metric
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.papers.document import Column
    from dprepro.report.layout import Entry, Group, ResultTable

# Where values span more than this factor, small ones would lie flat on a linear axis.
_DECADE = 10.0
# Curves are good within this share of the way from the best to the worst: a closer look at them is
# at least five times closer.
_GOOD = 0.2
_FEWEST = 2


@dataclass(frozen=True)
class Point:
    """Mean and standard deviation over splits at one epsilon; ``inf`` is the non-private twin."""

    epsilon: float
    mean: float
    sd: float | None


@dataclass(frozen=True)
class Curve:
    """One method: what was measured and what is published, each in order of epsilon.

    `is_column` says that the document's table has a column for it.
    """

    method: str
    title: str
    measured: tuple[Point, ...]
    published: tuple[Point, ...]
    is_column: bool = False


@dataclass(frozen=True)
class Panel:
    """The curves of one dataset. `notes` says what a reader must not overlook.

    `document` and `table` are the printed ones that they come from, empty where there are none.
    Panels of one table have the same `number`.
    """

    dataset: str
    title: str
    metric: Metric
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()
    document: str = ""
    table: str = ""
    number: int = 0

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

    With `methods`, only the curves of these labels, headings, or lists of them between commas, in
    that order. A non-private twin belongs to the curve of its method.

    Raises DpreproError if one is not among the columns of the tables.
    """
    tables = list(tables)
    methods = _methods_meant(tables, methods)
    panels = [
        _panel(table, group, methods, number)
        for number, table in enumerate(tables)
        for group in table.groups
    ]
    return _without_single([panel for panel in panels if panel.curves])


def methods_to_colour(tables: Iterable[ResultTable], names: Sequence[str]) -> list[str]:
    """Return the labels of the methods that a user wants in colour.

    Raises DpreproError if there are more than `MOST_COLOURED`, or one is not known.
    """
    found = _methods_meant(tables, names)
    if len(found) > MOST_COLOURED:
        raise DpreproError(
            f"--highlight names {len(found)} methods, and a picture has {MOST_COLOURED} colours: "
            f"name {MOST_COLOURED} at most; --name-grey names the grey lines, too"
        )
    return found


def _methods_meant(tables: Iterable[ResultTable], names: Sequence[str]) -> list[str]:
    from dprepro.report.selecting import methods_meant

    columns = [column for table in tables for column in table.columns]
    return methods_meant(names, list(dict.fromkeys(column.method for column in columns)))


def most_methods(panels: Iterable[Panel]) -> int:
    """Return how many methods the table with the most of them has."""
    found: dict[int, set[str]] = {}
    for panel in panels:
        found.setdefault(panel.number, set()).update(curve.method for curve in panel.curves)
    return max(map(len, found.values()), default=0)


def _without_single(panels: Sequence[Panel]) -> list[Panel]:
    """Leave single points out where several tables print a dataset."""
    counts = Counter((panel.metric.name, panel.dataset) for panel in panels)
    return [
        panel
        for panel in panels
        if counts[panel.metric.name, panel.dataset] == 1
        or len({point.epsilon for point in panel.points}) > 1
    ]


def _panel(table: ResultTable, group: Group, methods: Sequence[str], number: int) -> Panel:
    layout = table.layout.columns if table.layout else ()
    columns = {column.method for column in layout}
    curves = []
    for position, column in enumerate(table.columns):
        entries = [row[position] for row in group.rows]
        measured = _measured(entries, table.metric.name)
        cells = [entry.verdict.published for entry in entries if entry.verdict]
        published = tuple(Point(cell.epsilon, cell.mean, cell.std) for cell in cells)
        if (not methods or column.method in methods) and (measured or published):
            is_column = column.method in columns
            curves.append(Curve(column.method, _title(column), measured, published, is_column))
    if methods:
        curves.sort(key=lambda curve: methods.index(curve.method))
    return Panel(
        group.dataset, group.title, table.metric, tuple(curves), _notes(table, group),
        table.paper or "", table.table or "", number,
    )  # fmt: skip


def _title(column: Column) -> str:
    """Return the name beside a curve; the end of a long one is cut, so the mark comes first."""
    from dprepro.results.result_cell import MARK

    name, mark, _ = column.title.partition(MARK)
    return f"shipped run: {name}" if mark else name


def _measured(entries: Iterable[Entry], metric: str) -> tuple[Point, ...]:
    return tuple(
        Point(entry.epsilon, entry.result.mean(metric), entry.result.sd(metric))
        for entry in entries
        if entry.result and entry.result.splits(metric)
    )


def _notes(table: ResultTable, group: Group) -> tuple[str, ...]:
    from dprepro.judge.verdicts import Verdict

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


@dataclass(frozen=True)
class Zoom:
    """The curves of a panel that are good, the others, and the range of the good ones."""

    good: tuple[Curve, ...]
    others: tuple[Curve, ...]
    lowest: float
    highest: float


def zoom_of(panel: Panel) -> Zoom | None:
    """Return what a closer look shows; None where the whole panel shows it as well.

    A curve is good if the median of its means is within a fifth of the way from the best median to
    the worst mean of the panel. The range holds those of their means that are as near.
    """
    levels = {curve: median_of(curve) for curve in panel.curves}
    if len(levels) <= _FEWEST:
        return None
    sign = 1.0 if panel.metric.higher_is_better else -1.0
    scaled = {curve: sign * _scale(panel, level) for curve, level in levels.items()}
    everything = [sign * _scale(panel, point.mean) for point in panel.points]
    best, span = max(scaled.values()), max(everything) - min(everything)
    good = tuple(c for c in panel.curves if scaled[c] >= best - _GOOD * span)
    if len(good) < _FEWEST:
        return None
    means = [p.mean for c in good for p in (*c.measured, *c.published)]
    near = [m for m in means if sign * _scale(panel, m) >= best - _GOOD * span]
    lowest, highest = min(near), max(near)
    if lowest == highest:
        return None
    return Zoom(good, tuple(c for c in panel.curves if c not in good), lowest, highest)


def median_of(curve: Curve) -> float:
    """Return the median of the means at private levels; of all where there is none."""
    points: tuple[Point, ...] = curve.measured or curve.published
    private = [point.mean for point in points if math.isfinite(point.epsilon)]
    return statistics.median(private or [point.mean for point in points])


def _scale(panel: Panel, mean: float) -> float:
    return math.log(mean) if panel.is_logarithmic else mean
