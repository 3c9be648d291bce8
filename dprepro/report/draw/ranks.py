"""Critical-difference diagram and wins of many methods, at the width of a printed column."""

from __future__ import annotations

import itertools
import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dprepro.judge.ranking import Ranking
from dprepro.report.draw.style import fitted, text_width
from dprepro.runtime.text import plain

_COLUMN = 3.3
"""Inches of a column of a paper in two columns."""
_SIZE = 7.0
_SMALL = 6.0
_ROW = 0.135  # inches between labels
_BAR = 0.075  # inches between bars
_TITLE, _AXIS, _EDGE, _GAP = 0.22, 0.24, 0.06, 0.05
_LONGEST_LABEL = 1.15
# Of more methods a number in each cell cannot be read.
_MOST_NUMBERS = 12
_DARK = 0.6
# Letters that are fitted to pixels are so much wider at most.
_HINTED = 1.06


def draw_ranks(ranking: Ranking) -> Figure:
    """Draw the critical-difference diagram: mean ranks on an axis, a bar for each group.

    A bar has a point at each of its methods: no two of them are shown to differ. Without a test
    there are no bars, and the title says so. The best is on the left.
    """
    names = ranking.methods
    left = names[: (len(names) + 1) // 2]
    right = names[: len(left) - 1 : -1]  # the worst above
    bars = [group for group in ranking.groups or () if len(group) > 1]
    below = _GAP + _BAR * (len(bars) + 1)
    labels = {name: f"{plain(name)} {ranking.mean_ranks[name]:.2f}" for name in names}
    shown = {name: fitted(label, _SIZE, _LONGEST_LABEL) for name, label in labels.items()}
    sides = [max(_width(*shown[name]) for name in side) + _EDGE + _GAP for side in (left, right)]
    lines = [plain(ranking.title), _of_bars(ranking)]
    top = _TITLE + _SMALL / 72 * 1.4 * (len(lines) - 1) + _AXIS
    height = top + below + _ROW * len(left) + _EDGE
    figure, axes = _canvas(height)
    for place, line in enumerate(lines):
        text, size = fitted(line, _SIZE if place == 0 else _SMALL, _COLUMN - 2 * _EDGE)
        y = _EDGE + place * _SMALL / 72 * 1.5
        axes.text(_COLUMN / 2, y, text, size=size, ha="center", va="top")
    wide = _COLUMN - sum(sides)

    def across(rank: float) -> float:
        return sides[0] + wide * (rank - 1) / (len(names) - 1)

    axes.plot([across(1), across(len(names))], [top, top], color="black", linewidth=0.8)
    step = math.ceil((len(names) - 1) * 0.14 / wide) or 1
    for rank in range(1, len(names) + 1):
        axes.plot([across(rank)] * 2, [top, top - 0.04], color="black", linewidth=0.8)
        if (rank - 1) % step == 0:
            axes.text(across(rank), top - 0.06, str(rank), size=_SMALL, ha="center", va="bottom")
    for is_left, side in ((True, left), (False, right)):
        for row, name in enumerate(side):
            x, y = across(ranking.mean_ranks[name]), top + below + _ROW * (row + 0.5)
            end = sides[0] - _GAP / 2 if is_left else _COLUMN - sides[1] + _GAP / 2
            axes.plot([x, x, end], [top, y, y], color="0.35", linewidth=0.6)
            text, size = shown[name]
            edge = sides[0] - _GAP if is_left else _COLUMN - sides[1] + _GAP
            axes.text(edge, y, text, size=size, ha="right" if is_left else "left", va="center")
    for number, group in enumerate(bars):
        y = top + _GAP + _BAR * (number + 0.5)
        places = [across(ranking.mean_ranks[name]) for name in group]
        axes.plot([min(places), max(places)], [y, y], color="black", linewidth=2.2)
        axes.plot(places, [y] * len(places), "o", color="black", markersize=3.2)
    return figure


def _of_bars(ranking: Ranking) -> str:
    if not ranking.is_tested:
        return "mean ranks; too few datasets to test pairs, so no bars"
    if ranking.groups is None:
        return "mean ranks; more groups than can be drawn"
    if len(ranking.scores) == 1:
        return "ranks of splits, not of datasets; bars: not shown to differ"
    return "mean ranks; bars: not shown to differ (signed-rank tests, Holm)"


def draw_wins(ranking: Ranking) -> Figure:
    """Draw on which share of datasets, or splits, the row's method is better than the column's."""
    names = ranking.methods
    shown = [
        fitted(f"{plain(name)}  {k}", _SIZE, _LONGEST_LABEL) for k, name in enumerate(names, 1)
    ]
    left = max(_width(*label) for label in shown) + _EDGE + _GAP
    side = (_COLUMN - left - _EDGE) / len(names)
    high = min(side, 0.3)
    top = _TITLE + _SMALL / 72 * 3
    figure, axes = _canvas(top + high * len(names) + _EDGE)
    what = "splits" if len(ranking.scores) == 1 else "datasets"
    heading, size = fitted(plain(ranking.title), _SIZE, _COLUMN - 2 * _EDGE)
    axes.text(_COLUMN / 2, _EDGE, heading, size=size, ha="center", va="top")
    said, size = fitted(f"% of {what} on which the row is better", _SMALL, _COLUMN - 2 * _EDGE)
    axes.text(_COLUMN / 2, _EDGE + _SMALL / 72 * 1.5, said, size=size, ha="center", va="top")
    for place, (text, size) in enumerate(shown):
        y = top + high * (place + 0.5)
        axes.text(left - _GAP, y, text, size=size, ha="right", va="center")
        x = left + side * (place + 0.5)
        if text_width(str(len(names)), _SMALL) < side:
            axes.text(x, top - 0.02, str(place + 1), size=_SMALL, ha="center", va="bottom")
    grid = [
        [math.nan if one == other else ranking.win_rates[one, other] for other in names]
        for one in names
    ]
    axes.pcolormesh(
        [left + side * k for k in range(len(names) + 1)],
        [top + high * k for k in range(len(names) + 1)],
        grid,
        cmap="Blues",
        vmin=0.0,
        vmax=1.0,
        edgecolor="white",
        linewidth=0.5,
    )
    if len(names) <= _MOST_NUMBERS:
        for row, column in itertools.permutations(range(len(names)), 2):
            rate = grid[row][column]
            x, y = left + side * (column + 0.5), top + high * (row + 0.5)
            ink = "white" if rate > _DARK else "black"
            axes.text(x, y, f"{100 * rate:.0f}", size=_SMALL, color=ink, ha="center", va="center")
    return figure


def _width(text: str, size: float) -> float:
    return _HINTED * text_width(text, size)


def _canvas(height: float) -> tuple[Figure, Axes]:
    """Return a figure whose coordinates are inches from the left upper corner."""
    figure = Figure(figsize=(_COLUMN, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, _COLUMN)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    return figure, axes
