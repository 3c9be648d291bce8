"""interpret's regressor with a public range; a module of its own, since it imports interpret."""

from __future__ import annotations

from typing import Any

import numpy as np
from interpret.glassbox import ExplainableBoostingRegressor


class ClippedRegressor(ExplainableBoostingRegressor):
    """An `ExplainableBoostingRegressor` whose predictions are clipped.

    Attributes
    ----------
    limits_ : (float, float)
        The public range of the target.
    """

    limits_: tuple[float, float]

    def predict(self, X: Any, init_score: Any = None) -> np.ndarray:
        """Return the predicted target, float64 (n,), within the limits."""
        return np.clip(super().predict(X, init_score), *self.limits_)
