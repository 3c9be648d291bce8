"""How an epoch's mu^2 is divided among its queries."""

from __future__ import annotations

from typing import NamedTuple

from dprepro.ebm_plus.loss import Loss

INTERCEPT_WEIGHT = 0.5
"""mu^2 of the intercept's query, where that of the mean feature's query is 1."""


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
