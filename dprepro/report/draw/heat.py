"""Functions of pairs of features as heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from dprepro.text import plain, shortened

if TYPE_CHECKING:
    from dprepro.additive.shapes import Shape, Side

COLOURS = "PuOr_r"
"""From one colour through white to another: readable for colour-blind readers, and dark at both
ends in greyscale."""

DEVIATIONS = 2
_HATCH = "////"
_LONGEST_LABEL = 18
_MOST_TICKS = 6


def draw_pair(axes: Axes, shape: Shape, largest: float | None = None, measure: str = "") -> None:
    """Draw the function of a pair: a cell for each pair of groups, with a colour bar around 0.

    Cells are hatched whose value as released lies within two standard deviations of its noise.

    Parameters
    ----------
    shape
        Of a pair: `Shape.sides` is not None.
    largest
        What the strongest colours stand for; by default the largest value.
    measure
        What stands beside the colour bar.
    """
    assert shape.sides is not None
    first, second = shape.sides
    grid = shape.values.reshape(len(first.labels), len(second.labels))
    most = largest or float(np.abs(shape.values).max()) or 1.0
    image = axes.imshow(
        grid, cmap=COLOURS, vmin=-most, vmax=most, aspect="auto", origin="lower",
        interpolation="nearest",
    )  # fmt: skip
    for cell in np.flatnonzero(lost_in_noise(shape)):
        row, column = divmod(int(cell), grid.shape[1])
        box = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, linewidth=0)
        box.set(hatch=_HATCH, edgecolor="0.55")
        axes.add_patch(box)
    _name_side(axes.xaxis, second, rotation=90)
    _name_side(axes.yaxis, first)
    axes.tick_params(labelsize=7)
    figure = axes.figure
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    bar.locator = MaxNLocator(5, symmetric=True)
    bar.update_ticks()
    bar.set_label(measure, fontsize=8)


def lost_in_noise(shape: Shape) -> np.ndarray:
    """Return which cells were released within two deviations of their noise around 0, bool (B,)."""
    if shape.noise is None:
        return np.zeros(shape.values.size, dtype=bool)
    return np.asarray(np.abs(shape.released) < DEVIATIONS * shape.noise)


def key_of_noise() -> Patch:
    """Return what the legend says of hatched cells."""
    label = f"hatched: within {DEVIATIONS} sd of the noise around 0"
    return Patch(facecolor="white", edgecolor="0.55", hatch=_HATCH, linewidth=0, label=label)


def _name_side(axis: object, side: Side, rotation: float = 0.0) -> None:
    """Name the feature, and some of its groups."""
    step = -(-len(side.labels) // _MOST_TICKS)
    places = np.arange(0, len(side.labels), step)
    names = [plain(shortened(side.labels[k], _LONGEST_LABEL)) for k in places]
    axis.set_ticks(places, names, rotation=rotation)  # type: ignore[attr-defined]
    axis.set_label_text(plain(shortened(side.name, 44)), fontsize=9)  # type: ignore[attr-defined]
