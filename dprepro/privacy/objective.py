"""Objective perturbation for logistic regression (Chaudhuri, Monteleoni, Sarwate 2011).

Released is the minimiser w of

    sum_i log(1 + exp(-w . z_i)) + strength |w|^2 / 2 + b . w,

where z_i is row i, its sign turned where its label is negative, and the noise b has density
~ exp(-|b| / scale). Here are the constants that diffprivlib 0.6.6 draws with, and what they prove.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

CURVATURE = 0.25
"""Largest second derivative of the logistic loss."""


@dataclass(frozen=True)
class ObjectivePerturbation:
    """The mechanism at a budget, a penalty and a bound on the norm of rows.

    Attributes
    ----------
    epsilon
        The library's budget.
    penalty
        Of |w|^2 / 2 beside the summed losses: 1 / C.
    norm
        Rows are no longer than that; 1 in the theorem.
    """

    epsilon: float
    penalty: float
    norm: float = 1.0

    @property
    def noise_epsilon(self) -> float:
        """The share of epsilon that pays for the noise; the rest pays for the curvature."""
        left = self.epsilon - 2 * math.log1p(CURVATURE * self.norm / self.penalty)
        return left if left > 0 else self.epsilon / 2

    @property
    def strength(self) -> float:
        """The penalty, raised where the curvature would leave nothing for the noise."""
        if self.epsilon > 2 * math.log1p(CURVATURE * self.norm / self.penalty):
            return self.penalty
        return CURVATURE * self.norm / math.expm1(self.epsilon / 4)

    @property
    def gradient_sensitivity(self) -> float:
        """How far an exchange of rows moves b for the same w, in L2: each gradient is <= norm."""
        return 2 * self.norm

    @property
    def scale(self) -> float:
        """The noise's: its length is Gamma(columns, scale), its direction uniform."""
        return self.gradient_sensitivity / self.noise_epsilon

    @property
    def proved_epsilon(self) -> float:
        """What the theorem proves, replace-one: `epsilon` for norms up to 1, more beyond.

        The density of w is that of b, which an exchange changes by a factor of at most
        exp(noise_epsilon), times the determinant of the Hessian. A row adds to that a term of rank
        1 and size CURVATURE norm^2: coming or going, a factor of 1 + CURVATURE norm^2 / strength.
        The library leaves out the square.
        """
        return self.noise_epsilon + 2 * math.log1p(CURVATURE * self.norm**2 / self.strength)

    def log_density(self, w: np.ndarray, rows: np.ndarray, counts: np.ndarray) -> float:
        """Return the logarithm of the density of w, up to a constant that no dataset changes.

        Parameters
        ----------
        w : float64 (k,)
            What was released.
        rows, counts : float64 (m, k), (m,)
            The rows z, and how often each occurs.
        """
        wrong = expit(-(rows @ w))
        noise = self.strength * w - (counts * wrong) @ rows
        weights = counts * wrong * (1 - wrong)
        hessian = (rows.T * weights) @ rows + self.strength * np.eye(w.size)
        return float(np.linalg.slogdet(hessian)[1] - np.linalg.norm(noise) / self.scale)
