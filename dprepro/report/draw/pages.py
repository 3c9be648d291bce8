"""Curves on a page: the panels of a table in a grid, with one legend below."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from dprepro.report.draw.curves import SMALL, draw_panel, looks_of, name_ticks
from dprepro.report.draw.files import save_figures
from dprepro.report.draw.keys import EDGE, Key, Legend, draw_legend, set_out
from dprepro.report.draw.panels import Panel, zoom_of
from dprepro.report.draw.style import POINTS_PER_INCH, Look, fitted, metric_label, text_width
from dprepro.report.sheet import COLUMN, PAGE, Sheet
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import counted
from dprepro.runtime.text import file_names, plain

# In letters of labels: a line, the names of ticks, axes of a free height, and the least axes.
_LINE, _TICK_LABELS = 1.35, 1.6
_HIGH = 13.0
_LEAST_HIGH, _LEAST, _LEAST_PAIRED = 5.5, 9.0, 7.0
# Points of the bars in the legend.
_THIN_KEY, _PALE_KEY = 0.7, 4.0


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
        notes = len(self.notes) * _LINE * SMALL * self.em
        return EDGE + notes + self.legend.height + 1.1 * _LINE * self.em

    @property
    def least_axes(self) -> float:
        """About how wide axes are."""
        parts = 2 if self.is_paired else 1
        return self.wide / parts - 4 * SMALL * self.em

    @property
    def has_room(self) -> bool:
        """Whether axes are large enough to read something there."""
        least = _LEAST_PAIRED if self.is_paired else _LEAST
        return self.high >= _LEAST_HIGH * self.em and self.least_axes >= least * self.em


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
    legend = set_out(_keys(panels, styles), width, SMALL * points, sheet.height)
    notes = tuple(_wrapped_notes(panels, width, SMALL * points))
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
        draw_panel(axes, panel, styles, page.points, page.high, view)
        drawn.append(axes)
    if zoom and drawn[0].get_yscale() == drawn[1].get_yscale():
        drawn[0].axhspan(*drawn[1].get_ylim(), color="0.94", linewidth=0, zorder=0)
    return _Cell(panel, drawn, [_width_of_ticks(axes, page) for axes in drawn])


def _width_of_ticks(axes: Axes, page: _Page) -> float:
    low, high = axes.get_ylim()
    places = [place for place in axes.yaxis.get_majorticklocs() if low <= place <= high]
    names = axes.yaxis.get_major_formatter().format_ticks(places)
    size = SMALL * page.points
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
            name_ticks(axes, cell.panel, room, page.points)
        _write_title(figure, cell, across, bottom + page.high, page.wide - labels - gap, page)


def _write_title(
    figure: Figure, cell: _Cell, left: float, top: float, room: float, page: _Page
) -> None:
    up = top + 0.35 * page.em
    style: dict[str, Any] = {"transform": figure.dpi_scale_trans, "va": "bottom"}
    if len(cell.axes) > 1:
        size = SMALL * page.points
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
    size = SMALL * page.points
    for number, line in enumerate(reversed(page.notes)):
        figure.text(
            EDGE, EDGE + (number + 0.5) * _LINE * SMALL * em, plain(line), transform=inches,
            fontsize=size, color="0.3", ha="left", va="center_baseline",
        )  # fmt: skip


def _across(epsilons: set[float]) -> str:
    if epsilons == {math.inf}:
        return "not private (ε = ∞)"
    scale = "ε, logarithmic" if len(epsilons - {math.inf}) > 1 else "ε"
    return f"{scale}; ∞: not private" if math.inf in epsilons else scale


def _wrapped_notes(panels: Sequence[Panel], width: float, points: float) -> Iterable[str]:
    letters = int((width - 2 * EDGE) / text_width("n", points))
    notes: dict[str, list[str]] = {}
    for panel in panels:
        for note in panel.notes:
            notes.setdefault(note, []).append(panel.title or panel.dataset)
    for note, titles in notes.items():
        of_some = len(titles) < len(panels)
        yield from textwrap.wrap(f"{', '.join(titles)}: {note}" if of_some else note, letters)


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
