"""The look of all figures: readable in greyscale, safe for colour-blind readers."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

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
# Each hue as it is, darker and lighter: any two of all these are 20 units of CIELAB or more apart.
# Black has no shades, as these would be the grey of lines without a colour.
_HUES = (
    (BLUE, "#003F62", "#6BADD2"), (ORANGE, "#753400", "#E7A26B"), ("#6A3D9A", "#3A2255", "#A98EC4"),
    ("#009E73", "#00573F", "#6BC7AE"), ("#D6457F", "#762646", "#E793B5"), ("#000000",),
    ("#C99A00", "#6F5500", "#E0C46B"), ("#7C9A1A", "#44550E", "#B3C47A"),
)  # fmt: skip
MOST_COLOURED = len(_HUES)
"""So many lines of a picture have a colour."""
_SHADES = 3
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
_GREY, _NAMED_GREY = "0.75", "0.5"

# The place of a method here, or of one that its name begins with, is the hue that it has wherever
# that is free: those that are printed side by side have different ones.
_FAMILIES = (
    "dp-ebm-plus", "dp-ebm-gdp", "dp-ebm-classic", "dpboost", "dp-logistic", "dp-llm", "s-bdt",
    "ada-ssp",
    "lazybb-1r", "lazybb-topdown", "dp-ebm-joint", "dp-random-forest", "dp-linear",
    "dp-random-boosting", "dp-ebm-sound", "dp-gd-logistic",
    "ebm", "one-rule", "llm", "lightgbm", "logistic", "cnn", "mlp", "linear",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How one line is drawn. A grey line without a marker is one of many that have no name."""

    colour: str
    dash: Any
    marker: str
    is_grey: bool = False


def looks(labels: Sequence[str], families: Sequence[str] | None = None) -> dict[str, Look]:
    """Return a look for each label: at most `MOST_COLOURED` of them, and no two of one colour.

    Labels of one family, a method and its variants, have shades of one hue and differ in dash. Each
    label has a marker of its own. The hue is that of the family in all pictures where no other
    family has it. More than three of a family take a further hue, and where there is one family
    alone, each of its members has a hue.
    """
    assert len(labels) <= MOST_COLOURED
    groups = _groups(labels, families or [family_of(label, labels) for label in labels])
    hues = _hues(groups)
    found = {}
    for (_, members), hue in zip(groups, hues, strict=True):
        for shade, (label, variant) in enumerate(members):
            dash = _DASHES[variant % len(_DASHES)]
            found[label] = Look(_HUES[hue][shade], dash, _MARKERS[labels.index(label)])
    return {label: found[label] for label in labels}


def grey_looks(labels: Sequence[str], named: bool) -> dict[str, Look]:
    """Return the looks of lines without a colour; each its own marker and dash if `named`."""
    if not named:
        return {label: Look(_GREY, "-", "", True) for label in labels}
    return {
        label: Look(
            _NAMED_GREY, _DASHES[(k + k // len(_MARKERS)) % len(_DASHES)],
            _MARKERS[k % len(_MARKERS)], True,
        )
        for k, label in enumerate(labels)
    }  # fmt: skip


def family_of(label: str, labels: Iterable[str] = ()) -> str:
    """Return the method of which a label is a variant: ``dp-ebm-gdp`` of ``dp-ebm-gdp-25``.

    It is the shortest known method, or other label, that the label begins with. What follows a
    space are parameters.
    """
    name = label.partition(" ")[0]
    known = {*_FAMILIES, *(other.partition(" ")[0] for other in labels)}
    return min((base for base in known if f"{name}-".startswith(f"{base}-")), key=len, default=name)


_Group: TypeAlias = tuple[str, list[tuple[str, int]]]
"""A family, and those of its labels that share a hue, each with its number in the family."""


def _groups(labels: Sequence[str], families: Sequence[str]) -> list[_Group]:
    members: dict[str, list[str]] = {}
    for label, family in zip(labels, families, strict=True):
        members.setdefault(family, []).append(label)
    size = 1 if len(members) == 1 else _SHADES
    found = []
    for family, own in members.items():
        own = sorted(own, key=lambda label: label != family)  # the method before its variants
        numbered = [(label, number) for number, label in enumerate(own)]
        found += [(family, numbered[k : k + size]) for k in range(0, len(own), size)]
    return found


def _hues(groups: Sequence[_Group]) -> list[int]:
    """Return the place of each group's hue: that of its family, or the next that is free."""
    order = sorted(range(len(groups)), key=lambda k: _place(groups[k][0]))
    hues: dict[int, int] = {}
    # Those with variants first, as black is for a method alone.
    for k in sorted(order, key=lambda k: len(groups[k][1]) == 1):
        family, members = groups[k]
        steps = ((_place(family) + step) % len(_HUES) for step in range(len(_HUES)))
        hues[k] = next(
            hue for hue in steps if hue not in hues.values() and len(_HUES[hue]) >= len(members)
        )
    return [hues[k] for k in range(len(groups))]


def _place(family: str) -> int:
    if family in _FAMILIES:
        return _FAMILIES.index(family)
    return len(_FAMILIES) + zlib.crc32(family.encode("utf-8", "surrogatepass")) % len(_HUES)


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
    return _width(text, FontProperties(size=size))


@lru_cache(maxsize=1 << 12)  # the panels of a page have the same names
def _width(text: str, font: FontProperties) -> float:
    found = text_to_path.get_text_width_height_descent(text, font, False)
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
