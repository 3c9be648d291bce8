"""What the noisy steps of a function add up to where rows are few, and how far they got."""

from __future__ import annotations

import numpy as np

from dprepro.ebm_plus.losses import weighted_mean
from dprepro.ebm_plus.queries import CENTRE_UNIT


class Path:
    """What the steps of one function over B bins add up to.

    With f the effects that the rows have, each step adds gain A (A' D (f - values) + noise), where
    D has each bin's rows times the slope of its expected target on the diagonal. All of it is
    linear, so values = (I - missing) f + noise of a known covariance, as far as the counts are
    right.

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
    missing, noise : float64 (B, B)
        See above; the covariance of the noise.
    slopes : float64 (B,)
        Of a bin's expected target, per row, at the last step.
    centring : float64 (B, B)
        What takes out the mean over the rows.
    """

    def __init__(self, counts: np.ndarray, mix: np.ndarray | None) -> None:
        self.counts, self.mix = counts, mix
        shares = counts / counts.sum()
        numbers = np.eye(counts.size) / CENTRE_UNIT if mix is None else mix
        self.centre = np.rint((numbers * shares).sum(axis=1)).astype(np.int64)
        self.ways = (numbers - self.centre[:, None]).T * CENTRE_UNIT
        squares = (self.ways**2).sum(axis=1)
        self.steepest = max(weighted_mean(squares, counts), CENTRE_UNIT)
        self.values, self.variances, self.slopes = np.zeros((3, counts.size))
        self.missing, self.noise = np.eye(counts.size), np.zeros((counts.size, counts.size))
        self.centring = np.eye(counts.size) - shares
        spread = self.centring @ self.ways
        self._spread, self._spread_noise = spread @ self.ways.T, spread @ spread.T

    def go(self, gain: float, sums: np.ndarray, deviation: float, slopes: np.ndarray) -> None:
        """Add a step along released numbers, (C,), with noise of this standard deviation."""
        # No matrix product: its last digit is not the same on every machine.
        values = self.values + gain * (self.ways * sums).sum(axis=1)
        self.values = values - weighted_mean(values, self.counts)
        variance = (gain * deviation) ** 2
        self.variances = self.variances + variance * (self.ways**2).sum(axis=1)

        # What follows is for bands alone: no later query depends on it.
        kept = self.centring - gain * self._spread * (self.counts * slopes)
        self.missing = kept @ self.missing
        self.noise = kept @ self.noise @ kept.T + variance * self._spread_noise
        self.slopes = slopes

    def trust(self) -> float:
        """Return E / (E + V), see `CoarseBooster`."""
        square = weighted_mean(self.values**2, self.counts)
        noise = weighted_mean(self.variances, self.counts)
        return square / (square + noise) if noise > 0 else 1.0

    def effects(self, size: float, sampling: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance a posteriori of the effects, float64 (B,) each.

        Parameters
        ----------
        size
            Standard deviation of an effect a priori, about; its mean is 0, and its covariance is
            `size`^2 A A'.
        sampling
            The variance of a row's residual over its curvature: the rows are a sample, too.
        """
        centring = self.centring
        prior = size**2 * self._spread_noise
        sample = sampling / np.maximum(self.counts * self.slopes, 1e-9)
        reached = np.eye(self.counts.size) - self.missing
        sample = centring * sample @ centring.T
        expected = reached @ (prior + sample) @ reached.T + self.noise
        weights = prior @ reached.T @ np.linalg.pinv(expected, rcond=1e-9, hermitian=True)
        variance = np.diag(prior) - (weights * (prior @ reached.T)).sum(axis=1)
        return weights @ self.values, np.maximum(variance, 0.0)
