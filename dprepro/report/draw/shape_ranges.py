"""Which shape functions to draw, and in numbers that axes can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from dprepro.additive.shapes import Shape

# Beyond these matplotlib's own arithmetic overflows or takes a range for a point.
_SMALLEST, _LARGEST = 1e-100, 1e100
# What is narrower beside its distance from zero, doubles cannot tell apart on an axis.
_NARROWEST = 1e-12
# A band this many times the function's size leaves any panel as well as a wider one.
_WIDEST_NOISE = 1e6
_TICKS = 4

MaybeShape = TypeVar("MaybeShape", "Shape", "Shape | None")


def variation(shape: Shape) -> float:
    """Return the standard deviation of a function over the rows, by the counts of its bins."""
    size = float(np.abs(shape.values).max()) or 1.0
    largest = float(shape.counts.max())
    weights = shape.counts / largest if largest > 0 else np.ones(shape.counts.size)
    values = shape.values / size
    mean = np.average(values, weights=weights)
    return size * math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))


def in_range(shapes: Sequence[MaybeShape]) -> tuple[list[MaybeShape], float]:
    """Return functions in units that axes can show, and the unit: 1 but for extreme values."""
    values = [np.append(s.values, s.released) for s in shapes if s is not None]
    size = max((float(np.abs(found).max()) for found in values), default=0.0)
    unit = 1.0
    if size > 0 and not _SMALLEST <= size <= _LARGEST:
        unit = 10.0 ** max(math.floor(math.log10(size)), -300)
    return [None if s is None else _in_unit(s, unit, size / unit) for s in shapes], unit


def _in_unit(shape: Shape, unit: float, size: float) -> Shape:
    noise, counts = shape.noise, shape.counts
    if noise is not None:
        with np.errstate(over="ignore"):
            noise = np.minimum(noise / unit, _WIDEST_NOISE * size or _LARGEST)
    largest = float(counts.max())
    return replace(
        shape,
        values=shape.values / unit,
        released=shape.released / unit,
        noise=noise,
        # Only their ratios are drawn; the sum of extreme ones overflows.
        counts=counts / largest if largest > _LARGEST else counts,
    )


def has_room(edges: np.ndarray) -> bool:
    """Whether an axis can show a range with these borders of bins."""
    with np.errstate(over="ignore"):
        span = float(edges[-1] - edges[0])
    return _SMALLEST <= span <= _LARGEST and span > _NARROWEST * float(np.abs(edges).max())


def equally_wide(shape: Shape, edges: np.ndarray) -> tuple[Shape, list[int], list[str]]:
    """Return a function with all bins one wide, some borders, and what these really are."""
    places = sorted({round(place) for place in np.linspace(0, edges.size - 1, _TICKS)})
    names = [f"{edges[place]:.4g}" for place in places]
    if len(set(names)) < len(names):  # digits enough to tell them apart leave room for two
        places = [0, edges.size - 1]
        names = [repr(float(edges[place])) for place in places]
    return replace(shape, edges=np.arange(edges.size, dtype=float)), places, names


def heights(shape: Shape, n_bins: int) -> np.ndarray:
    """Return the densities of the first bins as shares of the largest of them."""
    with np.errstate(over="ignore"):  # a bin can be narrower than its share allows
        found = np.minimum(shape.densities[:n_bins], _LARGEST)
    shares: np.ndarray = found / (found.max() or 1.0)
    return shares
