"""Prediction intervals of additive regressors, and what says how wide they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dprepro.additive.units import on_grid, power_for
from dprepro.runtime.arguments import real
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel

PERCENTS = tuple(range(50, 100))
"""The coverages that a fit knows the width of, in percent."""

LEVELS = np.array(PERCENTS) / 100


@dataclass(frozen=True)
class ResidualSizes:
    """How far targets lie from the predictions of a model fitted to rows like theirs.

    Attributes
    ----------
    percents : int64 (L,)
        Rising, at least two of them, between 1 and 99.
    sizes : float64 (L,)
        |target - prediction| that so many percent of the rows do not exceed, in the target's unit.
        They do not fall, and are whole numbers of 2^`power`.
    power
        See `dprepro.additive.units`.
    """

    percents: np.ndarray
    sizes: np.ndarray
    power: int

    @classmethod
    def at_levels(cls, sizes: np.ndarray) -> ResidualSizes:
        """Return those of sizes at `LEVELS`, float64 (50,), which are rounded to their grid."""
        power = power_for([sizes])
        return cls(np.array(PERCENTS), on_grid(sizes, power), power)

    def half_width(self, coverage: float) -> float:
        """Return the size that the share `coverage` of rows does not exceed.

        Raises
        ------
        DpreproError
            If that is not between the smallest and the largest share known.
        """
        least, most = self.percents[0] / 100, self.percents[-1] / 100
        coverage = real("coverage", coverage)
        if not least <= coverage <= most:
            raise DpreproError(
                f"the coverage of an interval must be from {least:g} to {most:g}, got {coverage:g}"
            )
        return float(np.interp(coverage, self.percents / 100, self.sizes))


def sizes_of(model: AdditiveModel) -> ResidualSizes:
    """Return what says how wide the intervals of a model are.

    Raises
    ------
    DpreproError
        For classification, and if the model does not know it.
    """
    from dprepro.additive.model import AdditiveRegressor

    if not isinstance(model, AdditiveRegressor):
        raise DpreproError(
            "prediction intervals are for regression; this is a model of two classes, whose "
            "probabilities say how sure it is"
        )
    if model.residual_sizes_ is None:
        raise DpreproError(
            "this model does not know how wide prediction intervals are. Regressors of dp-ebm-plus "
            "know it, from releases that they make anyway, but not from a single epoch, as with "
            "n_epochs=1, or with pairs and n_epochs=3; and not if they come from a file without "
            "`intervals`, as earlier releases of dprepro wrote: fit such a model"
        )
    return model.residual_sizes_


def intervals_in_words(model: AdditiveModel, coverage: float = 0.9) -> list[str]:
    """Return a sentence about the prediction intervals of a model; none if it has none."""
    sizes = model.residual_sizes_
    if sizes is None or not sizes.percents[0] <= 100 * coverage <= sizes.percents[-1]:
        return []
    return [
        f"About {100 * coverage:g} % of new rows have a target within "
        f"{sizes.half_width(coverage):.3g} of the prediction of the model as it was released. That "
        "is an average over all rows: for some kinds of rows it is fewer, for others more."
    ]
