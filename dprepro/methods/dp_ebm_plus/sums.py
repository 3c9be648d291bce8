"""Sums over all rows of residual times code, exact: of a residual, or of one for each class.

Of several classes a row has a score for each of S. Its probabilities are their softmax, and its
residual is 1 for its class and else 0, less these: see `queries.ClassResiduals`. All are whole
numbers of `kernel.UNIT`, so sums are exact in any order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dprepro.additive.bins import Pair
from dprepro.methods.dp_ebm_plus.kernel import (
    TO_OCTAVES,
    UNIT,
    add_by_code,
    limited_residuals,
    move_and_weigh,
    moved,
    power_of_two,
)
from dprepro.methods.dp_ebm_plus.queries import (
    CENTRE_UNIT,
    ClassResiduals,
    Code,
    Coded,
    CodedResiduals,
)
from dprepro.methods.dp_ebm_plus.weighing import weigh, weigh_vectors
from dprepro.privacy.query import ScaledInteger, SensitivityError
from dprepro.runtime.kernels import kernel

_ONE = 1 / UNIT
_TWO = 2 / UNIT

_TO_OCTAVES = UNIT * TO_OCTAVES
"""Differences of scores in `UNIT`, times this, are exponents of 2."""

_SHORTER = 1.0 - 2.0**-40
"""What rounding in float64 could make a shortened residual too long by is far less than this."""

_BLOCK_OF_VECTORS = 2**13
"""Rows that are moved, weighed and summed while they lie in a processor's cache."""

# See `kernel`: a row's part must not depend on where the row stands in a loop.
_exact: Any = {"error_model": "numpy"}

NORM_BITS = 20
"""Squared norms count in 2^-20, rounded up."""

_NO_CHANGE = np.zeros(256, np.int32)

_BLOCK = 2**15
"""Rows that are moved, weighed and summed while they lie in a processor's cache."""


def coded_sums(
    scores: np.ndarray,
    targets: np.ndarray,
    codes_of: Callable[[int | Pair], np.ndarray],
    query: CodedResiduals,
    changes: dict[int | Pair, np.ndarray],
    kind: int,
    weights: np.ndarray | None = None,
) -> ScaledInteger:
    """Let the scores follow `changes`, and return what the rows add to the answer of `query`.

    A row in bin b adds its residual r, in `UNIT`, to S_b. The numbers of a feature follow from
    these sums (`Code.numbers`), times w_c: exact for up to 2^27 rows.

    Parameters
    ----------
    scores, targets : int32 (n,)
        In `UNIT`. Scores are written to.
    codes_of
        Returns the bins of a feature, uint8 (n,).
    query
        What is asked.
    changes : dict of int32 (B,)
        What to add to the scores of the rows in each bin, by feature.
    kind
        Of residuals: see `kernel.limited_residuals`.
    weights : int32 (n,) or None
        See `weighing`.

    Raises
    ------
    SensitivityError
        If norms are too large to be counted.
    """
    squares = whole_squares(query)
    sums = {code.feature: np.zeros(code.n_bins, np.int64) for code in query.codes}
    features = list(changes | squares)
    columns = {feature: codes_of(feature) for feature in features}
    bound = query.bound / UNIT * 2.0 ** (NORM_BITS / 2)
    for start in range(0, scores.size, _BLOCK):
        part = slice(start, min(start + _BLOCK, scores.size))
        norms = np.zeros(part.stop - start, np.int32)
        residuals = np.empty_like(norms)
        for k in features:
            step = changes.get(k, _NO_CHANGE)
            move_and_weigh(scores[part], norms, columns[k][part], step, squares.get(k, _NO_CHANGE))
        limited_residuals(scores[part], targets[part], norms, bound, kind, residuals)
        if weights is not None:
            weigh(residuals, weights[part])
        for k, total in sums.items():
            add_by_code(residuals, columns[k][part], total)
    numbers = [code.numbers(sums[code.feature]) for code in query.codes]
    precision = np.concatenate([code.weights for code in query.codes])
    return ScaledInteger(np.concatenate(numbers), precision * UNIT * CENTRE_UNIT)


def whole_squares(query: Coded) -> dict[int | Pair, np.ndarray]:
    """Return `Code.squared_norms` of each feature, int32 (B,), in 2^-`NORM_BITS`.

    They are rounded up and positive. Raises SensitivityError if those of a row may be too large to
    be added up.
    """
    squares = {code.feature: _whole_squares(code) for code in query.codes}
    if sum(int(each.max()) for each in squares.values()) >= 2**31:
        raise _too_large()
    return squares


def _whole_squares(code: Code) -> np.ndarray:
    squares = np.ceil(code.squared_norms() * 2.0**NORM_BITS) + 1
    if not (squares < 2.0**31).all():  # nor if one is not a number
        raise _too_large()
    return squares.astype(np.int32)


def _too_large() -> SensitivityError:
    return SensitivityError(
        "norms of codes are too large: their squares must add up to less than "
        f"{2 ** (31 - NORM_BITS)}"
    )


@kernel("(int32[:, ::1], uint8[::1], int32[:, ::1])")
def move_vectors(scores, codes, change):  # type: ignore[no-untyped-def]
    """Add ``change[codes]``, int32 (B, S) in all, to the scores, int32 (n, S), in place."""
    for i in range(scores.shape[0]):
        for s in range(scores.shape[1]):
            scores[i, s] = moved(scores[i, s], change[codes[i], s])


@kernel("(int32[::1], uint8[::1], int32[::1])")
def add_squares(norms, codes, squares):  # type: ignore[no-untyped-def]
    """Add ``squares[codes]`` to `norms`, int32 (n,)."""
    for i in range(norms.size):
        norms[i] += squares[codes[i]]


@kernel("(int32[:, ::1], int32[::1], int32[::1], float64, int32[:, ::1])", **_exact)
def limited_vectors(scores, targets, norms, bound, out):  # type: ignore[no-untyped-def]
    """Write the residual vectors, no longer than `bound` / sqrt(norm), into `out`, int32 (n, S).

    Probabilities are truncated to whole numbers of `UNIT`, so a residual r is whole, and its
    squared length an exact int64. The limit L is rounded down to a whole number. If |r|^2 > L^2,
    each of its numbers is multiplied by (1 - 2^-40) L / |r| and truncated. The root, the quotient
    and the products round by less than 2^-50, so none exceeds L / |r| times what it was, and
    the length is at most L: to the last bit, whatever the scores are.
    """
    classes = scores.shape[1]
    powers = np.empty(classes, np.float64)
    for i in range(scores.shape[0]):
        largest = scores[i, 0]
        for s in range(1, classes):
            largest = max(largest, scores[i, s])
        total = 0.0
        for s in range(classes):
            behind = np.float64(np.int64(scores[i, s]) - np.int64(largest))
            powers[s] = power_of_two(behind * _TO_OCTAVES)
            total += powers[s]
        square = np.int64(0)
        for s in range(classes):
            residual = -np.int64(powers[s] / total * _ONE)
            if s == targets[i]:
                residual += np.int64(_ONE)
            out[i, s] = residual
            square += residual * residual
        limit = np.int64(min(bound / math.sqrt(np.float64(norms[i])), _TWO))
        if square > limit * limit:
            factor = np.float64(limit) / math.sqrt(np.float64(square)) * _SHORTER
            for s in range(classes):
                out[i, s] = np.int32(np.float64(out[i, s]) * factor)


@kernel("(int32[:, ::1], uint8[::1], int64[:, ::1])")
def add_vectors(numbers, codes, sums):  # type: ignore[no-untyped-def]
    """Add every row of numbers, int32 (n, S), to the sums of its code, int64 (B, S)."""
    for i in range(numbers.shape[0]):
        for s in range(numbers.shape[1]):
            sums[codes[i], s] += numbers[i, s]


def class_sums(
    scores: np.ndarray,
    targets: np.ndarray,
    codes_of: Callable[[int | Pair], np.ndarray],
    query: ClassResiduals,
    changes: dict[int | Pair, np.ndarray],
    classes: int,
    weights: np.ndarray | None = None,
) -> ScaledInteger:
    """Let the scores follow `changes`, and return what the rows add to the answer of `query`.

    As `coded_sums` of one residual: exact for up to 2^27 rows.

    Parameters
    ----------
    scores : int32 (n, S)
        In `UNIT`; written to.
    targets : int32 (n,)
        The numbers of the classes.
    codes_of
        Returns the bins of a feature, uint8 (n,).
    query
        What is asked.
    changes : dict of int32 (B, S)
        What to add to the scores of the rows in each bin, by feature.
    classes
        S.
    weights : int32 (n,) or None
        See `weighing`.

    Returns
    -------
    ScaledInteger
        int64 (numbers of all codes, S).

    Raises
    ------
    SensitivityError
        If norms are too large to be counted.
    """
    squares = whole_squares(query)
    bound = query.bound / UNIT * 2.0 ** (NORM_BITS / 2)
    sums = {code.feature: np.zeros((code.n_bins, classes), np.int64) for code in query.codes}
    columns = {feature: codes_of(feature) for feature in changes | squares}
    for start in range(0, targets.size, _BLOCK_OF_VECTORS):
        part = slice(start, min(start + _BLOCK_OF_VECTORS, targets.size))
        norms = np.zeros(part.stop - start, np.int32)
        for k, change in changes.items():
            move_vectors(scores[part], columns[k][part], change)
        for k, each in squares.items():
            add_squares(norms, columns[k][part], each)
        residuals = np.empty((norms.size, classes), np.int32)
        limited_vectors(scores[part], targets[part], norms, bound, residuals)
        if weights is not None:
            weigh_vectors(residuals, weights[part])
        for k, total in sums.items():
            add_vectors(residuals, columns[k][part], total)
    numbers = [
        np.stack([code.numbers(of_class) for of_class in sums[code.feature].T], axis=1)
        for code in query.codes
    ]
    precision = np.concatenate([code.weights for code in query.codes])[:, None]
    return ScaledInteger(np.concatenate(numbers), precision * UNIT * CENTRE_UNIT)
