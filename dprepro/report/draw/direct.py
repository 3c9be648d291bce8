"""Names written beside the ends of curves, in place of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from dprepro.report.draw.style import POINTS_PER_INCH, Look, fitted, text_width
from dprepro.text import plain, shortened

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
    must be set.

    Parameters
    ----------
    height
        Of the axes, in inches; it must be at least `room_for` the names.
    """
    to_share = axes.transData + axes.transAxes.inverted()
    shares = [to_share.transform((end.across, end.up)) for end in ends]
    wanted = [min(max(float(up), 0.0), 1.0) for _, up in shares]
    places = spread(wanted, room_for(1) / height)
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


def spread(wanted: Sequence[float], gap: float) -> list[float]:
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
