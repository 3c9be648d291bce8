"""The legend of a figure, below its panels: entries flow like words, and none is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dprepro.report.draw.style import POINTS_PER_INCH, Look, fitted, text_width
from dprepro.runtime.text import plain

EDGE = 0.04
"""Inches that stay free around a figure."""
# In letters: the sample of a line, and what stands between entries and rows.
_SAMPLE, _SPACE, _LINE = 2.4, 1.0, 1.3
_BETWEEN = 0.4
# Letters become smaller by these factors until entries fill no more than this share of the height.
_SCALES = (1.0, 0.9, 0.8)
_SHARE = 0.36


@dataclass(frozen=True)
class Key:
    """An entry: how its sample is drawn (a look, or keywords of `Line2D`), and what it says."""

    text: str
    look: Look | None = None
    ring: bool = False
    bar: float = 0.0
    """Points of an upright bar; a pale one where there is a ring."""


@dataclass(frozen=True)
class Legend:
    """Entries in rows, each with the inches at which it begins, and the points of their letters."""

    rows: tuple[tuple[tuple[float, Key, str, float], ...], ...]
    points: float

    @property
    def height(self) -> float:
        """The inches that it takes."""
        return len(self.rows) * _LINE * self.points / POINTS_PER_INCH


def set_out(keys: Sequence[Key], width: float, points: float, height: float | None) -> Legend:
    """Return a legend as wide as a figure, and smaller where the figure's height is given."""
    for scale in _SCALES if height else _SCALES[:1]:
        legend = _flowing(keys, width, scale * points)
        if height and legend.height <= _SHARE * height:
            break
    return legend


def _flowing(keys: Sequence[Key], width: float, points: float) -> Legend:
    em = points / POINTS_PER_INCH
    before, after = (_SAMPLE + _BETWEEN) * em, _SPACE * em
    room = width - 2 * EDGE
    rows: list[list[tuple[float, Key, str, float]]] = []
    across = room + 1.0
    for key in keys:
        text, size = fitted(plain(key.text), points, room - before)
        wide = before + text_width(text, size)
        if not rows or across + wide > room:
            rows.append([])
            across = 0.0
        rows[-1].append((EDGE + across, key, text, size))
        across += wide + after
    return Legend(tuple(map(tuple, rows)), points)


def draw_legend(figure: Figure, legend: Legend, top: float) -> None:
    """Draw a legend whose upper edge is so many inches above the lower edge of the figure."""
    em = legend.points / POINTS_PER_INCH
    inches = figure.dpi_scale_trans
    for number, row in enumerate(legend.rows):
        up = top - (number + 0.5) * _LINE * em
        for left, key, text, size in row:
            middle = left + _SAMPLE * em / 2
            for across, style in _sample(key, left, middle, legend.points):
                ends = [up - 0.45 * em, up + 0.45 * em] if "solid_capstyle" in style else [up] * 2
                figure.add_artist(Line2D(across, ends, transform=inches, **style))
            figure.text(
                left + (_SAMPLE + _BETWEEN) * em, up, text, transform=inches, fontsize=size,
                ha="left", va="center_baseline",
            )  # fmt: skip


def _sample(
    key: Key, left: float, middle: float, points: float
) -> list[tuple[list[float], dict[str, Any]]]:
    """Return the lines of a sample: where each begins and ends across, and its keywords."""
    right = 2 * middle - left
    if key.look is not None:
        style = line_style(key.look, points)
        marker = {**style, "linestyle": "none"}
        return [([left, right], {**style, "marker": ""}), ([middle, middle], marker)]
    upright: dict[str, Any] = {"color": "0.3", "linewidth": key.bar, "solid_capstyle": "butt"}
    if not key.ring:
        dot = {"color": "0.3", "linestyle": "none", "marker": "o", "markersize": 0.45 * points}
        return [([middle, middle], upright), ([middle, middle], dot)]
    ring = {"linestyle": "none", **ring_style("0.3", points)}
    return [([middle, middle], {**upright, "alpha": PALE}), ([middle, middle], ring)]


PALE = 0.2
"""The opacity of bars of published standard deviations."""


def line_style(look: Look, points: float) -> dict[str, Any]:
    """Return how a line and its markers are drawn where labels have so many points."""
    return {
        "color": look.colour, "linestyle": look.dash, "marker": look.marker, "markeredgewidth": 0,
        "linewidth": 0.08 * points if look.is_grey else 0.14 * points,
        "markersize": 0.4 * points if look.is_grey else 0.5 * points,
    }  # fmt: skip


def ring_style(colour: str, points: float) -> dict[str, Any]:
    """Return how a published value is drawn where labels have so many points."""
    return {
        "color": colour, "marker": "o", "markerfacecolor": "none", "markeredgecolor": colour,
        "markeredgewidth": 0.1 * points, "markersize": 0.75 * points,
    }  # fmt: skip
