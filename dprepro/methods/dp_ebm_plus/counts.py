"""Counts, as the curator knows them: targets from 0 to a public largest count, and a log link.

A row has the score F, and the rate M exp(F), at most M, the largest count. Its target is y / M, and
its residual (y - M exp(F)) / M, between -1 and 1: whole numbers of `kernel.UNIT`, of which the
exponential is the same on any machine (`exponential`). Sums of counts are as private as those of
numbers: residuals are limited by the same code, whatever the scores are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dprepro.methods.dp_ebm_plus.kernel import BITS, COUNTS, to_units

if TYPE_CHECKING:
    from dprepro.data.domain import Domain


class CountLoss:
    """The log likelihood of Poisson counts; its only object is `POISSON`.

    Attributes are those of `losses.Loss` that a curator asks for.
    """

    is_logistic: ClassVar[bool] = False
    kind: ClassVar[int] = COUNTS
    powers: ClassVar[int] = 2
    released: ClassVar[str] = (
        "for all rows, the sum of the target less what is predicted so far, as part of the largest "
        "target; for each feature, sums of this difference times numbers that depend on a row's "
        "category or interval, where the prediction has another constant factor; also the number "
        "of rows by the size of that difference"
    )

    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return y over the largest count, int32 (n,) in units; y is clipped to its range."""
        largest = float(domain.target[1])
        return to_units(np.clip(np.clip(y, 0.0, largest) / largest, 0.0, 1.0))

    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return targets less 1/2, int64 (n,) in units."""
        return targets.astype(np.int64) - 2 ** (BITS - 1)


POISSON = CountLoss()
