"""Tables as curves: metric against epsilon, one panel a dataset, one curve a method.

Names stand beside the ends of curves, in place of a legend. Methods that are worth it get a closer
look: a second range that shows them alone.
"""

from __future__ import annotations

import math
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from dprepro.report.draw.files import contents, put_together, save_figures
from dprepro.report.draw.style import (
    PHONE_WIDTH,
    POINTS_PER_INCH,
    Look,
    fitted,
    looks,
    metric_label,
    open_frame,
    text_width,
)
from dprepro.results.margins import Metric
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import file_names, plain, shortened

if TYPE_CHECKING:
    from dprepro.papers.document import Column
    from dprepro.report.layout import Entry, Group, ResultTable

# Where values span more than this factor, small ones would lie flat on a linear axis.
_DECADE = 10.0
# Curves are good within this share of the way from the best to the worst: a closer look at them is
# at least five times closer.
_GOOD = 0.2
_FEWEST = 2

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

# The axis counts octaves of epsilon. The non-private twins stand so far to the right of the last.
_GAP = 1.2
# Axes have room for so many labels across and up, and a line of a note for so many characters.
_TICKS = 8
_LEVELS = 7
_LONGEST_NOTE = 60
# Of the picture of all panels.
_COLUMNS = 4
# Inches: a panel with its names, the least size of its axes, what stands around these, and the keys
# below a figure. Margins that are known need no layout, which takes longer than drawing.
_WIDTH, _WIDE, _HEIGHT = 4.4, 1.4, 2.5
_LEFT, _BELOW, _EDGE = 0.74, 0.62, 0.08
_TITLE, _NOTE = 0.24, 0.13
_KEYS = 0.26
_PALE: dict[str, Any] = {"linewidths": 5, "alpha": 0.18, "zorder": 1.5}
_THIN: dict[str, Any] = {"linewidths": 0.8, "zorder": 2.9}


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

    With `methods`, only the curves of these labels. A non-private twin belongs to the curve of its
    method.

    Raises DpreproError if a label is not among the columns of the tables.
    """
    from dprepro.experiment.method_names import name_meant, nearest_meant
    from dprepro.methods.registry import refuse_shared

    tables = list(tables)
    known = list(dict.fromkeys(column.method for table in tables for column in table.columns))
    methods = [name_meant(name, known) for name in methods]
    for name in methods:
        refuse_shared(name, known)
        if name not in known:
            raise DpreproError(
                f"no curve of method {name!r}{nearest_meant(name, known) or '.'} "
                f"There are: {', '.join(known)}"
            )
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
            name = f"Table {panel.table}" if panel.table.isdigit() else panel.table
            found.append(replace(panel, title=panel.title + (f" ({name})" if name else "")))
    return found


def _panel(table: ResultTable, group: Group, methods: Sequence[str]) -> Panel:
    curves = []
    for position, column in enumerate(table.columns):
        entries = [row[position] for row in group.rows]
        measured = _measured(entries, table.metric.name)
        cells = [entry.verdict.published for entry in entries if entry.verdict]
        published = tuple(Point(cell.epsilon, cell.mean, cell.std) for cell in cells)
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
    must be set, and their `height` in inches must be at least `room_for` the names.
    """
    to_share = axes.transData + axes.transAxes.inverted()
    shares = [to_share.transform((end.across, end.up)) for end in ends]
    wanted = [min(max(float(up), 0.0), 1.0) for _, up in shares]
    places = kept_apart(wanted, room_for(1) / height)
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


def kept_apart(wanted: Sequence[float], gap: float) -> list[float]:
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


@dataclass(frozen=True)
class _View:
    """A panel to draw, with its title, and the curves to name beside it."""

    panel: Panel
    zoom: Zoom | None
    named: Sequence[Curve]
    title: str

    def wide(self, room: float) -> float:
        """Return the width of the axes, in inches, that leaves room for the longest name beside."""
        longest = max((length_of(curve.title) for curve in self.named), default=0.0)
        return max(_WIDE, (room - longest - _EDGE) / BESIDE)


def write_figures(panels: Sequence[Panel], folder: Path, formats: Iterable[str]) -> list[Path]:
    """Write one picture a panel and, where there are several, one of all; return the paths.

    Names are ``curves-METRIC-DATASET``, with the table where several print it, and, for the picture
    of all, ``curves-METRIC`` or, of several metrics, ``curves``. It is put together from the
    others, so nothing is drawn twice. The same panels give the same bytes.
    """
    looks = looks_of(panels)
    parts = (("curves", panel.metric.name, panel.dataset, panel.table) for panel in panels)
    names = file_names("-".join(filter(None, found)) for found in parts)
    named = zip(names, panels, strict=True)
    figures = {name: partial(draw_curves, panel, looks) for name, panel in named}
    metrics = {panel.metric.name for panel in panels}
    together = f"curves-{metrics.pop()}" if len(metrics) == 1 else "curves"
    more = {together: partial(_together, panels)} if len(panels) > 1 else {}
    return save_figures(figures, folder, formats, more, is_cut=False)


def _together(panels: Sequence[Panel], files: Sequence[bytes], ending: str) -> bytes:
    """Return the picture of all panels, with one set of keys in place of each one's own."""
    figure = Figure(figsize=(_WIDTH, _KEYS))
    _draw_keys(figure, panels, 2)
    (keys,) = contents(lambda: figure, [ending])
    return put_together(files, keys, ending, _KEYS, _COLUMNS * _WIDTH)


def looks_of(panels: Iterable[Panel]) -> dict[str, Look]:
    """Return the look of each method, the same in all panels."""
    return looks(curve.method for panel in panels for curve in panel.curves)


def draw_curves(panel: Panel, looks: Mapping[str, Look], is_narrow: bool = False) -> Figure:
    """Return a figure of a panel, with a closer look beside it where one pays.

    The name of each method stands once beside its curve: beside the closer look if it is shown
    there, else beside the whole. A narrow figure fits a phone: the closer look stands below.
    """
    views = _views(panel)
    down, across = (len(views), 1) if is_narrow else (1, len(views))
    above = _EDGE + _NOTE * len(_wrapped_notes(panel)) + (_TITLE if views[-1].title else 0.0)
    height = max(_HEIGHT, room_for(len(panel.curves) + 1))
    width, row = PHONE_WIDTH if is_narrow else _WIDTH, above + height + _BELOW
    keys = 2 * _KEYS if is_narrow else _KEYS
    figure = Figure(figsize=(across * width, down * row + keys))
    for number, view in enumerate(views):
        # Beside the whole, the closer look need not say again what it measures.
        left = _LEFT - (_TITLE if number % across else 0.0)
        bottom = keys + (down - 1 - number // across) * row + _BELOW
        box = Bbox.from_bounds(
            number % across * width + left, bottom, view.wide(width - left), height
        )
        axes = figure.add_axes(Bbox(box.get_points() / figure.get_size_inches()).bounds)
        draw_panel(axes, view.panel, looks, view.zoom)
        _label(axes, view, width - left, box)
        _name(axes, view.named, panel, looks, height)
    if len(views) > 1 and not panel.is_logarithmic:
        whole, near = figure.axes
        whole.axhspan(*near.get_ylim(), color="0.95", linewidth=0, zorder=0)
    _draw_keys(figure, [panel], 1 if is_narrow else 2)
    return figure


def _views(panel: Panel) -> list[_View]:
    zoom = zoom_of(panel)
    if zoom is None:
        return [_View(panel, None, panel.curves, panel.title)]
    title = f"{panel.title}, closer" if panel.title else "closer"
    near = _View(replace(panel, notes=()), zoom, zoom.good, title)
    return [_View(panel, None, zoom.others, panel.title), near]


def _draw_keys(figure: Figure, panels: Iterable[Panel], columns: int) -> None:
    figure.legend(
        handles=_kinds(panels), loc="lower center", ncols=columns, frameon=False, fontsize=8,
        borderaxespad=0.1,
    )  # fmt: skip


def draw_panel(
    axes: Axes, panel: Panel, looks: Mapping[str, Look], zoom: Zoom | None = None
) -> None:
    """Draw one panel: lines and filled markers measured, rings published, all at their epsilon.

    `zoom` bounds the vertical axis.
    """
    places = positions(point.epsilon for point in panel.points)
    _draw_bars(axes, panel.curves, places, looks)
    for curve in panel.curves:
        _draw_curve(axes, curve, places, looks[curve.method])
    if panel.is_logarithmic:
        axes.set_yscale("log", nonpositive="clip")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(_LEVELS, steps=[1, 2, 2.5, 5, 10]))
    if zoom is not None:
        _set_range(axes, zoom, panel.is_logarithmic)
    present = {point.epsilon for point in panel.points}
    shown = {epsilon: place for epsilon, place in places.items() if epsilon in present}
    axes.set_xticks(list(shown.values()), _tick_names(shown))
    axes.set_xlim(min(shown.values()) - 0.4, max(shown.values()) + 0.4)
    if math.inf in shown and len(shown) > 1:
        axes.axvline(shown[math.inf] - _GAP / 2, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.tick_params(labelsize=8)
    open_frame(axes, grid=True)


def _set_range(axes: Axes, zoom: Zoom, is_logarithmic: bool) -> None:
    if is_logarithmic:
        factor = (zoom.highest / zoom.lowest) ** 0.08
        axes.set_ylim(zoom.lowest / factor, zoom.highest * factor)
    else:
        margin = 0.08 * (zoom.highest - zoom.lowest)
        axes.set_ylim(zoom.lowest - margin, zoom.highest + margin)


def positions(epsilons: Iterable[float]) -> dict[float, float]:
    """Return the place of each epsilon on the axis: log2, the non-private ones a gap behind."""
    finite = sorted({epsilon for epsilon in epsilons if math.isfinite(epsilon)})
    places = {epsilon: math.log2(epsilon) for epsilon in finite}
    return {**places, math.inf: places[finite[-1]] + _GAP if finite else 0.0}


def _draw_curve(axes: Axes, curve: Curve, places: Mapping[float, float], look: Look) -> None:
    """Draw filled markers, joined where they are private, and rings."""
    rings = _along(curve.published, places)
    private = [point for point in curve.measured if math.isfinite(point.epsilon)]
    twins = [point for point in curve.measured if math.isinf(point.epsilon)]
    joined = [*_along(private, places), (math.nan, math.nan), *_along(twins, places)]
    axes.plot(
        *zip(*joined, strict=True), color=look.colour, linestyle=look.dash, linewidth=1.3,
        marker=look.marker, markersize=4, markeredgewidth=0, zorder=3,
    )  # fmt: skip
    if rings:
        axes.plot(
            *zip(*rings, strict=True), "o", markerfacecolor="none",
            markeredgecolor=look.colour, markeredgewidth=1.0, markersize=8, zorder=4,
        )  # fmt: skip


def _along(points: Iterable[Point], places: Mapping[float, float]) -> list[tuple[float, float]]:
    return [(places[point.epsilon], point.mean) for point in points]


def _draw_bars(
    axes: Axes, curves: Sequence[Curve], places: Mapping[float, float], looks: Mapping[str, Look]
) -> None:
    """Draw bars of one standard deviation to each side: wide pale ones published, thin measured."""
    for style in (_PALE, _THIN):
        bars, colours = [], []
        for curve in curves:
            for point in curve.published if style is _PALE else curve.measured:
                at, sd = places[point.epsilon], point.sd or 0.0
                bars.append([(at, point.mean - sd), (at, point.mean + sd)])
                colours.append(looks[curve.method].colour)
        axes.add_collection(LineCollection(bars, colors=colours, **style))


def _name(
    axes: Axes, curves: Sequence[Curve], panel: Panel, looks: Mapping[str, Look], height: float
) -> None:
    places = positions(point.epsilon for point in panel.points)
    ends = []
    for curve in curves:
        points = (*curve.measured, *curve.published)
        private = [point for point in points if math.isfinite(point.epsilon)]
        last = max(private or points, key=lambda point: point.epsilon)
        ends.append(End(curve.title, looks[curve.method], places[last.epsilon], last.mean))
    name_ends(axes, ends, height)


def _label(axes: Axes, view: _View, room: float, box: Bbox) -> None:
    """Write what stands around the axes: these lie in a box, with so much room right of its left.

    In inches. All places are given: matplotlib would take as long to find them as to draw.
    """
    notes = _wrapped_notes(view.panel)
    title, size = fitted(plain(view.title), 11.0 if view.panel.title else 10.0, room - _EDGE)
    axes.set_title(
        title, fontsize=size, pad=6 + 9 * len(notes), loc="left", y=1.0,
        color="black" if view.panel.title else "0.3",
    )  # fmt: skip
    axes.text(
        0.0, 1.01, plain("\n".join(notes)), transform=axes.transAxes, ha="left", va="bottom",
        fontsize=7, color="0.3",
    )  # fmt: skip
    axes.set_xlabel("ε, logarithmic", fontsize=9)
    axes.xaxis.set_label_coords(0.5, (0.22 - _BELOW) / box.height)
    if view.zoom is None:
        measure, size = fitted(metric_label(view.panel.metric), 9.0, box.height + 2 * _EDGE)
        axes.set_ylabel(measure, fontsize=size)
        axes.yaxis.set_label_coords((0.22 - _LEFT) / box.width, 0.5)
    axes.yaxis.get_offset_text().set_horizontalalignment("right")  # left of the title


def _wrapped_notes(panel: Panel) -> list[str]:
    return [line for note in panel.notes for line in textwrap.wrap(note, _LONGEST_NOTE)]


def _tick_names(places: Mapping[float, float]) -> list[str]:
    """Return the label of each epsilon, in order; empty for those too close to the one before."""
    room = (max(places.values()) - min(places.values())) / _TICKS
    names, last = [], -math.inf
    for epsilon, place in places.items():
        if math.isinf(epsilon):
            names.append("not\nprivate")
        elif place - last < room:
            names.append("")
        else:
            names.append(f"{epsilon:g}")
            last = place
    return names


def _kinds(panels: Iterable[Panel]) -> list[Line2D]:
    """Return the keys of measured and published points, as far as there are any."""
    curves = [curve for panel in panels for curve in panel.curves]
    style: dict[str, Any] = {"color": "0.3", "linestyle": "", "marker": "o"}
    keys = []
    if any(curve.measured for curve in curves):
        keys.append(Line2D([], [], label="measured, mean ± sd", markersize=4.5, **style))
    if any(curve.published for curve in curves):
        ring = {**style, "markerfacecolor": "none", "markersize": 8}
        keys.append(Line2D([], [], label="published (ring; pale bar: sd)", **ring))
    return keys
