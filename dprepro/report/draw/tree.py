"""A decision tree as a picture: questions from the top, labels at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dprepro.report.draw.style import BLUE, ORANGE, text_width
from dprepro.runtime.text import plain, shortened

if TYPE_CHECKING:
    from dprepro.methods.privatree.rules import Leaf, Question

_LETTERS = 8.0
_LONGEST = 40
_GAP = 0.35
"""Inches between leaves."""
_LEVEL = 0.8
"""Inches from one level to the next."""
_TITLE, _LEAST = 0.3, 3.0
"""Inches that a title takes, and that a picture is wide at least."""


def draw_tree(root: Question | Leaf, title: str, positive: str) -> Figure:
    """Return a picture of a tree; leaves with the label `positive` have a colour of their own."""
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    drawn = _Drawing(axes, positive)
    drawn.add(root, 0, 0.0)
    wide, high = max(drawn.right, _LEAST), _LEVEL * (drawn.depth + 1) + _TITLE
    figure.set_size_inches(wide, high)
    axes.set_xlim(0, wide)
    axes.set_ylim(-_LEVEL * (drawn.depth + 0.5), _LEVEL / 2 + _TITLE)
    axes.axis("off")
    axes.text(wide / 2, _LEVEL / 2, plain(title), fontsize=_LETTERS + 1, ha="center", va="bottom")
    return figure


class _Drawing:
    """What is drawn so far, in inches from the left and from the top."""

    def __init__(self, axes: Axes, positive: str) -> None:
        self._axes, self._positive = axes, positive
        self.right, self.depth = 0.0, 0

    def add(self, node: Question | Leaf, level: int, start: float) -> tuple[float, float]:
        """Draw a node and all below it, right of `start`; return its middle and its right end."""
        self.depth = max(self.depth, level)
        text = shortened(node.shown, _LONGEST)
        own = text_width(text, _LETTERS) + _GAP
        middle, end, colour = start + own / 2, start + own, "0.3"
        if node.below:
            # What is wider than all below it has them in its middle.
            shift = max(own - sum(map(_width, node.below)), 0.0) / 2
            places, right = [], start + shift
            for child in node.below:
                place, right = self.add(child, level + 1, right)
                places.append(place)
            middle, end = (start + right + shift) / 2, right + shift
            self._join(middle, places, level)
        else:
            colour = ORANGE if node.shown == self._positive else BLUE
        self.right = max(self.right, end)
        self._axes.text(
            middle, -_LEVEL * level, plain(text), fontsize=_LETTERS, ha="center", va="center",
            bbox={"facecolor": "white", "edgecolor": colour, "boxstyle": "round,pad=0.3"}, zorder=3,
        )  # fmt: skip
        return middle, end

    def _join(self, middle: float, below: Sequence[float], level: int) -> None:
        """Draw lines from a question to what is below it."""
        for side, word in zip(below, ("yes", "no"), strict=True):
            ends = [-_LEVEL * level, -_LEVEL * (level + 1)]
            self._axes.plot([middle, side], ends, color="0.6", linewidth=0.8, zorder=1)
            self._axes.text(
                (middle + side) / 2, sum(ends) / 2, word, fontsize=_LETTERS - 1, color="0.35",
                ha="center", va="center", zorder=2,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            )  # fmt: skip


def _width(node: Question | Leaf) -> float:
    """Return the inches that a node takes with all below it."""
    own = text_width(shortened(node.shown, _LONGEST), _LETTERS) + _GAP
    return max(own, sum(map(_width, node.below)))
