"""Tables as curves: metric against epsilon, one panel a dataset, one curve a method.

The methods worth a closer look, and the range of a panel that shows them alone.

Names written beside the ends of curves, in place of a legend.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from dprepro.report.draw.style import POINTS_PER_INCH, Look, fitted, text_width
from dprepro.results.metrics import Metric
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import plain, shortened

if TYPE_CHECKING:
    from dprepro.papers.document import Column
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
    from dprepro.experiment.method_names import name_meant

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
    from dprepro.experiment.method_names import nearest_meant

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
    from dprepro.results.cell import MARK

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


# Curves are good within this share of the way from the best to the worst: a closer look at them is
# at least five times closer.
_GOOD = 0.2
_FEWEST = 2


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
    levels = {curve: _median(curve) for curve in panel.curves}
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


def _median(curve: Curve) -> float:
    points: tuple[Point, ...] = curve.measured or curve.published
    private = [point.mean for point in points if math.isfinite(point.epsilon)]
    return statistics.median(private or [point.mean for point in points])


def _scale(panel: Panel, mean: float) -> float:
    return math.log(mean) if panel.is_logarithmic else mean


FONT_SIZE = 7.5
_LINE = 1.25
BESIDE = 1.08
"""Where names begin, in widths of the axes."""
# The line to a name ends before it.
_SHORT = 0.01
_LONGEST = 34
_WIDEST = 2.2  # inches
# An end at the very limit of the axes comes back from their units as a little more or less.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class End:
    """The end of a curve: its name, its look, and the place of its last point in data units."""

    name: str
    look: Look
    across: float
    up: float


def room_for(names: int) -> float:
    """Return the height in inches that so many names need."""
    return names * FONT_SIZE * _LINE / POINTS_PER_INCH


def length_of(name: str) -> float:
    """Return the inches that a name takes."""
    return text_width(*_shown(name))


def _shown(name: str) -> tuple[str, float]:
    return fitted(plain(shortened(name, _LONGEST)), FONT_SIZE, _WIDEST)


def name_ends(axes: Axes, ends: Sequence[End], height: float) -> None:
    """Write each name to the right of the axes, with a thin line from the end of its curve.

    Names keep the order of the ends from top to bottom and do not overlap. The limits of the axes
    must be set.

    Parameters
    ----------
    height
        Of the axes, in inches; it must be at least `room_for` the names.
    """
    to_share = axes.transData + axes.transAxes.inverted()
    shares = [to_share.transform((end.across, end.up)) for end in ends]
    wanted = [min(max(float(up), 0.0), 1.0) for _, up in shares]
    places = spread(wanted, room_for(1) / height)
    leaders, colours = [], []
    for end, (across, up), place in zip(ends, shares, places, strict=True):
        name, size = _shown(end.name)
        axes.text(
            BESIDE, place, name, transform=axes.transAxes, fontsize=size,
            color=_dark(end.look.colour), va="center", ha="left",
        )  # fmt: skip
        if -_ROUNDING <= up <= 1.0 + _ROUNDING:
            leaders.append([(across, up), (BESIDE - _SHORT, place)])
            colours.append(end.look.colour)
    # All in one, which lies between the axes and the names: layout need not measure it.
    lines = LineCollection(
        leaders, colors=colours, linewidths=0.6, transform=axes.transAxes, clip_on=False
    )
    lines.set_in_layout(False)
    axes.add_collection(lines, autolim=False)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places near the wanted ones in [0, 1], in their order, at least `gap` apart.

    They stay in [0, 1] as long as there is room. The sum of squared moves is least.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    # In units where every name is moved down by those below it, "apart" becomes "not descending";
    # blocks of equal places then take the mean of what they want.
    blocks: list[tuple[float, int]] = []
    for rank, i in enumerate(order):
        total, size = wanted[i] - rank * gap, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            total, size = total + blocks[-1][0], size + blocks[-1][1]
            blocks.pop()
        blocks.append((total, size))
    highest = 1.0 - (len(wanted) - 1) * gap
    means = [min(max(total / size, 0.0), max(highest, 0.0)) for total, size in blocks]
    placed = [mean for mean, (_, size) in zip(means, blocks, strict=True) for _ in range(size)]
    found = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        found[i] = placed[rank] + rank * gap
    return found


def _dark(colour: str) -> str:
    """Return the colour dark enough for text on white (4.5 to 1), in the same hue."""
    return {
        "#56B4E9": "#1F78A8", "#E69F00": "#946600", "#009E73": "#007A59", "#CC79A7": "#A8487E",
        "#D55E00": "#B85000",
    }.get(colour, colour)  # fmt: skip
