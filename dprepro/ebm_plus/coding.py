"""Codes of rows: how one query asks about all features, and what a row pays for it.

A row lies in one bin of each feature. Asked about each bin alike, it would pay as much
for every feature, though most of its values tell little: nearly all rows share them. So bins are
counted from their mean (`Code.centre`), and a row in a bin that most rows share has a short vector.
Rare bins are asked more precisely than common ones (`Code.weights`): their rows are few.
Neighbouring bins share the numbers that are asked for (`Code.mix`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dprepro.ebm_plus.decay import LEAST_SHARE, Decay
from dprepro.ebm_plus.kernel import UNIT, add_by_code, limited_residuals, move_and_weigh
from dprepro.ebm_plus.queries import CENTRE_UNIT, Code, CodedResiduals
from dprepro.privacy.query import SensitivityError, Whole

_NORM_BITS = 20
"""Squared norms count in 2^-20, rounded up."""

_LEAST = 2.0**-20
"""Bins with a smaller share of the rows get the weight of this one."""

_STEPS = 4
"""Weights are powers of 2^(1 / `_STEPS`): noise is drawn for all bins of one weight at once."""

_NO_CHANGE = np.zeros(256, np.int32)

_BLOCK = 2**15
"""Rows that are moved, weighed and summed while they lie in a processor's cache."""


def code(
    feature: int, counts: np.ndarray, share: float, rare: float, decay: Decay | None = None
) -> Code:
    """Return the code of a feature.

    Parameters
    ----------
    feature
        Its number.
    counts : float64 (B,)
        About how many rows each bin has, positive.
    share
        The part of a row's squared norm that is for this feature, if its code were one-hot.
    rare
        The squared weight of a bin is proportional to the power -`rare` of its share of the rows:
        `Loss.rare`, or 0 to ask about all bins alike.
    decay
        If neighbouring bins share numbers. A row's squared norm is the same on average.
    """
    shares = counts / counts.sum()
    # A share below _LEAST would make norms too large to be counted.
    squares = np.maximum(shares, _LEAST if decay is None else LEAST_SHARE) ** -rare
    squares *= share / (shares * squares).sum()
    # A code with one bin would be 0 if it were counted from the mean.
    centre = shares / CENTRE_UNIT if counts.size > 1 else np.zeros(1)
    if decay is None:
        return Code(feature, _rounded(squares), np.rint(centre).astype(np.int64))
    # No matrix product: its last digit is not the same on every machine.
    centre = np.rint((decay.mix * shares).sum(axis=1)).astype(np.int64)
    vectors = (decay.mix - centre[:, None]) * CENTRE_UNIT
    alone = (shares * (1 - shares) * squares).sum()
    squares *= decay.fresh**2
    squares *= alone / ((squares[:, None] * vectors**2).sum(axis=0) * shares).sum()
    return Code(feature, _rounded(squares), centre, decay.mix)


def _rounded(squares: np.ndarray) -> np.ndarray:
    """Return weights with these squares, float64 (C,), rounded down: see `_STEPS`."""
    return np.asarray(2.0 ** (np.floor(_STEPS * np.log2(squares) / 2) / _STEPS))


def typical_norm(codes: Sequence[Code], counts: Sequence[np.ndarray]) -> float:
    """Return the root of a row's mean squared norm, by the shares of rows in the bins."""
    means = [(c.squared_norms() * n).sum() / n.sum() for c, n in zip(codes, counts, strict=True)]
    return math.sqrt(sum(means))


def coded_sums(
    scores: np.ndarray,
    targets: np.ndarray,
    codes_of: Callable[[int], np.ndarray],
    query: CodedResiduals,
    changes: dict[int, np.ndarray],
    logistic: bool,
) -> Whole:
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
    logistic
        Residuals are y - sigmoid(score), else y - score.

    Raises
    ------
    SensitivityError
        If norms are too large to be counted.
    """
    squares = {code.feature: _whole_squares(code) for code in query.codes}
    if sum(int(each.max()) for each in squares.values()) >= 2**31:
        raise _too_large()
    sums = {code.feature: np.zeros(code.n_bins, np.int64) for code in query.codes}
    features = list(changes | squares)
    columns = {feature: codes_of(feature) for feature in features}
    bound = query.bound / UNIT * 2.0 ** (_NORM_BITS / 2)
    for start in range(0, scores.size, _BLOCK):
        part = slice(start, min(start + _BLOCK, scores.size))
        norms = np.zeros(part.stop - start, np.int32)
        residuals = np.empty_like(norms)
        for k in features:
            step = changes.get(k, _NO_CHANGE)
            move_and_weigh(scores[part], norms, columns[k][part], step, squares.get(k, _NO_CHANGE))
        limited_residuals(scores[part], targets[part], norms, bound, logistic, residuals)
        for k, total in sums.items():
            add_by_code(residuals, columns[k][part], total)
    numbers = [code.numbers(sums[code.feature]) for code in query.codes]
    weights = np.concatenate([code.weights for code in query.codes])
    return Whole(np.concatenate(numbers), weights * UNIT * CENTRE_UNIT)


def _whole_squares(code: Code) -> np.ndarray:
    """Return `Code.squared_norms`, int32 (B,), in 2^-`_NORM_BITS`, rounded up and positive."""
    squares = np.ceil(code.squared_norms() * 2.0**_NORM_BITS) + 1
    if not (squares < 2.0**31).all():  # nor if one is not a number
        raise _too_large()
    return squares.astype(np.int32)


def _too_large() -> SensitivityError:
    return SensitivityError(
        "norms of codes are too large: their squares must add up to less than "
        f"{2 ** (31 - _NORM_BITS)}"
    )
