"""Critical-difference diagram and wins of many methods, as wide as a printed column unless told."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dprepro.judge.ranking import Ranking
from dprepro.report.draw.style import POINTS_PER_INCH, fitted, text_width
from dprepro.report.sheet import COLUMN, Sheet
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import plain

# Sizes are inches for labels of so many points, and grow with these.
_POINTS = 7.0
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


@dataclass(frozen=True)
class _Scale:
    """How wide the figure is, the points of labels, and by how much these are larger than usual."""

    width: float
    points: float
    small: float
    by: float


def _scale_of(sheet: Sheet) -> _Scale:
    points = sheet.font or _POINTS
    by = points / _POINTS
    return _Scale(sheet.width or COLUMN, points, by * _SMALL, by)


def draw_ranks(ranking: Ranking, sheet: Sheet | None = None) -> Figure:
    """Draw the critical-difference diagram: mean ranks on an axis, a bar for each group.

    A bar has a point at each of its methods: no two of them are shown to differ. Without a test
    there are no bars, and the title says so. The best is on the left.

    Raises DpreproError if it does not fit on the sheet.
    """
    sheet = sheet or Sheet()
    scale = _scale_of(sheet)
    by, width = scale.by, scale.width
    row_, bar_, edge_, gap_ = by * _ROW, by * _BAR, by * _EDGE, by * _GAP
    names = ranking.methods
    left = names[: (len(names) + 1) // 2]
    right = names[: len(left) - 1 : -1]  # the worst above
    bars = [group for group in ranking.groups or () if len(group) > 1]
    below = gap_ + bar_ * (len(bars) + 1)
    labels = {name: f"{plain(name)} {ranking.mean_ranks[name]:.2f}" for name in names}
    # Both sides leave room for the axis.
    longest = min(by * _LONGEST_LABEL, 0.35 * width)
    shown = {name: fitted(label, scale.points, longest) for name, label in labels.items()}
    sides = [max(_width(*shown[name]) for name in side) + edge_ + gap_ for side in (left, right)]
    lines = [plain(ranking.title), _of_bars(ranking)]
    line = scale.small / POINTS_PER_INCH
    top = by * _TITLE + line * 1.4 * (len(lines) - 1) + by * _AXIS
    height = top + below + row_ * len(left) + edge_
    figure, axes = _canvas(scale, height, sheet)
    for place, text_of in enumerate(lines):
        points = scale.points if place == 0 else scale.small
        text, size = fitted(text_of, points, width - 2 * edge_)
        axes.text(width / 2, edge_ + place * line * 1.5, text, size=size, ha="center", va="top")
    wide = width - sum(sides)

    def across(rank: float) -> float:
        return sides[0] + wide * (rank - 1) / (len(names) - 1)

    axes.plot([across(1), across(len(names))], [top, top], color="black", linewidth=0.8 * by)
    step = math.ceil((len(names) - 1) * by * 0.14 / wide) or 1
    for rank in range(1, len(names) + 1):
        tick = [top, top - by * 0.04]
        axes.plot([across(rank)] * 2, tick, color="black", linewidth=0.8 * by)
        if (rank - 1) % step == 0:
            up = top - by * 0.06
            axes.text(across(rank), up, str(rank), size=scale.small, ha="center", va="bottom")
    for is_left, side in ((True, left), (False, right)):
        for row, name in enumerate(side):
            x, y = across(ranking.mean_ranks[name]), top + below + row_ * (row + 0.5)
            end = sides[0] - gap_ / 2 if is_left else width - sides[1] + gap_ / 2
            axes.plot([x, x, end], [top, y, y], color="0.35", linewidth=0.6 * by)
            text, size = shown[name]
            edge = sides[0] - gap_ if is_left else width - sides[1] + gap_
            axes.text(edge, y, text, size=size, ha="right" if is_left else "left", va="center")
    for number, group in enumerate(bars):
        y = top + gap_ + bar_ * (number + 0.5)
        places = [across(ranking.mean_ranks[name]) for name in group]
        axes.plot([min(places), max(places)], [y, y], color="black", linewidth=2.2 * by)
        axes.plot(places, [y] * len(places), "o", color="black", markersize=3.2 * by)
    return figure


def _of_bars(ranking: Ranking) -> str:
    if not ranking.is_tested:
        return "mean ranks; too few datasets to test pairs, so no bars"
    if ranking.groups is None:
        return "mean ranks; more groups than can be drawn"
    if len(ranking.scores) == 1:
        return "ranks of splits, not of datasets; bars: not shown to differ"
    return "mean ranks; bars: not shown to differ (signed-rank tests, Holm)"


def draw_wins(ranking: Ranking, sheet: Sheet | None = None) -> Figure:
    """Draw on which share of datasets, or splits, the row's method is better than the column's.

    Raises DpreproError if it does not fit on the sheet.
    """
    sheet = sheet or Sheet()
    scale = _scale_of(sheet)
    by, width = scale.by, scale.width
    edge, gap = by * _EDGE, by * _GAP
    names = ranking.methods
    longest = min(by * _LONGEST_LABEL, 0.4 * width)
    shown = [
        fitted(f"{plain(name)}  {k}", scale.points, longest) for k, name in enumerate(names, 1)
    ]
    left = max(_width(*label) for label in shown) + edge + gap
    side = (width - left - edge) / len(names)
    line = scale.small / POINTS_PER_INCH
    top = by * _TITLE + line * 3
    high = min(side, by * 0.3)
    if sheet.height:  # rows may be as low as their labels
        high = max(min(high, (sheet.height - top - edge) / len(names)), by * _ROW)
    figure, axes = _canvas(scale, top + high * len(names) + edge, sheet)
    what = "splits" if len(ranking.scores) == 1 else "datasets"
    heading, size = fitted(plain(ranking.title), scale.points, width - 2 * edge)
    axes.text(width / 2, edge, heading, size=size, ha="center", va="top")
    share = f"% of {what} on which the row is better"
    said, size = fitted(share, scale.small, width - 2 * edge)
    axes.text(width / 2, edge + line * 1.5, said, size=size, ha="center", va="top")
    for place, (text, size) in enumerate(shown):
        y = top + high * (place + 0.5)
        axes.text(left - gap, y, text, size=size, ha="right", va="center")
        x = left + side * (place + 0.5)
        if text_width(str(len(names)), scale.small) < side:
            number = str(place + 1)
            axes.text(x, top - by * 0.02, number, size=scale.small, ha="center", va="bottom")
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
    if len(names) <= _MOST_NUMBERS and text_width("100", scale.small) < side:
        for row, column in itertools.permutations(range(len(names)), 2):
            rate = grid[row][column]
            x, y = left + side * (column + 0.5), top + high * (row + 0.5)
            ink = "white" if rate > _DARK else "black"
            said = f"{100 * rate:.0f}"
            axes.text(x, y, said, size=scale.small, color=ink, ha="center", va="center")
    return figure


def _width(text: str, size: float) -> float:
    return _HINTED * text_width(text, size)


def _canvas(scale: _Scale, needed: float, sheet: Sheet) -> tuple[Figure, Axes]:
    """Return a figure whose coordinates are inches from the left, and down.

    Raises DpreproError if what is drawn needs more inches up than the sheet has.
    """
    height = sheet.height or needed
    if needed > height + 1e-9:
        raise DpreproError(
            f"{scale.width:g} x {height:g} inches have no room for these methods with letters of "
            f"{scale.points:g} points; about {scale.width:g}x{math.ceil(10 * needed) / 10:g} would "
            "do. Choose a larger --size, a smaller --font, or fewer methods"
        )
    figure = Figure(figsize=(scale.width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, scale.width)
    free = (height - needed) / 2
    axes.set_ylim(height - free, -free)
    axes.set_axis_off()
    return figure, axes
