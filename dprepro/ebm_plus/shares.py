"""How an epoch's mu^2 is divided among its queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dprepro.ebm_plus.function import Function
from dprepro.ebm_plus.kernel import rounded
from dprepro.ebm_plus.loss import Loss
from dprepro.ebm_plus.losses import weighted_mean

INTERCEPT_WEIGHT = 0.5
"""mu^2 of the intercept's query, where that of the mean feature's query is 1."""

EVEN_SHARE = 0.25
"""Part of the features' mu^2 that is divided evenly. The rest goes by the size of the functions."""


class Shares(NamedTuple):
    """How an epoch's mu^2 is divided: all features together, the intercept, the magnitudes."""

    features: float
    intercept: float
    magnitudes: float


def query_shares(n_features: int, loss: Loss) -> Shares:
    """Return the shares of an epoch's mu^2; they add up to 1.

    Gaussian queries of mu_1, mu_2, ... together have mu^2 = mu_1^2 + mu_2^2 + ..., whether they are
    asked at once or one after another: so an epoch is one mechanism in the ledger.
    """
    total = n_features + INTERCEPT_WEIGHT + loss.sizes_weight
    return Shares(n_features / total, INTERCEPT_WEIGHT / total, loss.sizes_weight / total)


def divided(share: float, functions: Sequence[Function]) -> list[float]:
    """Return each function's part of a share of mu^2: a part of it alike, the rest by size.

    The size is the root mean square a posteriori of what has been released.
    """
    squares = [f.spread() + weighted_mean(rounded(f.deviations) ** 2, f.counts) for f in functions]
    sizes = np.sqrt(squares)
    if not sizes.any():
        sizes[:] = 1.0
    even = EVEN_SHARE / max(sizes.size, 1)
    return list(share * (even + (1 - EVEN_SHARE) * sizes / sizes.sum()))
