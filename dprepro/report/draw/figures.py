"""Draw curves with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dprepro.report.draw.curves import Panel, Point
from dprepro.report.draw.files import save_figures
from dprepro.report.draw.style import Look, looks, metric_label, open_frame
from dprepro.report.text import file_names, plain

# The axis counts octaves of epsilon. The non-private twins stand so far to the right of the last.
_GAP = 1.5
# The points of one epsilon are spread over this share of an octave, so that bars do not overlap.
_SPREAD = 0.7
_COLUMNS = 4
# An axis has room for so many labels.
_TICKS = 9


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
        {n: draw_curves(shown, looks) for n, shown in figures.items()}, folder, formats
    )


def _parts(panel: Panel) -> tuple[str, ...]:
    return "curves", panel.metric.name, panel.dataset, panel.table


def looks_of(panels: Iterable[Panel]) -> dict[str, Look]:
    """Return a look for each title of a curve, the same in all panels."""
    return looks(curve.title for panel in panels for curve in panel.curves)


def draw_curves(
    panels: Sequence[Panel],
    looks: Mapping[str, Look],
    size: tuple[float, float] | None = None,
) -> Figure:
    """Return a figure of the panels in rows of four, with one legend below them.

    `size` is in inches; by default it grows with the number of panels.
    """
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    grown = (6.4, 4.8) if len(panels) == 1 else (3.7 * columns, 3.1 * rows + 0.7)
    figure = Figure(figsize=size or grown, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        draw_panel(axes, panel, looks)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    shown = dict.fromkeys(curve.title for panel in panels for curve in panel.curves)
    keys = [*(_key(title, looks[title]) for title in shown), *_kinds(panels)]
    figure.legend(
        handles=keys,
        loc="outside lower center",
        ncols=min(len(keys), 2 if columns < 2 else columns + 1),
        frameon=False,
        fontsize=9,
        handlelength=3.2,
    )
    return figure


def draw_panel(axes: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Draw one panel: lines and filled markers measured, hollow markers published."""
    places = positions(point.epsilon for point in panel.points)
    slot = _SPREAD / max(1, len(panel.curves))
    for index, curve in enumerate(panel.curves):
        shift = (index - (len(panel.curves) - 1) / 2) * slot
        look = looks[curve.title]
        _draw_points(axes, curve.measured, places, shift - slot / 4, look, is_ours=True)
        _draw_points(axes, curve.published, places, shift + slot / 4, look, is_ours=False)
    if panel.is_logarithmic:
        axes.set_yscale("log", nonpositive="clip")
    _label(axes, panel, places)


def positions(epsilons: Iterable[float]) -> dict[float, float]:
    """Return the place of each epsilon on the axis: log2, the non-private ones a gap behind."""
    finite = sorted({epsilon for epsilon in epsilons if math.isfinite(epsilon)})
    places = {epsilon: math.log2(epsilon) for epsilon in finite}
    return {**places, math.inf: places[finite[-1]] + _GAP if finite else 0.0}


def _draw_points(
    axes: Axes,
    points: Sequence[Point],
    places: Mapping[float, float],
    shift: float,
    look: Look,
    is_ours: bool,
) -> None:
    if is_ours:
        private = [point for point in points if math.isfinite(point.epsilon)]
        axes.plot(
            [places[point.epsilon] + shift for point in private],
            [point.mean for point in private],
            color=look.colour,
            linestyle=look.dash,
            linewidth=1.4,
        )
    if points:
        axes.errorbar(
            [places[point.epsilon] + shift for point in points],
            [point.mean for point in points],
            yerr=[point.sd or 0.0 for point in points],
            fmt=look.marker,
            color=look.colour,
            markerfacecolor=look.colour if is_ours else "white",
            markersize=4.5 if is_ours else 5.5,
            elinewidth=0.9,
            capsize=1.5,
            zorder=3 if is_ours else 2.5,
        )


def _label(axes: Axes, panel: Panel, places: Mapping[float, float]) -> None:
    present = {point.epsilon for point in panel.points}
    shown = {epsilon: place for epsilon, place in places.items() if epsilon in present}
    axes.set_xticks(list(shown.values()), _tick_names(shown))
    axes.set_xlim(min(shown.values()) - 0.5, max(shown.values()) + 0.5)
    if math.inf in shown and len(shown) > 1:
        axes.axvline(shown[math.inf] - _GAP / 2, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set_xlabel("ε", labelpad=-6 if math.inf in shown else 2)
    axes.set_ylabel(metric_label(panel.metric))
    axes.set_title(plain(panel.title), fontsize=11, pad=6 + 9 * len(panel.notes))
    lines = axes.text(0.5, 1.01, plain("\n".join(panel.notes)), transform=axes.transAxes)
    lines.set(ha="center", va="bottom", fontsize=7, color="0.3", in_layout=False)
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


def _key(title: str, look: Look) -> Line2D:
    return Line2D(
        [],
        [],
        color=look.colour,
        linestyle=look.dash,
        marker=look.marker,
        markersize=4.5,
        label=plain(title),
    )


def _kinds(panels: Iterable[Panel]) -> list[Line2D]:
    """Return the legend's keys of measured and published points, as far as there are any."""
    curves = [curve for panel in panels for curve in panel.curves]
    style: dict[str, Any] = {"color": "0.3", "linestyle": "", "marker": "o", "markersize": 5}
    keys = []
    if any(curve.measured for curve in curves):
        keys.append(Line2D([], [], label="measured, mean ± sd", **style))
    if any(curve.published for curve in curves):
        keys.append(Line2D([], [], label="published", markerfacecolor="white", **style))
    return keys
