"""What is asked of a feature's bins, and how precisely: the strategy matrix.

A row in bin b of a feature adds its residual times the code A (e_b - p) to what is asked, p being
the shares of rows in the bins. Its sensitivity is the length of all its codes together. How should
A be chosen, for so much squared length on average?

Let effects f ~ N(0, s^2 Q^-1), and noise have the deviation sigma in each number. If X = P^(1/2)
A'A P^(1/2) for P = diag(p), the mean squared length is tr X, and the posterior variance of the
effects over the rows is tr (S^-1 + (n phi / sigma)^2 X)^-1 with S = s^2 P^(1/2) Q^-1 P^(1/2). It is
least where X has the eigenvectors of S and fills up their precision to a level (water-filling).
X = S (S + kappa I)^-1 is a smooth form of that, and gives

    A'A = (P + kappa Q)^-1,   kappa = B (sigma / (n phi s))^2.

Without noise every bin is asked by itself, rare ones more precisely. The more noise there is, the
more do numbers say of what smooth functions have in common. Q couples neighbours alone, so P +
kappa Q = U U' with U in two diagonals. Sums in the bins are U times what is released: their noise
is known, and couples neighbours alone.

The rows in the cells of a number are asked for in the same way, without residuals: as f, the number
over the even one less 1, and with s = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.additive.bins import Pair
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT, Code

_LEAST = 2.0**-10
"""Bins with a smaller share of the rows are weighed as if they had this one."""


_STEPS = 4
"""Weights are powers of 2^(1 / `_STEPS`): noise is drawn for all bins of one weight at once."""

STEP = 1.189207115002721
"""2^(1 / `_STEPS`), in decimals: the last digit of a power depends on the machine."""

_POWERS = np.array([1.0, STEP, 1.4142135623730951, 1.681792830507429])
"""2^(k / `_STEPS`), k = 0 .. 3."""


@dataclass(frozen=True)
class Mix:
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
        """Return a and c of `prior`, float64 (2, B): the noise of `sums`.

        `variances`, float64 (B,), are those of the noise in the numbers.
        """
        deviations = np.sqrt(variances)
        return np.stack([deviations, self.following * np.append(deviations[1:], 0.0)])


@dataclass(frozen=True)
class Strategy:
    """What one feature is asked: number c is sum_(b >= c) M_cb S_b - p_c' sum_b S_b, times w_c.

    Attributes
    ----------
    code
        M, w and the centre p', as a query takes them.
    mix
        M, and what takes numbers to sums and back; its `following` lie between 0 and 1.
    """

    code: Code
    mix: Mix

    @classmethod
    def of(
        cls,
        feature: int | Pair,
        counts: np.ndarray,
        precision: tuple[np.ndarray, ...],
        noise: float,
        part: float,
    ) -> Strategy:
        """Return the strategy of a feature.

        Parameters
        ----------
        feature
            Its number, or a pair.
        counts : float64 (B,)
            Rows of each bin, positive.
        precision
            Q: its diagonal and the entries beside it, float64 (B,) each.
        noise
            sigma / (n phi s): the noise in a number, over what a usual effect moves all rows by.
        part
            The feature's part of a row's squared length, if each bin were asked by itself.
        """
        shares = counts / counts.sum()
        mixed = _mixed(np.maximum(shares, _LEAST), precision, noise)
        # No matrix product: its last digit is not the same on every machine.
        centre = np.rint((mixed.mix * shares).sum(axis=1)).astype(np.int64)
        squares = mixed.fresh**2
        vectors = (mixed.mix - centre[:, None]) * CENTRE_UNIT
        length = float(((squares[:, None] * vectors**2).sum(axis=0) * shares).sum())
        alone = part * float((shares * (1 - shares)).sum())
        weights = rounded_weights(squares * alone / length)
        return cls(Code(feature, weights, centre, mixed.mix), mixed)

    @classmethod
    def of_cells(cls, feature: int, precision: tuple[np.ndarray, ...], noise: float) -> Strategy:
        """Return how the rows in the cells of a feature are asked for, all codes of about norm 1.

        Parameters
        ----------
        feature
            Its number.
        precision
            Q of their numbers over the even one, less 1: see `Strategy.of`, float64 (C,) each.
        noise
            sigma / n: the noise in a number, over the number of rows.
        """
        cells = precision[0].size
        mixed = _mixed(np.full(cells, 1 / cells), precision, noise)
        squares = mixed.fresh**2
        lengths = (squares[:, None] * (mixed.mix * CENTRE_UNIT) ** 2).sum(axis=0)
        # Half a step in the weights: they are rounded to the nearest power, not down.
        weights = rounded_weights(squares / lengths.max() * STEP)
        return cls(Code(feature, weights, np.zeros(cells, np.int64), mixed.mix), mixed)

    def noise(self, deviation: float) -> np.ndarray:
        """Return a and c of `prior`, float64 (2, B): the noise of sums.

        `deviation` is that of the noise in a number before it is divided by its weight.
        """
        return self.mix.noise((deviation / self.code.weights) ** 2)


def _mixed(shares: np.ndarray, precision: tuple[np.ndarray, ...], noise: float) -> Mix:
    """Return M, and as `fresh` the weights 1 / U_bb: the rows of U^-1 are M's times these."""
    kappa = shares.size * noise**2
    diagonal, beside = _bidiagonal(shares + kappa * precision[0], kappa * precision[1])
    following = np.append(-beside[:-1] / diagonal[1:], 0.0)
    mix = np.eye(shares.size)
    for c in range(shares.size - 1):
        mix[c, c + 1 :] = np.cumprod(following[c:-1])
    whole = np.rint(mix / CENTRE_UNIT).astype(np.int64)
    return Mix(whole, 1 / diagonal, following)


def _bidiagonal(diagonal: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return U_bb and U_b,b+1 with U U' tridiagonal: `diagonal` and the entries `beside` it."""
    own, after = np.zeros(diagonal.size), np.zeros(diagonal.size)
    own[-1] = math.sqrt(diagonal[-1])
    for b in range(diagonal.size - 2, -1, -1):
        after[b] = beside[b] / own[b + 1]
        own[b] = math.sqrt(diagonal[b] - after[b] ** 2)
    return own, after


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
