"""What the effects of a feature may be where rows are few, given the steps towards them.

How far steps get depends on how many rows each bin has, which is lost in noise. So some ways are
tried that rows may lie in the bins, and some sizes that effects may have. The better one of them
explains the histogram and the steps that were released, the more it counts. All of it is
post-processing.

What the noisy steps of a function add up to where rows are few, and how far they got.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dprepro.methods.dp_ebm_plus.function import Function
from dprepro.methods.dp_ebm_plus.losses import weighted_mean
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT


class Step(NamedTuple):
    """A step of a path: how far for each unit of a sum, and what the sums were about.

    Attributes
    ----------
    gain, deviation
        Of the step, and of the noise in each number that was asked for.
    slopes : float64 (B,)
        How much the residual of a row falls with the function's value.
    trust
        The function was so many times the path.
    """

    gain: float
    deviation: float
    slopes: np.ndarray
    trust: float


class Path:
    """What the steps of one function over B bins add up to.

    Attributes
    ----------
    counts : float64 (B,)
        Rows of each bin, as released.
    mix, centre : int64 (C, B) or None, and (C,)
        See `Code`.
    ways : float64 (B, C)
        A: what a step along each number adds to each bin.
    steepest
        What the curvature along a step is at most, per row and unit of the loss's curvature: the
        mean squared norm of a code, which is the sum of the curvatures along all directions.
    values : float64 (B,)
        The mean over the rows is zero.
    variances : float64 (B,)
        Of the noise of all steps, as if no step made up for the noise of those before it.
    """

    def __init__(self, counts: np.ndarray, mix: np.ndarray | None) -> None:
        self.counts, self.mix = counts, mix
        shares = counts / counts.sum()
        numbers = np.eye(counts.size) / CENTRE_UNIT if mix is None else mix
        self.centre = np.rint((numbers * shares).sum(axis=1)).astype(np.int64)
        self.ways = (numbers - self.centre[:, None]).T * CENTRE_UNIT
        squares = (self.ways**2).sum(axis=1)
        self.steepest = max(weighted_mean(squares, counts), CENTRE_UNIT)
        self.values, self.variances = np.zeros((2, counts.size))
        self._steps: list[Step] = []

    def go(self, gain: float, sums: np.ndarray, deviation: float, slopes: np.ndarray) -> None:
        """Add a step along released numbers, (C,); see `Step`."""
        self._steps.append(Step(gain, deviation, slopes, self.trust()))
        # No matrix product: its last digit is not the same on every machine.
        values = self.values + gain * (self.ways * sums).sum(axis=1)
        self.values = values - weighted_mean(values, self.counts)
        self.variances = self.variances + (gain * deviation) ** 2 * (self.ways**2).sum(axis=1)

    def trust(self) -> float:
        """Return E / (E + V), see `CoarseBooster`."""
        square = weighted_mean(self.values**2, self.counts)
        noise = weighted_mean(self.variances, self.counts)
        return square / (square + noise) if noise > 0 else 1.0

    @property
    def slopes(self) -> np.ndarray:
        """Those of the last step, float64 (B,)."""
        return self._steps[-1].slopes

    def reach(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how far the path gets if bins have these counts, and the noise it brings along.

        With f the effects, a step adds gain A (A' D (f - trust values) + noise), where D has each
        bin's rows times their slope on the diagonal. All of it is linear in f, so values = R f +
        noise of a known covariance. For bands alone: no query depends on it.

        Parameters
        ----------
        counts : float64 (W, B)
            Ways that rows may lie in the bins.

        Returns
        -------
        float64 (W, B, B) each: R, and the covariance of the noise.
        """
        n_bins = self.counts.size
        centring = np.eye(n_bins) - self.counts / self.counts.sum()
        spread = centring @ self.ways
        turn, shaken = spread @ self.ways.T, spread @ spread.T
        reached, noise = np.zeros((2, len(counts), n_bins, n_bins))
        for gain, deviation, slopes, trust in self._steps:
            added = gain * turn * (counts * slopes)[:, None, :]
            kept = centring - trust * added
            reached = kept @ reached + added
            noise = kept @ noise @ kept.transpose(0, 2, 1) + (gain * deviation) ** 2 * shaken
        return reached, noise


_CENTRES, _WIDTH = (0.1, 0.3, 0.5, 0.7, 0.9), 0.15
"""Rows may lie around these places of the public grid, with this standard deviation, as parts of
all its bins. Or each bin has as many."""

_ANYWHERE = 0.05
"""Part of the rows that each bin has as many of, wherever the others lie."""

_MISSING = 0.25
"""Part of the rows that may have no value. Or they are as rare as a value without others nearby."""

_ODDS = np.array([0.05, 0.3, 1.0, 3.0])
"""A category may have so many times the rows of each other one."""

_TIMES = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
_DEVIATION = 0.7
"""Effects may be so many times as large as is likely. A priori the logarithm is normal, with this
standard deviation."""

_LEAST_ROWS, _LEAST_NOISE, _LEAST_SQUARE = 1e-6, 1e-6, 1e-3
"""Rows of a bin, also times their slope; variance of a value, as a part of its square and of the
noise in all steps; and these, as a part of the square of a likely effect."""

_BITS = 12
"""Binary digits of an error to expect."""


def likely_error(
    function: Function, path: Path, rows: float, size: float, sampling: float
) -> np.ndarray:
    """Return the root mean square error to expect of a function, float64 (B,).

    Function and effects are counted from their means over the rows.

    Parameters
    ----------
    rows
        In all.
    size
        How large effects are likely to be: root mean square over the bins.
    sampling
        The variance of a row's residual over its curvature: the rows are a sample, too.
    """
    prior, explain = covariance(function), _in_all if function.ordered else _in_each
    logs, squares = [], []
    counts, evidence = ways(function, rows)
    square = max(float(np.mean(path.variances + path.values**2)), _LEAST_SQUARE * size**2)
    least = _LEAST_NOISE * square * np.eye(path.values.size)
    for each, fit, reach, noise in zip(counts, evidence, *path.reach(counts), strict=True):
        # A category is judged by its own value and count; the mean stays that of likely counts.
        shares = each if function.ordered else function.counts
        centring = np.eye(each.size) - shares / shares.sum()
        effects = centring @ prior @ centring.T
        found = reach @ (np.eye(each.size) - each / each.sum())
        sample = found * (sampling / np.maximum(each * path.slopes, _LEAST_ROWS)) @ found.T
        for times in _TIMES:
            log, mean, variance = explain(
                path.values, (times * size) ** 2 * effects, reach, noise + sample + least
            )
            logs.append(fit + log - 0.5 * (np.log(times) / _DEVIATION) ** 2)
            squares.append(variance + (mean - centring @ function.values) ** 2)
    weights = np.exp(logs - np.max(logs, axis=0))
    return _to_bits(np.sqrt((weights * squares).sum(axis=0) / weights.sum(axis=0)))


def _to_bits(values: np.ndarray) -> np.ndarray:
    """Return values rounded to `_BITS` binary digits: the last ones differ between machines."""
    digits, powers = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(digits, _BITS)), powers - _BITS))


def ways(function: Function, rows: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ways that rows may lie in the bins, and how well they explain the noisy counts.

    Each is float64 (W, B). A bin has about as many rows as the way says, give or take as many
    again; the first are the counts that follow a posteriori. The second are log likelihoods: of an
    ordered feature that of all counts, of another that of the category's.
    """
    likely = rows * (_places(function) if function.ordered else _odds(function.counts.size))
    variances = likely**2 + function.uncertainty**2
    gaps = function.noisy - likely
    logs = -0.5 * (gaps**2 / variances + np.log(variances))
    counts = np.maximum(likely + likely**2 / variances * gaps, _LEAST_ROWS)
    if function.ordered:
        counts *= rows / counts.sum(axis=1, keepdims=True)
        logs = np.broadcast_to(logs.sum(axis=1, keepdims=True), logs.shape)
    return counts, logs


def _places(function: Function) -> np.ndarray:
    """Return likely shares of an ordered feature's rows, float64 (W, B)."""
    values = function.extents > 0
    n_bins = values.size
    shares = [np.full(n_bins, 1 / n_bins)]
    places = (np.arange(values.sum()) + 0.5) / values.sum()
    for centre in _CENTRES:
        around = np.exp(-0.5 * ((places - centre) / _WIDTH) ** 2)
        share = np.full(n_bins, _ANYWHERE / n_bins)
        share[values] += (1 - share.sum()) * around / around.sum()
        shares.append(share)
    if values.all():
        return np.array(shares)
    missing = [(1 - _MISSING) * share[values] / share[values].sum() for share in shares]
    more = np.full((len(shares), n_bins), _MISSING)
    more[:, values] = missing
    return np.concatenate([shares, more])


def _odds(n_bins: int) -> np.ndarray:
    """Return likely shares of each category's rows, float64 (W, B)."""
    return np.tile(_ODDS[:, None] / (_ODDS[:, None] + n_bins - 1), n_bins)


def covariance(function: Function) -> np.ndarray:
    """Return the covariance of effects a priori, float64 (B, B), whose mean variance is 1.

    Effects of values in order are a walk of normal steps, counted from its mean over the bins.
    Those of categories, and of missing values, are independent.
    """
    values = np.flatnonzero(function.extents > 0)
    found = np.eye(function.counts.size)
    if not function.ordered or values.size < 2:
        return found
    place = np.arange(values.size)
    centring = np.eye(values.size) - 1 / values.size
    walk = centring @ np.minimum.outer(place, place) @ centring
    found[np.ix_(values, values)] = walk * (values.size / np.trace(walk))
    return found


def _in_all(
    seen: np.ndarray, effects: np.ndarray, reach: np.ndarray, noise: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the log likelihood of a path's values, and the effects' means and variances given it.

    `effects` is the covariance a priori; the path's values are `reach` times the effects plus
    `noise`, of this covariance.
    """
    factor = np.linalg.cholesky(reach @ effects @ reach.T + noise)
    both = np.linalg.solve(factor, np.column_stack([seen, reach @ effects]))
    parts, pull = both[:, 0], both[:, 1:]
    log = -np.log(np.diag(factor)).sum() - 0.5 * (parts**2).sum()
    variance = np.diag(effects) - (pull**2).sum(axis=0)
    return float(log), parts @ pull, np.maximum(variance, 0.0)


def _in_each(
    seen: np.ndarray, effects: np.ndarray, reach: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `_in_all` does of each bin, by its own value alone; float64 (B,) each."""
    expected = np.diag(reach @ effects @ reach.T + noise)
    pull = np.diag(reach @ effects)
    log = -0.5 * (np.log(expected) + seen**2 / expected)
    return log, pull / expected * seen, np.maximum(np.diag(effects) - pull**2 / expected, 0.0)
