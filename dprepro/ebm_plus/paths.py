"""What the noisy steps of a function add up to where rows are few, and how far they got."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dprepro.ebm_plus.losses import weighted_mean
from dprepro.ebm_plus.queries import CENTRE_UNIT


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
