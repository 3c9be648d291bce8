"""What the noisy steps of a function add up to where rows are few, and how far they got."""

from __future__ import annotations

import numpy as np

from dprepro.ebm_plus.losses import weighted_mean


class Path:
    """What the steps of one function over B bins add up to.

    With f the effects that the rows have, each step adds gain S (D (f - values) + noise), where D
    has each bin's rows times the slope of its expected target on the diagonal. All of it is linear,
    so values = (I - missing) f + noise of a known covariance, as far as the counts are right.

    Attributes
    ----------
    counts : float64 (B,)
        Rows of each bin, as released.
    spreading : float64 (B, B)
        S: how much of a bin's sum goes to each bin.
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

    def __init__(self, counts: np.ndarray, spreading: np.ndarray) -> None:
        self.counts, self.spreading = counts, spreading
        self.values, self.variances, self.slopes = np.zeros((3, counts.size))
        self.missing, self.noise = np.eye(counts.size), np.zeros_like(spreading)
        self.centring = np.eye(counts.size) - counts / counts.sum()

    def go(self, gain: float, sums: np.ndarray, deviation: float, slopes: np.ndarray) -> None:
        """Add a step along released sums of residuals, with noise of this standard deviation."""
        values = self.values + gain * (self.spreading @ sums)
        self.values = values - weighted_mean(values, self.counts)
        variance = (gain * deviation) ** 2
        self.variances = self.variances + variance * (self.spreading**2).sum(axis=1)

        spread = self.centring @ self.spreading
        kept = self.centring - gain * spread * (self.counts * slopes)
        self.missing = kept @ self.missing
        self.noise = kept @ self.noise @ kept.T + variance * spread @ spread.T
        self.slopes = slopes

    def trust(self) -> float:
        """Return E / (E + V), see `CoarseBooster`; the mean that is taken out has noise, too."""
        square = weighted_mean(self.values**2, self.counts)
        noise = weighted_mean(self.variances, self.counts) * (1 - 1 / self.counts.size)
        return square / (square + noise) if noise > 0 else 1.0

    def effects(self, size: float, sampling: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance a posteriori of the effects, float64 (B,) each.

        Parameters
        ----------
        size
            Standard deviation of an effect a priori; its mean is 0, and bins are independent.
        sampling
            The variance of a row's residual over its curvature: the rows are a sample, too.
        """
        centring = self.centring
        prior = size**2 * centring @ centring.T
        sample = sampling / np.maximum(self.counts * self.slopes, 1e-9)
        reached = np.eye(self.counts.size) - self.missing
        expected = reached @ (prior + centring * sample @ centring.T) @ reached.T + self.noise
        weights = prior @ reached.T @ np.linalg.pinv(expected, rcond=1e-9, hermitian=True)
        variance = np.diag(prior) - (weights * (prior @ reached.T)).sum(axis=1)
        return weights @ self.values, np.maximum(variance, 0.0)
