"""What estimators share that train on samples of the rows, as DP-SGD does."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.base import clone

from dprepro.estimators.base import DPEstimator
from dprepro.estimators.inputs import plain_parameters
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sensitivity import Adjacency
from dprepro.privacy.subsampling import ACCOUNTANTS, moments_epsilon, sampled_sigma
from dprepro.runtime.arguments import Integer


class SampledEstimator(DPEstimator):
    """One whose parameters are `epsilon`, `delta`, `noise_multiplier` and `domain`, among others.

    Attributes
    ----------
    figures_ : dict
        ``noise_multiplier`` and ``moments_epsilon``, which the moments accountant states for it.
    """

    figures_: dict[str, float]

    def planned_ledger(self, rows: int) -> Ledger:
        """Return the ledger that a fit to so many rows would leave, without fitting.

        How often a row is sampled depends on their number, which is public, and on nothing else
        about them.
        """
        rows = Integer(1)("rows", rows)
        with plain_parameters(self):
            planned = clone(self)
        planned._enter_planned(rows)
        return planned.ledger_

    @property
    def _observed(self) -> tuple[str, ...]:
        """What is read without noise before training, in the words of the ledger."""
        return ("labels that occur",) if self.domain is None else self.domain.observed

    def _calibrate_noise(
        self,
        adjacency: Adjacency,
        rate: float,
        steps: int,
        accountant: str = "pld",
        gaps: Sequence[str] = (),
    ) -> float:
        """Return the noise multiplier; set the figures, and the ledger with its stated epsilon."""
        sigma, epsilon = self.noise_multiplier, self.epsilon
        if sigma is None:
            sigma = sampled_sigma(accountant, float(epsilon), self.delta, rate=rate, steps=steps)
        if epsilon is None:
            epsilon = ACCOUNTANTS[accountant](sigma, rate, steps, self.delta)
        self.figures_ = {
            "noise_multiplier": float(sigma),
            "moments_epsilon": moments_epsilon(sigma, rate, steps, self.delta),
        }
        self.ledger_ = self._new_ledger(
            adjacency,
            [
                "number of rows",
                "number of features",
                self.domain is not None and "labels",
                not self._observed and "bounds and categories",
            ],
            epsilon=float(epsilon),
            gaps=gaps,
        )
        return float(sigma)
