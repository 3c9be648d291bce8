"""The pass over the rows in odds: logistic boosting with at most 3 leaves.

A row keeps w = exp(F) or exp(-F), its odds against its own label. An update is then one
multiplication and the residual is +-1 / (1 + w): no sigmoid and no label, one loop that streams 10
bytes a row. Sums are exact: see `exact_sums`.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.additive.exact_sums import BLOCK_ROWS, LARGEST
from dprepro.compiled import kernel

ODDS_LIMIT = 40.0
"""Largest |F| kept as odds: a step then multiplies by at most exp(80), within float32."""

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_SCALE = np.float32(LARGEST)
_NONE = np.int32(0)


@kernel()
def start_odds(targets, scores, odds):  # type: ignore[no-untyped-def]
    """Fill in each row's odds against its own label; return the rows of label 0 and max |score|.

    -1 rows if the labels do not ascend: each label's rows have to lie together.
    """
    n_negative, ascending, reach = 0, True, 0.0
    for i in range(odds.size):
        against = scores[i]
        if targets[i] == _ZERO:
            ascending = ascending and n_negative == i
            n_negative += 1
            against = -against
        odds[i] = math.exp(against)
        reach = max(reach, abs(scores[i]))
    return (n_negative if ascending else -1), reach


@kernel()
def scores_from(odds, n_negative, scores):  # type: ignore[no-untyped-def]
    """Write the score F of each row back from its odds."""
    for i in range(odds.size):
        scores[i] = math.log(odds[i]) if i >= n_negative else -math.log(odds[i])


@kernel(error_model="numpy")
def _odds_block(odds, previous, last, factors, current, cuts):  # type: ignore[no-untyped-def]
    """Multiply by the factor of each row's leaf; sum residuals: all, and above either cut.

    A residual is 1 / (1 + odds) in units of 1 / `LARGEST`, truncated: at most `LARGEST`.
    """
    last_a, last_b, cut_a, cut_b = last[0], last[1], cuts[0], cuts[1]
    factor_0, factor_1, factor_2 = factors[0], factors[1], factors[2]
    total, sum_a, sum_b = _NONE, _NONE, _NONE
    for i in range(odds.shape[0]):
        factor = factor_1 if previous[i] > last_a else factor_0
        factor = factor_2 if previous[i] > last_b else factor
        updated = odds[i] * factor
        odds[i] = updated
        residual = np.int32(_SCALE / (_ONE + updated))
        # numba adds int32 as int64: without the casts half as many fit into a register.
        total = np.int32(total + residual)
        sum_a = np.int32(sum_a + (residual if current[i] > cut_a else _NONE))
        sum_b = np.int32(sum_b + (residual if current[i] > cut_b else _NONE))
    return total, sum_a, sum_b


@kernel(
    "(float32[::1], int64, uint8[::1], uint8[::1], float32[:, ::1], uint8[::1], uint8[::1], "
    "float64[::1])",
    error_model="numpy",
)
def odds_pass(odds, n_negative, previous, last, factors, current, cuts, sums):  # type: ignore[no-untyped-def]
    """Apply the last update and sum residuals per cut; `factors` (2, 3) by label and leaf.

    `last` and `cuts` are one less than the cuts: "above" compiles to one masked addition where
    "from ... on" takes two instructions. `sums`, float64 (3,), are whole numbers in units of
    1 / `LARGEST`: of all rows, and of those above either cut.
    """
    sums[:] = 0.0
    for label in range(2):
        sign = 2.0 * label - 1.0
        first, end = (n_negative, odds.shape[0]) if label else (0, n_negative)
        for start in range(first, end, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, end)
            total, sum_a, sum_b = _odds_block(
                odds[start:stop], previous[start:stop], last, factors[label],
                current[start:stop], cuts,
            )  # fmt: skip
            sums[0] += sign * total
            sums[1] += sign * sum_a
            sums[2] += sign * sum_b
