"""What share of positive labels to expect in a bin, given the function's value there."""

from __future__ import annotations

import math

import numpy as np

from dprepro.runtime.kernels import kernel

_REACH, _STEP = 24.0, 0.2
_GRID = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
"""Log odds f at which `expected_rates` tabulates g and g'."""

LINEAR = np.empty((2, 0))
"""The table of g(f) = f, g'(f) = 1: regression needs none."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
"""Gauss-Hermite quadrature: E h(Z) is about sum_j `_WEIGHTS`_j h(`_NODES`_j) for Z ~ N(0, 1)."""

_TOLERANCE, _BISECTIONS = 1.5, 30
"""How many times the released odds those of the rarer label may be; halvings of a deviation."""


@kernel("(float64, float64)", error_model="numpy")
def _tabulate(intercept, deviation):  # type: ignore[no-untyped-def]
    table = np.zeros((2, _GRID.size))
    for i in range(_GRID.size):
        for j in range(_NODES.size):
            p = 1 / (1 + math.exp(-(intercept + _GRID[i] + deviation * _NODES[j])))
            table[0, i] += _WEIGHTS[j] * p
            table[1, i] += _WEIGHTS[j] * p * (1 - p)
    return table


@kernel("(float64, float64)", error_model="numpy")
def expected_rate(intercept, deviation):  # type: ignore[no-untyped-def]
    """Return E sigmoid(intercept + Z), Z ~ N(0, deviation^2)."""
    rate = 0.0
    for j in range(_NODES.size):
        rate += _WEIGHTS[j] / (1 + math.exp(-(intercept + deviation * _NODES[j])))
    return rate


@kernel("(float64, float64, float64)", error_model="numpy")
def believable(intercept, deviation, start):  # type: ignore[no-untyped-def]
    """Return the standard deviation that scores may have around the intercept.

    The wider normal scores lie, the closer to one half is the share of positive labels that they
    lead to, E sigmoid(intercept + Z), Z ~ N(0, deviation^2). If its odds exceed those that there
    are, exp(`start`), more than `_TOLERANCE` times, scores are not as wide as functions of
    independent features would make them, or not normal: the deviation is as small then as it must
    be, and 0 if the intercept alone has larger odds than that. Above an intercept of 0 the same
    holds for negative labels.
    """
    side = 1.0 if intercept > 0 else -1.0
    rate = 1 / (1 + math.exp(side * math.log(_TOLERANCE) - start))
    least, most = 0.0, deviation
    if side * (expected_rate(intercept, most) - rate) >= 0:
        return most
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        if side * (expected_rate(intercept, middle) - rate) >= 0:
            least = middle
        else:
            most = middle
    return least


def expected_rates(intercept: float, deviation: float) -> np.ndarray:
    """Tabulate g(f) = E sigmoid(intercept + f + Z), Z ~ N(0, deviation^2), and g', float64 (2, G).

    g(f) is the share of positive labels in a bin of value f, if the sum of the other functions is
    normal over the bin's rows, with the variance that it has over all rows: so it is about where
    features are independent.
    """
    return np.asarray(_tabulate(intercept, deviation))


def lookup(table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return g and g' at `values`, float64 (2, B), by interpolation in a table of `_GRID`."""
    found = np.empty((2, values.size))
    evaluate(values, np.zeros(values.size), np.ones(values.size), table, found[0], found[1])
    return found


@kernel(
    "(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1])",
    error_model="numpy",
)
def evaluate(x, centre, counts, table, expected, slope):  # type: ignore[no-untyped-def]
    """Fill in n g(f), `expected`, and n g'(f), `slope`; n is `counts`, and f = `centre` + offset.

    `x` holds the offsets, one in each stride of places.
    """
    last, stride = table.shape[1] - 1, x.size // centre.size
    for b in range(centre.size):
        value = x[b * stride] + centre[b]
        if last < 0:
            expected[b], slope[b] = counts[b] * value, counts[b]
            continue
        place = min(max((value + _REACH) / _STEP, 0.0), last - 1e-9)
        i = int(place)
        rest = place - i
        expected[b] = counts[b] * (table[0, i] + rest * (table[0, i + 1] - table[0, i]))
        slope[b] = counts[b] * max(table[1, i] + rest * (table[1, i + 1] - table[1, i]), 1e-12)
