"""Tables as curves: metric against epsilon, one panel a dataset, one curve a method.

The panels of a table fill a grid, with one legend below. At most eight methods have a colour, the
others are grey. Methods that are worth it get a closer look: a second range that shows them alone.
"""

from __future__ import annotations

import math
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    ScalarFormatter,
)
from matplotlib.transforms import Bbox

from dprepro.report.draw.files import save_figures
from dprepro.report.draw.keys import (
    EDGE,
    PALE,
    Key,
    Legend,
    draw_legend,
    line_style,
    ring_style,
    set_out,
)
from dprepro.report.draw.sheet import COLUMN, PAGE, Sheet
from dprepro.report.draw.style import (
    MOST_COLOURED,
    POINTS_PER_INCH,
    Look,
    fitted,
    grey_looks,
    looks,
    metric_label,
    open_frame,
    text_width,
)
from dprepro.results.margins import Metric
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import counted
from dprepro.runtime.text import file_names, plain

if TYPE_CHECKING:
    from dprepro.papers.document import Column
    from dprepro.report.layout import Entry, Group, ResultTable

# Where values span more than this factor, small ones would lie flat on a linear axis.
_DECADE = 10.0
# Curves are good within this share of the way from the best to the worst: a closer look at them is
# at least five times closer.
_GOOD = 0.2
_FEWEST = 2

# The axis counts octaves of epsilon. The non-private twins stand so far to the right of the last.
_GAP = 1.2
_HALF_A_DECADE = 5.0
_MARGIN = 0.07
# Numbers of this size are written without an exponent.
_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e7

# Labels of ticks, entries and notes are smaller than other labels by this factor.
_SMALL = 0.875
# In letters of labels: a line, the names of ticks, axes of a free height, and the least axes.
_LINE, _TICK_LABELS = 1.35, 1.6
_HIGH = 13.0
_LEAST_HIGH, _LEAST, _LEAST_PAIRED = 5.5, 9.0, 7.0
# Points of the bars in the legend.
_THIN_KEY, _PALE_KEY = 0.7, 4.0


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
class _Page:
    """Where the parts of a figure are: columns and rows of panels, and sizes in inches.

    In a paired one, a closer look stands beside each panel where one pays.
    """

    panels: Sequence[Panel]
    legend: Legend
    notes: tuple[str, ...]
    columns: int
    is_paired: bool
    width: float
    height: float
    high: float
    points: float

    @property
    def em(self) -> float:
        """The inches of the letters of labels."""
        return self.points / POINTS_PER_INCH

    @property
    def rows(self) -> int:
        """How many rows of panels there are."""
        return math.ceil(len(self.panels) / self.columns)

    @property
    def title(self) -> float:
        """The inches above axes."""
        has_title = self.is_paired or any(panel.title for panel in self.panels)
        return (_LINE if has_title else 0.5) * self.em

    @property
    def row(self) -> float:
        """The inches from one row of axes to the next."""
        return self.title + self.high + _TICK_LABELS * self.em

    @property
    def beside(self) -> float:
        """The inches of the label to the left of all axes."""
        return EDGE + _LINE * self.em

    @property
    def wide(self) -> float:
        """The inches of a panel with its closer look and the labels of ticks."""
        return (self.width - self.beside) / self.columns

    @property
    def below(self) -> float:
        """The inches of what stands below all panels."""
        notes = len(self.notes) * _LINE * _SMALL * self.em
        return EDGE + notes + self.legend.height + 1.1 * _LINE * self.em

    @property
    def least_axes(self) -> float:
        """About how wide axes are."""
        parts = 2 if self.is_paired else 1
        return self.wide / parts - 4 * _SMALL * self.em

    @property
    def has_room(self) -> bool:
        """Whether axes are large enough to read something there."""
        least = _LEAST_PAIRED if self.is_paired else _LEAST
        return self.high >= _LEAST_HIGH * self.em and self.least_axes >= least * self.em


def looks_of(
    panels: Sequence[Panel], highlight: Sequence[str] = (), name_grey: bool = False
) -> dict[str, Look]:
    """Return the look of each method, the same in all these panels.

    Coloured are the methods of `highlight`; by default those with printed numbers, or, of a table
    without any, its columns, and then those of the best mean rank over panels, private ones before
    others: `MOST_COLOURED` in all. The others are grey, with a marker and a dash of their own if
    `name_grey`.
    """
    there = list(dict.fromkeys(curve.method for panel in panels for curve in panel.curves))
    wanted = [method for method in there if method in highlight or not highlight]
    if len(wanted) > MOST_COLOURED:
        curves = [curve for panel in panels for curve in panel.curves]
        printed = {curve.method for curve in curves if _has_printed(curve)}
        first = printed or {curve.method for curve in curves if curve.is_column}
        private = {c.method for c in curves for p in c.measured if math.isfinite(p.epsilon)}
        ranks = _mean_ranks(panels)
        others = sorted(
            (one for one in wanted if one not in first),
            key=lambda one: (one not in private, ranks[one]),
        )
        wanted = [*(one for one in wanted if one in first), *others]
    coloured = [method for method in there if method in wanted[:MOST_COLOURED]]
    others = [method for method in there if method not in coloured]
    return {**looks(coloured), **grey_looks(others, name_grey)}


def _has_printed(curve: Curve) -> bool:
    return any(math.isfinite(point.epsilon) for point in curve.published)


def _mean_ranks(panels: Sequence[Panel]) -> dict[str, float]:
    """Return the mean place of each method, 0 the best and 1 the worst, by medians."""
    places: dict[str, list[float]] = {}
    for panel in panels:
        sign = -1 if panel.metric.higher_is_better else 1
        order = sorted(panel.curves, key=lambda curve: sign * _median(curve))
        for place, curve in enumerate(order):
            places.setdefault(curve.method, []).append(place / max(1, len(order) - 1))
    return {method: statistics.mean(found) for method, found in places.items()}


def write_figures(
    panels: Sequence[Panel],
    folder: Path,
    formats: Iterable[str],
    sheet: Sheet | None = None,
    highlight: Sequence[str] = (),
    name_grey: bool = False,
    each: bool = False,
) -> list[Path]:
    """Write a picture of each table, with a panel for each of its datasets; return the paths.

    With `each`, or where they do not fit on the sheet together, each dataset has a picture of its
    own. Names are ``curves-DOCUMENT-TABLE-DATASET-METRIC``, as far as there is a document, and
    without the dataset where there are several. The same panels give the same bytes.

    Raises DpreproError if a panel does not fit on the sheet, or a file cannot be written.
    """
    sheet = sheet or Sheet()
    pictures: list[tuple[Sequence[Panel], dict[str, Look]]] = []
    for _, found in groupby(panels, lambda panel: (panel.number, panel.metric.name)):
        own = list(found)
        styles = looks_of(own, highlight, name_grey)
        is_whole = len(own) == 1 or not (each or _arranged(own, styles, sheet) is None)
        for part in [own] if is_whole else [[panel] for panel in own]:
            pictures.append((part, {c.method: styles[c.method] for p in part for c in p.curves}))
    names = file_names(_file_name(part) for part, _ in pictures)
    figures = {
        name: partial(draw_curves, part, styles, sheet)
        for name, (part, styles) in zip(names, pictures, strict=True)
    }
    return save_figures(figures, folder, formats, sheet, is_fitted=True)


def _file_name(panels: Sequence[Panel]) -> str:
    first = panels[0]
    table = f"table-{first.table}" if first.table.isdigit() else first.table
    dataset = first.dataset if len(panels) == 1 else ""
    parts = ("curves", first.document, table, dataset, first.metric.name)
    return "-".join(part for part in parts if part)


def draw_curves(
    panels: Sequence[Panel], styles: Mapping[str, Look], sheet: Sheet | None = None
) -> Figure:
    """Return a figure of the panels of one metric in a grid, with one legend below all.

    Beside a panel stands a closer look at the good ones of its coloured curves, where one pays and
    there is room.

    Raises DpreproError if they do not fit on the sheet.
    """
    sheet = sheet or Sheet()
    page = _arranged(panels, styles, sheet)
    if page is None:
        raise DpreproError(_too_small(panels, styles, sheet))
    figure = Figure(figsize=(page.width, page.height))
    cells = [_draw_cell(figure, panel, styles, page) for panel in panels]
    for column in range(page.columns):
        _place(figure, cells, column, page)
    _label(figure, page)
    draw_legend(figure, page.legend, page.below - 1.1 * _LINE * page.em)
    return figure


def _arranged(panels: Sequence[Panel], styles: Mapping[str, Look], sheet: Sheet) -> _Page | None:
    """Return the page with the largest axes; None where the given size has no room for them.

    Several panels have room only with their closer looks.
    """
    pages = [page for page in _pages(panels, styles, sheet) if page.has_room]
    if any(page.is_paired for page in pages) or (len(panels) > 1 and _pays(panels, styles)):
        pages = [page for page in pages if page.is_paired]
    return max(pages, key=_legibility, default=None)


def _pays(panels: Sequence[Panel], styles: Mapping[str, Look]) -> bool:
    return any(zoom_of(_coloured(panel, styles)) for panel in panels)


def _legibility(page: _Page) -> float:
    return min(page.least_axes * (2 if page.is_paired else 1), 1.8 * page.high)


def _pages(panels: Sequence[Panel], styles: Mapping[str, Look], sheet: Sheet) -> Iterable[_Page]:
    """Yield pages with more and more columns; of a free height, the one that is wide enough."""
    points = sheet.points
    em = points / POINTS_PER_INCH
    width = sheet.width or (COLUMN if len(panels) == 1 else PAGE)
    legend = set_out(_keys(panels, styles), width, _SMALL * points, sheet.height)
    notes = tuple(_wrapped_notes(panels, width, _SMALL * points))
    for is_paired in (True, False) if _pays(panels, styles) else (False,):
        usual = max(1, min(len(panels), int(width / ((28 if is_paired else 20) * em))))
        for columns in range(1, len(panels) + 1) if sheet.height else [usual]:
            page = _Page(panels, legend, notes, columns, is_paired, width, 0.0, _HIGH * em, points)
            free = (sheet.height or 0.0) - page.below - EDGE
            high = free / page.rows - page.row + page.high if sheet.height else page.high
            page = replace(page, high=high)
            taken = page.below + page.rows * page.row + EDGE
            yield replace(page, height=sheet.height or taken)


def _too_small(panels: Sequence[Panel], styles: Mapping[str, Look], sheet: Sheet) -> str:
    em = sheet.points / POINTS_PER_INCH
    needed = max(sheet.width or COLUMN, (_LEAST + 6) * em)
    (page,) = list(_pages(panels, styles, replace(sheet, width=needed, height=None)))[-1:]
    least = page.height - page.rows * (page.high - _LEAST_HIGH * em)
    up = max(sheet.height or 0.0, math.ceil(10 * least) / 10)
    would_do = f"{math.ceil(10 * needed) / 10:g}x{up:g}"
    return (
        f"{sheet.width:g} x {sheet.height:g} inches have no room for a panel and its legend with "
        f"letters of {sheet.points:g} points; about {would_do} inches would do. Choose a larger "
        "--size, a smaller --font, or fewer lines with --method"
    )


def _coloured(panel: Panel, styles: Mapping[str, Look]) -> Panel:
    return replace(panel, curves=tuple(c for c in panel.curves if not styles[c.method].is_grey))


@dataclass(frozen=True)
class _Cell:
    """The axes of a panel, and of its closer look, each with the inches of its tick labels."""

    panel: Panel
    axes: Sequence[Axes]
    labels: Sequence[float]


def _draw_cell(figure: Figure, panel: Panel, styles: Mapping[str, Look], page: _Page) -> _Cell:
    zoom = zoom_of(_coloured(panel, styles)) if page.is_paired else None
    drawn = []
    for number, view in enumerate([None, zoom] if zoom else [None]):
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), label=f"{id(panel)}-{number}")
        draw_panel(axes, panel, styles, page, view)
        drawn.append(axes)
    if zoom and drawn[0].get_yscale() == drawn[1].get_yscale():
        drawn[0].axhspan(*drawn[1].get_ylim(), color="0.94", linewidth=0, zorder=0)
    return _Cell(panel, drawn, [_width_of_ticks(axes, page) for axes in drawn])


def _width_of_ticks(axes: Axes, page: _Page) -> float:
    low, high = axes.get_ylim()
    places = [place for place in axes.yaxis.get_majorticklocs() if low <= place <= high]
    names = axes.yaxis.get_major_formatter().format_ticks(places)
    size = _SMALL * page.points
    return max((text_width(name, size) for name in names), default=0.0) + 0.6 * page.em


def _place(figure: Figure, cells: Sequence[_Cell], column: int, page: _Page) -> None:
    """Put the axes of a column where they belong, with titles above and the names of ticks."""
    own = cells[column :: page.columns]
    left = page.beside + column * page.wide
    labels = max(cell.labels[0] for cell in own)
    near = max((cell.labels[1] for cell in own if len(cell.axes) > 1), default=0.0)
    gap = 0.5 * page.em
    for row, cell in enumerate(own):
        bottom = page.height - EDGE - row * page.row - page.title - page.high
        across, room = left + labels, page.wide - labels - gap
        if len(cell.axes) > 1:
            room = (room - near - gap) / 2
        for number, axes in enumerate(cell.axes):
            start = across + number * (room + gap + near)
            box = Bbox.from_bounds(start, bottom, room, page.high)
            axes.set_position(Bbox(box.get_points() / figure.get_size_inches()))
            _name_ticks(axes, cell.panel, room, page)
        _write_title(figure, cell, across, bottom + page.high, page.wide - labels - gap, page)


def _write_title(
    figure: Figure, cell: _Cell, left: float, top: float, room: float, page: _Page
) -> None:
    up = top + 0.35 * page.em
    style: dict[str, Any] = {"transform": figure.dpi_scale_trans, "va": "bottom"}
    if len(cell.axes) > 1:
        size = _SMALL * page.points
        figure.text(left + room, up, "closer", fontsize=size, ha="right", color="0.3", **style)
        room -= text_width("closer", size) + page.em
    if cell.panel.title:
        text, size = fitted(plain(cell.panel.title), page.points, room)
        figure.text(left, up, text, fontsize=size, ha="left", **style)


def _label(figure: Figure, page: _Page) -> None:
    """Write what all panels measure, what is across, and the notes."""
    em, inches = page.em, figure.dpi_scale_trans
    # Axes begin and end so far from the upper edge.
    top, bottom = EDGE + page.title, EDGE + page.rows * page.row - _TICK_LABELS * em
    metric = page.panels[0].metric
    room = bottom - top + 2 * page.title
    said = metric_label(metric)
    if text_width(said, page.points) * 1.06 > room:
        said = metric.title
    text, size = fitted(said, page.points, room)
    figure.text(
        EDGE + 0.55 * em, page.height - (top + bottom) / 2, text, transform=inches, fontsize=size,
        rotation=90, ha="center", va="center",
    )  # fmt: skip
    epsilons = {point.epsilon for panel in page.panels for point in panel.points}
    text, size = fitted(_across(epsilons), page.points, page.width - page.beside)
    figure.text(
        (page.beside + page.width) / 2, page.below - 0.55 * em, text, transform=inches,
        fontsize=size, ha="center", va="center",
    )  # fmt: skip
    size = _SMALL * page.points
    for number, line in enumerate(reversed(page.notes)):
        figure.text(
            EDGE, EDGE + (number + 0.5) * _LINE * _SMALL * em, plain(line), transform=inches,
            fontsize=size, color="0.3", ha="left", va="center_baseline",
        )  # fmt: skip


def _across(epsilons: set[float]) -> str:
    if epsilons == {math.inf}:
        return "not private (ε = ∞)"
    scale = "ε, logarithmic" if len(epsilons - {math.inf}) > 1 else "ε"
    return f"{scale}; ∞: not private" if math.inf in epsilons else scale


def draw_panel(
    axes: Axes, panel: Panel, styles: Mapping[str, Look], page: _Page, zoom: Zoom | None = None
) -> None:
    """Draw one panel: lines and filled markers measured, rings published, all at their epsilon.

    `zoom` bounds the vertical axis. Where there is one epsilon, methods stand side by side.
    """
    places = positions(point.epsilon for point in panel.points)
    present = {point.epsilon for point in panel.points}
    shown = {epsilon: place for epsilon, place in places.items() if epsilon in present}
    coloured = [c for c in panel.curves if not styles[c.method].is_grey]
    for curve in panel.curves:
        if curve not in coloured:
            _draw_curve(axes, curve, places, styles[curve.method], page.points)
    step = 0.7 / len(coloured) if len(shown) == 1 and coloured else 0.0
    for number, curve in enumerate(coloured):
        aside = step * (number - (len(coloured) - 1) / 2)
        moved = {epsilon: place + aside for epsilon, place in places.items()}
        _draw_bars(axes, curve, moved, styles[curve.method], page.points)
        _draw_curve(axes, curve, moved, styles[curve.method], page.points)
    _set_range(axes, panel, styles, page, zoom)
    axes.set_xlim(min(shown.values()) - 0.4, max(shown.values()) + 0.4)
    if math.inf in shown and len(shown) > 1:
        last = max(place for epsilon, place in shown.items() if math.isfinite(epsilon))
        middle = (last + shown[math.inf]) / 2
        axes.axvline(middle, color="0.6", linewidth=0.6, linestyle=(0, (2, 2)))
    axes.tick_params(
        labelsize=_SMALL * page.points, length=0.25 * page.points, pad=0.2 * page.points, width=0.6
    )
    open_frame(axes, grid=True)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)


def _set_range(
    axes: Axes, panel: Panel, styles: Mapping[str, Look], page: _Page, zoom: Zoom | None
) -> None:
    low, high = (zoom.lowest, zoom.highest) if zoom else _range_of(panel, styles)
    # A logarithmic axis of less than half a decade has hardly a tick.
    is_logarithmic = panel.is_logarithmic and high > _HALF_A_DECADE * low
    label = 1.3 * _SMALL * page.em
    if is_logarithmic:
        factor = (high / low) ** _MARGIN
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(low / factor, high * factor)
        decade = page.high / math.log10(high / low)
        axes.yaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if decade * math.log10(2) > label else (1.0,))
        )
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        margin = _MARGIN * (high - low or abs(high) or 1.0)
        axes.set_ylim(low - margin, high + margin)
        most = max(2, min(6, int(page.high / (2 * label))))
        axes.yaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    largest = max(abs(low), abs(high))
    if is_logarithmic or not _PLAIN_FROM <= largest < _PLAIN_TO:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    else:
        formatter = ScalarFormatter(useOffset=False)
        formatter.set_scientific(False)
        axes.yaxis.set_major_formatter(formatter)


def _range_of(panel: Panel, styles: Mapping[str, Look]) -> tuple[float, float]:
    """Return the range of means, and of the bars of coloured curves; of what is finite."""
    ends: list[float] = []
    for curve in panel.curves:
        for point in (*curve.measured, *curve.published):
            sd = 0.0 if styles[curve.method].is_grey else point.sd or 0.0
            low = point.mean - sd
            # Of a bar that reaches below 0, a logarithmic axis shows a part.
            ends.append(max(low, point.mean / 2) if panel.is_logarithmic else low)
            ends.append(point.mean + sd)
    ends = [end for end in ends if math.isfinite(end)] or [0.0, 1.0]
    return min(ends), max(ends)


def positions(epsilons: Iterable[float]) -> dict[float, float]:
    """Return the place of each epsilon on the axis: log2, the non-private ones a gap behind."""
    finite = sorted({epsilon for epsilon in epsilons if math.isfinite(epsilon)})
    places = {epsilon: math.log2(epsilon) for epsilon in finite}
    if not finite:
        return {math.inf: 0.0}
    gap = max(_GAP, (places[finite[-1]] - places[finite[0]]) / 8)
    return {**places, math.inf: places[finite[-1]] + gap}


def _draw_curve(
    axes: Axes, curve: Curve, places: Mapping[float, float], look: Look, points: float
) -> None:
    """Draw filled markers, joined where they are private, and rings; of a grey curve its line."""
    rings = _along(curve.published, places)
    shown: tuple[Point, ...] = curve.measured
    if look.is_grey:
        shown, rings = curve.measured or curve.published, []
    private = [point for point in shown if math.isfinite(point.epsilon)]
    twins = [point for point in shown if math.isinf(point.epsilon)]
    joined = [*_along(private, places), (math.nan, math.nan), *_along(twins, places)]
    style = line_style(look, points)
    if look.is_grey and not look.marker:  # a single point has no line
        alone = [*(private if len(private) == 1 else ()), *twins]
        dots = _along(alone, places) or [(math.nan, math.nan)]
        axes.plot(*zip(*dots, strict=True), ".", color=look.colour, markersize=3, zorder=1.6)
    axes.plot(*zip(*joined, strict=True), zorder=1.6 if look.is_grey else 3, **style)
    if rings:
        axes.plot(
            *zip(*rings, strict=True), linestyle="none", zorder=4,
            **ring_style(look.colour, points),
        )  # fmt: skip


def _along(points: Iterable[Point], places: Mapping[float, float]) -> list[tuple[float, float]]:
    return [(places[point.epsilon], point.mean) for point in points]


def _draw_bars(
    axes: Axes, curve: Curve, places: Mapping[float, float], look: Look, points: float
) -> None:
    """Draw bars of one standard deviation to each side: wide pale ones published, thin measured."""
    for shown, style in (
        (curve.published, {"linewidths": 0.5 * points, "alpha": PALE, "zorder": 1.8}),
        (curve.measured, {"linewidths": 0.08 * points, "zorder": 2.9}),
    ):
        bars = [
            [(places[p.epsilon], p.mean - (p.sd or 0.0)), (places[p.epsilon], p.mean + (p.sd or 0))]
            for p in shown
        ]
        axes.add_collection(LineCollection(bars, colors=look.colour, **style), autolim=False)


def _wrapped_notes(panels: Sequence[Panel], width: float, points: float) -> Iterable[str]:
    letters = int((width - 2 * EDGE) / text_width("n", points))
    notes: dict[str, list[str]] = {}
    for panel in panels:
        for note in panel.notes:
            notes.setdefault(note, []).append(panel.title or panel.dataset)
    for note, titles in notes.items():
        of_some = len(titles) < len(panels)
        yield from textwrap.wrap(f"{', '.join(titles)}: {note}" if of_some else note, letters)


def _name_ticks(axes: Axes, panel: Panel, wide: float, page: _Page) -> None:
    """Name each epsilon under its place, but for those that would stand on another's name."""
    present = {point.epsilon for point in panel.points}
    places = positions(present)
    shown = {epsilon: place for epsilon, place in places.items() if epsilon in present}
    low, high = axes.get_xlim()
    size = _SMALL * page.points
    names = {epsilon: _tick_name(epsilon) for epsilon in shown}
    spans = {
        epsilon: ((place - low) / (high - low) * wide, 1.06 * text_width(names[epsilon], size))
        for epsilon, place in shown.items()
    }
    kept = kept_apart(spans, 0.12 * page.em)
    axes.set_xticks(list(shown.values()), [n if e in kept else "" for e, n in names.items()])


def _tick_name(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"


def kept_apart(spans: Mapping[float, tuple[float, float]], gap: float) -> set[float]:
    """Return which of the names, given by middle and width, stand apart: the ends come first."""
    order = list(spans)
    kept: list[float] = []
    for one in [order[-1], order[0], *order[1:-1]]:
        middle, wide = spans[one]
        if one not in kept and all(
            abs(middle - spans[other][0]) >= (wide + spans[other][1]) / 2 + gap for other in kept
        ):
            kept.append(one)
    return set(kept)


def _keys(panels: Sequence[Panel], styles: Mapping[str, Look]) -> list[Key]:
    """Return the entries of the legend: each line that has a name, and kinds that are drawn."""
    curves = [curve for panel in panels for curve in panel.curves]
    titles = {curve.method: curve.title for curve in reversed(curves)}
    order = dict.fromkeys(curve.method for curve in curves)
    named = [method for method in order if styles[method].marker]
    named.sort(key=lambda method: styles[method].is_grey)
    keys = [Key(titles[method], styles[method]) for method in named]
    coloured = [curve for curve in curves if not styles[curve.method].is_grey]
    if others := [method for method in order if not styles[method].marker]:
        keys.append(Key(f"{counted(len(others), 'other method')}", styles[others[0]]))
    if any(curve.measured for curve in coloured):
        keys.append(Key("measured, mean ± sd", bar=_THIN_KEY))
    if any(curve.published for curve in coloured):
        keys.append(Key("published, pale bar: sd", ring=True, bar=_PALE_KEY))
    return keys
