"""How the curves of a panel are drawn on its axes.

At most eight methods have a colour, the others are grey.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    ScalarFormatter,
)

from dprepro.report.draw.keys import PALE, line_style, ring_style
from dprepro.report.draw.panels import Curve, Panel, Point, Zoom, median_of
from dprepro.report.draw.style import (
    MOST_COLOURED,
    POINTS_PER_INCH,
    Look,
    grey_looks,
    looks,
    open_frame,
    text_width,
)

SMALL = 0.875
"""Labels of ticks, entries and notes are smaller than other labels by this factor."""

# The axis counts octaves of epsilon. The non-private twins stand so far to the right of the last.
_GAP = 1.2
_HALF_A_DECADE = 5.0
_MARGIN = 0.07
# Numbers of this size are written without an exponent.
_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e7


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
        order = sorted(panel.curves, key=lambda curve: sign * median_of(curve))
        for place, curve in enumerate(order):
            places.setdefault(curve.method, []).append(place / max(1, len(order) - 1))
    return {method: statistics.mean(found) for method, found in places.items()}


def draw_panel(
    axes: Axes,
    panel: Panel,
    styles: Mapping[str, Look],
    points: float,
    height: float,
    zoom: Zoom | None = None,
) -> None:
    """Draw one panel: lines and filled markers measured, rings published, all at their epsilon.

    Letters have so many `points`, and the axes so many inches of `height`. `zoom` bounds the
    vertical axis. Where there is one epsilon, methods stand side by side.
    """
    places = positions(point.epsilon for point in panel.points)
    present = {point.epsilon for point in panel.points}
    shown = {epsilon: place for epsilon, place in places.items() if epsilon in present}
    coloured = [c for c in panel.curves if not styles[c.method].is_grey]
    for curve in panel.curves:
        if curve not in coloured:
            _draw_curve(axes, curve, places, styles[curve.method], points)
    step = 0.7 / len(coloured) if len(shown) == 1 and coloured else 0.0
    for number, curve in enumerate(coloured):
        aside = step * (number - (len(coloured) - 1) / 2)
        moved = {epsilon: place + aside for epsilon, place in places.items()}
        _draw_bars(axes, curve, moved, styles[curve.method], points)
        _draw_curve(axes, curve, moved, styles[curve.method], points)
    _set_range(axes, panel, styles, points, height, zoom)
    axes.set_xlim(min(shown.values()) - 0.4, max(shown.values()) + 0.4)
    if math.inf in shown and len(shown) > 1:
        last = max(place for epsilon, place in shown.items() if math.isfinite(epsilon))
        middle = (last + shown[math.inf]) / 2
        axes.axvline(middle, color="0.6", linewidth=0.6, linestyle=(0, (2, 2)))
    axes.tick_params(labelsize=SMALL * points, length=0.25 * points, pad=0.2 * points, width=0.6)
    open_frame(axes, grid=True)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)


def _set_range(
    axes: Axes,
    panel: Panel,
    styles: Mapping[str, Look],
    points: float,
    height: float,
    zoom: Zoom | None,
) -> None:
    low, high = (zoom.lowest, zoom.highest) if zoom else _range_of(panel, styles)
    # A logarithmic axis of less than half a decade has hardly a tick.
    is_logarithmic = panel.is_logarithmic and high > _HALF_A_DECADE * low
    label = 1.3 * SMALL * points / POINTS_PER_INCH
    if is_logarithmic:
        factor = (high / low) ** _MARGIN
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(low / factor, high * factor)
        decade = height / math.log10(high / low)
        axes.yaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if decade * math.log10(2) > label else (1.0,))
        )
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        margin = _MARGIN * (high - low or abs(high) or 1.0)
        axes.set_ylim(low - margin, high + margin)
        most = max(2, min(6, int(height / (2 * label))))
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


def name_ticks(axes: Axes, panel: Panel, wide: float, points: float) -> None:
    """Name each epsilon under its place, but for those that would stand on another's name."""
    present = {point.epsilon for point in panel.points}
    places = positions(present)
    shown = {epsilon: place for epsilon, place in places.items() if epsilon in present}
    low, high = axes.get_xlim()
    size = SMALL * points
    names = {epsilon: _tick_name(epsilon) for epsilon in shown}
    spans = {
        epsilon: ((place - low) / (high - low) * wide, 1.06 * text_width(names[epsilon], size))
        for epsilon, place in shown.items()
    }
    kept = kept_apart(spans, 0.12 * points / POINTS_PER_INCH)
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
