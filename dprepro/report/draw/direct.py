"""Names written beside the ends of curves, in place of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.text import Text

from dprepro.report.draw.style import Look
from dprepro.text import plain, shortened

FONT_SIZE = 7.5
_POINTS_PER_INCH = 72
_LINE = 1.25
_LONGEST = 34
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
    return names * FONT_SIZE * _LINE / _POINTS_PER_INCH


def name_ends(axes: Axes, ends: Sequence[End], height: float) -> None:
    """Write each name to the right of the axes, with a thin line from the end of its curve.

    Names keep the order of the ends from top to bottom and do not overlap. The limits of the axes
    must be set.

    Parameters
    ----------
    height
        Of the axes, in inches; it must be at least `room_for` the names.
    """
    to_share = axes.transAxes.inverted()
    shares = [float(to_share.transform(axes.transData.transform((0, e.up)))[1]) for e in ends]
    places = spread([min(max(share, 0.0), 1.0) for share in shares], room_for(1) / height)
    for end, share, place in zip(ends, shares, places, strict=True):
        leader = {
            "arrowstyle": "-",
            "color": end.look.colour,
            "linewidth": 0.6,
            "shrinkA": 1,
            "shrinkB": 3,
            "relpos": (0.0, 0.5),
        }
        inside = -_ROUNDING <= share <= 1.0 + _ROUNDING
        name = axes.annotate(
            plain(shortened(end.name, _LONGEST)), (end.across, end.up), (1.08, place),
            textcoords=axes.transAxes, fontsize=FONT_SIZE, color=_dark(end.look.colour),
            va="center", ha="left", arrowprops=leader if inside else None,
            annotation_clip=False,
        )  # fmt: skip
        if name.arrow_patch is not None:
            # The line lies between the axes and the name: layout need not cut it to measure it.
            extent = partial(Text.get_window_extent, name)
            name.arrow_patch.get_window_extent = extent  # type: ignore[method-assign]


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
