"""Attacks on low bits: doubles that noise in floating point cannot make (Mironov 2012).

NumPy's noise is a double times the scale, rounded. The products are sparse among the doubles. So a
released value tells whether it can be a given exact value plus such noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

STEPS = 3
"""How many doubles on either side of a quotient are tried; rounding moves it by one or two."""

_DRAWS = 16
"""The same for the whole numbers m of NumPy's uniform draws m 2^-53."""


def around(value: float, steps: int = STEPS) -> Iterator[float]:
    """Yield a double and its neighbours."""
    yield value
    for end in (-math.inf, math.inf):
        near = value
        for _ in range(steps):
            near = math.nextafter(near, end)
            yield near


def can_be_normal(value: float, exact: float, scale: float) -> bool:
    """Say whether a value can be `exact` plus normal noise: fl(exact + fl(scale z)) for a z."""
    return any(
        exact + scale * z == value for noise in around(value - exact) for z in around(noise / scale)
    )


def can_be_laplace(value: float, exact: float, scale: float, factor: float = 1.0) -> bool:
    """Say whether a value can be `factor` times `exact` plus NumPy's Laplace noise."""
    noise = value / factor - exact
    tail = math.exp(-abs(noise) / scale) / 2
    middle = round((tail if noise < 0 else 1 - tail) * 2**53)
    draws = range(max(1, middle - _DRAWS), min(2**53, middle + _DRAWS + 1))
    return any(factor * (exact + _laplace(scale, m * 2.0**-53)) == value for m in draws)


def _laplace(scale: float, uniform: float) -> float:
    """Return what NumPy makes of a uniform draw above 0."""
    if uniform >= 0.5:
        return 0.0 - scale * math.log(2.0 - uniform - uniform)
    return 0.0 + scale * math.log(uniform + uniform)
