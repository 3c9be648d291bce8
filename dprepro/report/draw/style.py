"""The look of all figures: readable in greyscale, safe for colour-blind readers."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from dprepro.results.margins import Metric
from dprepro.runtime.text import shortened

PHONE_WIDTH = 4.6
"""Inches of a figure that fits a phone, where text of 7.5 points can still be read."""
POINTS_PER_INCH = 72
# Letters that are fitted to pixels are so much wider at most.
_HINTED = 1.06
# A text that has too little room becomes smaller by this factor at most.
_SMALLEST = 0.7
BLUE, ORANGE = "#0072B2", "#D55E00"
# Okabe and Ito's palette without yellow, which vanishes on white. Marker and line style tell the
# methods apart without any colour.
_COLOURS = (BLUE, ORANGE, "#000000", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (9, 3)))
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "p")

# The place of a method decides its look in every picture. New ones come last. Methods that stand
# side by side in a printed table are near each other here, so that their colours differ.
_METHODS = (
    "dp-ebm-plus", "dp-ebm-gdp", "dp-ebm-classic", "dpboost", "dp-logistic", "dp-llm", "s-bdt",
    "ada-ssp", "dp-linear", "dp-ebm-joint", "dpboost-sound", "dp-logistic-fair", "dp-ebm-sound",
    "dp-gd-logistic", "dp-random-boosting", "dp-ebm-gdp-2021", "dp-ebm-classic-2021",
    "dpboost-2021", "dp-linear-fair", "dp-ebm-gdp-indicators", "dp-ebm-classic-indicators",
    "dpboost-2021-indicators", "s-bdt-sound", "dp-random-forest", "dp-bag", "dp-bag-sound",
    "dp-one-rule", "lazybb-1r", "lazybb-topdown", "lazybb-1r-approx", "lazybb-topdown-approx",
    "lazybb-topdown-2022-code", "toy-dp-ebm", "ebm", "lightgbm", "logistic", "linear", "llm",
    "cnn", "mlp", "xgboost", "random-forest", "gradient-boosting", "boosted-1r",
    "boosted-topdown", "one-rule", "aplr", "logistic-fair", "linear-fair",
    "logistic-standardized", "dp-cnn",
)  # fmt: skip
_LOOKS = len(_COLOURS) * len(_MARKERS)


@dataclass(frozen=True)
class Look:
    """How one method is drawn."""

    colour: str
    dash: Any
    marker: str


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return a look for each distinct label: that of its method, the same in all pictures.

    A label that is no built-in method has a look that follows from its name. If another label of
    the same call has it already, the label gets the next look that is free.
    """
    distinct = list(dict.fromkeys(labels))
    places = {label: _METHODS.index(label) for label in distinct if label in _METHODS}
    for label in distinct:
        if label not in places:
            places[label] = _free_place(label, set(places.values()))
    return {label: _look(places[label]) for label in distinct}


def with_dashes(labels: Sequence[str]) -> list[Look]:
    """Return a look for each place: a label that stands there again has another line style."""
    chosen, seen = looks(labels), Counter[str]()
    found = []
    for label in labels:
        look = chosen[label]
        step = _DASHES.index(look.dash) + seen[label]
        found.append(replace(look, dash=_DASHES[step % len(_DASHES)]))
        seen[label] += 1
    return found


def _free_place(label: str, taken: set[int]) -> int:
    first = zlib.crc32(label.encode("utf-8", "surrogatepass")) % _LOOKS
    places = ((first + step) % _LOOKS for step in range(_LOOKS))
    return next((place for place in places if place not in taken), first)


def _look(place: int) -> Look:
    # Seven colours and nine markers have no common divisor: 63 places give 63 pairs.
    return Look(
        _COLOURS[place % len(_COLOURS)],
        _DASHES[place % len(_DASHES)],
        _MARKERS[place % len(_MARKERS)],
    )


def framed(figure: Figure, left: float, below: float, right: float, above: float) -> Axes:
    """Return axes that fill a figure but for margins in inches: given ones need no layout."""
    wide, high = figure.get_size_inches()
    margins = {
        "left": left / wide, "bottom": below / high, "right": 1 - right / wide,
        "top": 1 - above / high,
    }  # fmt: skip
    return figure.subplots(gridspec_kw=margins)


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


def text_width(text: str, size: float) -> float:
    """Return the inches that a line of text takes at a size in points."""
    found = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)
    return float(found[0]) / POINTS_PER_INCH


def fitted(text: str, size: float, room: float) -> tuple[str, float]:
    """Return a line of text and its size in points: smaller, then shortened, for so many inches."""
    room /= _HINTED
    wide = text_width(text, size)
    if wide <= room:
        return text, size
    size *= max(room / wide, _SMALLEST)
    length = len(text)
    while text_width(text, size) > room and length > 1:
        length -= 1
        text = shortened(text, length)
    return text, size
