"""Draw curves with matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dprepro.report.draw.curves import Curve, Panel, Point
from dprepro.report.draw.direct import End, name_ends, room_for
from dprepro.report.draw.files import save_figures
from dprepro.report.draw.style import PHONE_WIDTH, Look, looks, metric_label, open_frame
from dprepro.report.draw.zoom import Zoom, zoom_of
from dprepro.text import file_names, plain

# The axis counts octaves of epsilon. The non-private twins stand so far to the right of the last.
_GAP = 1.2
_COLUMNS = 4
# An axis has room for so many labels, and a line of a note for so many characters.
_TICKS = 8
_LONGEST_NOTE = 60
# Inches: a panel with its names, its axes, and what stands above and below these.
_WIDTH, _HEIGHT, _AROUND = 4.3, 2.5, 1.0


def write_figures(panels: Sequence[Panel], folder: Path, formats: Iterable[str]) -> list[Path]:
    """Write one picture a panel and, where there are several, a grid of all; return the paths.

    Names are ``curves-METRIC-DATASET``, with the table where several print it, and, for the grid,
    ``curves-METRIC`` or, of several metrics, ``curves``. The same panels give the same bytes.
    """
    looks = looks_of(panels)
    names = file_names("-".join(filter(None, _parts(panel))) for panel in panels)
    figures = {name: [panel] for name, panel in zip(names, panels, strict=True)}
    if len(panels) > 1:
        metrics = {panel.metric.name for panel in panels}
        figures[f"curves-{metrics.pop()}" if len(metrics) == 1 else "curves"] = list(panels)
    return save_figures(
        {n: partial(draw_curves, shown, looks) for n, shown in figures.items()}, folder, formats
    )


def _parts(panel: Panel) -> tuple[str, ...]:
    return "curves", panel.metric.name, panel.dataset, panel.table


def looks_of(panels: Iterable[Panel]) -> dict[str, Look]:
    """Return the look of each method, the same in all panels."""
    return looks(curve.method for panel in panels for curve in panel.curves)


def draw_curves(panels: Sequence[Panel], looks: Mapping[str, Look]) -> Figure:
    """Return a figure of the panels in rows, each with a closer look beside it where one pays.

    The name of each method stands once beside its curve: beside the closer look if it is shown
    there, else beside the whole.
    """
    zooms = [zoom_of(panel) for panel in panels]
    rows = _rows([1 if zoom is None else 2 for zoom in zooms])
    columns = max(len(row) for row in rows)
    heights = [_height(panels[number] for number in row) for row in rows]
    size = (max(5.6, _WIDTH * columns), sum(heights) + _AROUND * len(rows) + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(
        len(rows), columns, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for axes_row, row, height in zip(grid, rows, heights, strict=True):
        for number in dict.fromkeys(row):
            pair = [axes for axes, other in zip(axes_row, row, strict=False) if other == number]
            _draw_pair(pair, panels[number], zooms[number], looks, height)
        for axes in axes_row[len(row) :]:
            axes.remove()
    _draw_keys(figure, panels, 2)
    return figure


def draw_column(panel: Panel, looks: Mapping[str, Look]) -> Figure:
    """Return a figure of one panel that fits a phone: the closer look stands below the whole."""
    zoom, height = zoom_of(panel), _height([panel])
    down = 1 if zoom is None else 2
    figure = Figure(figsize=(PHONE_WIDTH, down * (height + 0.6) + 0.6), layout="constrained")
    axes = figure.subplots(down, 1, squeeze=False)[:, 0]
    _draw_pair(list(axes), panel, zoom, looks, height)
    _draw_keys(figure, [panel], 1)
    return figure


def _draw_keys(figure: Figure, panels: Iterable[Panel], columns: int) -> None:
    figure.legend(
        handles=_kinds(panels), loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def _rows(widths: Sequence[int]) -> list[list[int]]:
    """Return the number of the panel in each place of each row; a pair stays in one row."""
    rows: list[list[int]] = [[]]
    for number, width in enumerate(widths):
        if len(rows[-1]) + width > _COLUMNS:
            rows.append([])
        rows[-1] += width * [number]
    return rows


def _height(panels: Iterable[Panel]) -> float:
    """Return the height of the axes of a row of panels: room for all names."""
    return max(_HEIGHT, *(room_for(len(panel.curves) + 1) for panel in panels))


def _draw_pair(
    pair: list[Axes], panel: Panel, zoom: Zoom | None, looks: Mapping[str, Look], height: float
) -> None:
    draw_panel(pair[0], panel, looks)
    if zoom is None:
        _name(pair[0], panel.curves, panel, looks, height)
        return
    whole, near = pair
    _name(whole, zoom.others, panel, looks, height)
    draw_panel(near, replace(panel, notes=()), looks, zoom)
    _name(near, zoom.good, panel, looks, height)
    if panel.title:
        near.set_title(plain(f"{panel.title}, closer"), fontsize=11, loc="left")
    else:
        near.set_title("closer", fontsize=10, color="0.3", loc="left")
    near.set_ylabel("")
    if not panel.is_logarithmic:
        whole.axhspan(*near.get_ylim(), color="0.95", linewidth=0, zorder=0)


def draw_panel(
    axes: Axes, panel: Panel, looks: Mapping[str, Look], zoom: Zoom | None = None
) -> None:
    """Draw one panel: lines and filled markers measured, rings published, all at their epsilon.

    `zoom` bounds the vertical axis.
    """
    places = positions(point.epsilon for point in panel.points)
    for curve in panel.curves:
        look = looks[curve.method]
        _draw_published(axes, curve.published, places, look)
        _draw_measured(axes, curve.measured, places, look)
    if panel.is_logarithmic:
        axes.set_yscale("log", nonpositive="clip")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if zoom is not None:
        _set_range(axes, zoom, panel.is_logarithmic)
    _label(axes, panel, places)


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


def _draw_measured(
    axes: Axes, points: Sequence[Point], places: Mapping[float, float], look: Look
) -> None:
    private = [point for point in points if math.isfinite(point.epsilon)]
    axes.plot(
        [places[point.epsilon] for point in private], [point.mean for point in private],
        color=look.colour, linestyle=look.dash, linewidth=1.3,
    )  # fmt: skip
    if points:
        axes.errorbar(
            [places[point.epsilon] for point in points], [point.mean for point in points],
            yerr=[point.sd or 0.0 for point in points], fmt=look.marker, color=look.colour,
            markersize=4, markeredgewidth=0, elinewidth=0.8, zorder=3,
        )  # fmt: skip


def _draw_published(
    axes: Axes, points: Sequence[Point], places: Mapping[float, float], look: Look
) -> None:
    """Draw rings, with wide pale bars of one standard deviation."""
    if points:
        axes.errorbar(
            [places[point.epsilon] for point in points], [point.mean for point in points],
            yerr=[point.sd or 0.0 for point in points], fmt="none", ecolor=look.colour,
            elinewidth=5, alpha=0.18, zorder=1.5,
        )  # fmt: skip
        axes.plot(
            [places[point.epsilon] for point in points], [point.mean for point in points],
            "o", markerfacecolor="none", markeredgecolor=look.colour, markeredgewidth=1.0,
            markersize=8, zorder=4,
        )  # fmt: skip


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


def _label(axes: Axes, panel: Panel, places: Mapping[float, float]) -> None:
    present = {point.epsilon for point in panel.points}
    shown = {epsilon: place for epsilon, place in places.items() if epsilon in present}
    axes.set_xticks(list(shown.values()), _tick_names(shown))
    axes.set_xlim(min(shown.values()) - 0.4, max(shown.values()) + 0.4)
    if math.inf in shown and len(shown) > 1:
        axes.axvline(shown[math.inf] - _GAP / 2, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set_xlabel("ε, logarithmic", fontsize=9)
    axes.set_ylabel(metric_label(panel.metric), fontsize=9)
    axes.tick_params(labelsize=8)
    notes = [line for note in panel.notes for line in textwrap.wrap(note, _LONGEST_NOTE)]
    axes.set_title(plain(panel.title), fontsize=11, pad=6 + 9 * len(notes), loc="left")
    lines = axes.text(0.0, 1.01, plain("\n".join(notes)), transform=axes.transAxes)
    lines.set(ha="left", va="bottom", fontsize=7, color="0.3", in_layout=False)
    open_frame(axes, grid=True)


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
