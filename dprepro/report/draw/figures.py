"""Draw curves with matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from dprepro.report.draw.curves import (
    BESIDE,
    Curve,
    End,
    Panel,
    Point,
    Zoom,
    length_of,
    name_ends,
    room_for,
    zoom_of,
)
from dprepro.report.draw.files import contents, save_figures
from dprepro.report.draw.style import PHONE_WIDTH, Look, fitted, looks, metric_label, open_frame
from dprepro.report.draw.svg import put_together
from dprepro.runtime.text import file_names, plain

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
    names = file_names("-".join(filter(None, _parts(panel))) for panel in panels)
    figures = {
        n: partial(draw_curves, panel, looks) for n, panel in zip(names, panels, strict=True)
    }
    metrics = {panel.metric.name for panel in panels}
    together = f"curves-{metrics.pop()}" if len(metrics) == 1 else "curves"
    more = {together: partial(_together, panels)} if len(panels) > 1 else {}
    return save_figures(figures, folder, formats, more, is_cut=False)


def _parts(panel: Panel) -> tuple[str, ...]:
    return "curves", panel.metric.name, panel.dataset, panel.table


def _together(panels: Sequence[Panel], files: Sequence[bytes], ending: str) -> bytes:
    """Return the picture of all panels, with one set of keys in place of each one's own."""
    figure = Figure(figsize=(_WIDTH, _KEYS))
    _draw_keys(figure, panels, 2)
    (keys,) = contents(figure, [ending])
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
    above = _EDGE + _NOTE * len(_notes(panel)) + (_TITLE if views[-1].title else 0.0)
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
    notes = _notes(view.panel)
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


def _notes(panel: Panel) -> list[str]:
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
