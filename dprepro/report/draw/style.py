"""The look of all figures: readable in greyscale, safe for colour-blind readers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from dprepro.report.read.metrics import Metric

BLUE, ORANGE = "#0072B2", "#D55E00"
# Okabe and Ito's palette without yellow, which vanishes on white. Line style and marker tell the
# methods apart without any colour.
_COLOURS = (BLUE, ORANGE, "#000000", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_DASHES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (8, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
)
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")


@dataclass(frozen=True)
class Look:
    """How one method is drawn."""

    colour: str
    dash: Any
    marker: str


def looks(titles: Iterable[str]) -> dict[str, Look]:
    """Return a look for each distinct title, by place."""
    return {
        title: Look(
            _COLOURS[i % len(_COLOURS)], _DASHES[i % len(_DASHES)], _MARKERS[i % len(_MARKERS)]
        )
        for i, title in enumerate(dict.fromkeys(titles))
    }


def open_frame(axes: Axes, grid: bool = False) -> None:
    """Take away the lines above and to the right; `grid` adds thin level lines."""
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(axis="y", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)


def metric_label(metric: Metric) -> str:
    """Return the label of a metric's axis: its title, and which way is better."""
    better = "higher" if metric.higher_is_better else "lower"
    return f"{metric.title} ({better} is better)"
