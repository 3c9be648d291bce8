"""Codes of rows: how one query asks about all features, and what a row pays for it.

A row lies in one bin of each feature. Asked about each bin alike, it would pay as much for every
feature, though most of its values tell little: nearly all rows share them. So bins are counted from
their mean (`Code.centre`), and a row in a bin that most rows share has a short vector. Rare bins
are asked more precisely than common ones (`Code.weights`): their rows are few.

Neighbouring bins share the numbers that are asked for (`Code.mix`), with decaying weights. If each
bin is asked about by itself, all functions are learned equally precisely. But most effects change
slowly from bin to bin. Sums over neighbouring bins tell more of these, for the same sensitivity,
and less of what jumps up and down. Where rows are few, `low_signal.smooth_sums` does the same with
bins that are alike: there which bins are rare is lost in noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.additive.bins import Pair
from dprepro.methods.dp_ebm_plus.kernel import UNIT, add_by_code, limited_residuals, move_and_weigh
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT, Code, Coded, CodedResiduals
from dprepro.methods.dp_ebm_plus.weighing import weigh
from dprepro.privacy.query import ScaledInteger, SensitivityError

REACH = 0.3
"""Over which part of all bins, or of all rows, effects are alike: see `autoregressive_strategy`."""

_EVEN = 0.5
"""Weight of a distance in bins. That of a distance in rows is the rest, to 1."""

LEAST_SHARE = 2.0**-8
"""Bins with a smaller share of the rows are weighed as if they had this one. So for `Loss.rare`
no number in a mix exceeds 4, the root of the root of 256."""

NORM_BITS = 20
"""Squared norms count in 2^-20, rounded up."""

_LEAST = 2.0**-20
"""Bins with a smaller share of the rows get the weight of this one."""

_STEPS = 4
"""Weights are powers of 2^(1 / `_STEPS`): noise is drawn for all bins of one weight at once."""

STEP = 1.189207115002721
"""2^(1 / `_STEPS`), in decimals: the last digit of a power depends on the machine."""

_POWERS = np.array([1.0, STEP, 1.4142135623730951, 1.681792830507429])
"""2^(k / `_STEPS`), k = 0 .. 3."""

_NO_CHANGE = np.zeros(256, np.int32)

_BLOCK = 2**15
"""Rows that are moved, weighed and summed while they lie in a processor's cache."""


@dataclass(frozen=True)
class AutoregressiveStrategy:
    """How the numbers that are asked for follow from sums in the bins, and the sums from numbers.

    Number c is sum_(b >= c) M_cb S_b, with M_cc = 1 and M_cb = k_c ... k_(b-1). So
    S_c = number_c - k_c number_(c+1).

    Attributes
    ----------
    mix : int64 (B, B)
        M, in `CENTRE_UNIT`.
    fresh : float64 (B,)
        What the weight of a number is to be multiplied by: it is small where the number before it
        tells nearly the same.
    following : float64 (B,)
        k; the last one is 0.
    """

    mix: np.ndarray
    fresh: np.ndarray
    following: np.ndarray

    def sums(self, numbers: np.ndarray) -> np.ndarray:
        """Return the sums in the bins, float64 (B,), given the released numbers, float64 (B,).

        M is rounded, so a sum is off by at most (1 + k) / 512 times the sum of all |S_b|.
        """
        return np.asarray(numbers - self.following * np.append(numbers[1:], 0.0))

    def along(self, change: np.ndarray) -> np.ndarray:
        """Return the weights of the numbers that add up to sum_b change_b S_b, float64 (B,)."""
        return np.asarray(change - np.append(0.0, (self.following * change)[:-1]))

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """Return the noise of `sums`, as `smooth` takes it, float64 (2, B).

        `variances`, float64 (B,), are those of the noise in the numbers.
        """
        deviations = np.sqrt(variances)
        return np.stack([deviations, self.following * np.append(deviations[1:], 0.0)])


def autoregressive_strategy(
    counts: np.ndarray, extents: np.ndarray, rare: float
) -> AutoregressiveStrategy | None:
    r"""Return the decay of an ordered function, None if it has fewer than three intervals.

    Let L be M with each row c times `fresh`_c. Then L' L is the covariance that effects are assumed
    to have where bins are weighed alike: exp(-d / `REACH`) for bins at the distance d. That is an
    autoregression, so L has this simple form. The distance is the mean of two: the bins between
    both, as a share of all bins, and the rows between both, as a share of all rows. If rare bins
    are asked about more precisely, the covariance is multiplied by the roots of both bins' weights.

    Parameters
    ----------
    counts : float64 (B,)
        About how many rows each bin has, positive.
    extents : float64 (B,)
        See `Function`; 0 for missing values, which have a number of their own.
    rare
        See `code`.
    """
    intervals = np.flatnonzero(extents > 0)
    n = intervals.size
    if n < 3:
        return None
    shares = counts[intervals] / counts[intervals].sum()
    apart = _EVEN / n + (1 - _EVEN) * (shares[1:] + shares[:-1]) / 2
    alike = np.array([math.exp(-d / REACH) for d in apart])
    roots = np.maximum(counts / counts.sum(), LEAST_SHARE) ** (-rare / 2)
    following, fresh = np.zeros(counts.size), np.ones(counts.size)
    following[intervals[:-1]] = alike * roots[intervals[1:]] / roots[intervals[:-1]]
    fresh[intervals[1:]] = np.sqrt(1 - alike**2)
    mix = np.eye(counts.size)
    for c in intervals[:-1]:
        mix[c, c + 1 : intervals[-1] + 1] = np.cumprod(following[c : intervals[-1]])
    return AutoregressiveStrategy(np.rint(mix / CENTRE_UNIT).astype(np.int64), fresh, following)


def code(
    feature: int,
    counts: np.ndarray,
    share: float,
    rare: float,
    decay: AutoregressiveStrategy | None = None,
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
        return Code(feature, rounded_weights(squares), np.rint(centre).astype(np.int64))
    # No matrix product: its last digit is not the same on every machine.
    centre = np.rint((decay.mix * shares).sum(axis=1)).astype(np.int64)
    vectors = (decay.mix - centre[:, None]) * CENTRE_UNIT
    alone = (shares * (1 - shares) * squares).sum()
    squares *= decay.fresh**2
    squares *= alone / ((squares[:, None] * vectors**2).sum(axis=0) * shares).sum()
    return Code(feature, rounded_weights(squares), centre, decay.mix)


def rounded_weights(squares: np.ndarray) -> np.ndarray:
    """Return weights with these squares, float64 (C,), positive, rounded down: see `_STEPS`.

    By no logarithm and no power: the square of every other weight is a power of 2, at which squared
    norms are rounded, and a last digit would tell to which side.
    """
    mantissas, exponents = np.frexp(squares)
    steps = 2 * exponents - np.where(mantissas < math.sqrt(0.5), 2, 1)
    return np.asarray(np.ldexp(_POWERS[steps % _STEPS], steps // _STEPS))


def typical_norm(codes: Sequence[Code], counts: Sequence[np.ndarray]) -> float:
    """Return the root of a row's mean squared norm, by the shares of rows in the bins."""
    means = [(c.squared_norms() * n).sum() / n.sum() for c, n in zip(codes, counts, strict=True)]
    return math.sqrt(sum(means))


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
        Of residuals: see `kernel.residual_sums`.
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
