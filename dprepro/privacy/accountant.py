"""The accountant: adds up the releases of a ledger, independently of what calibrated them."""

from __future__ import annotations

import math
from functools import lru_cache

from dprepro.privacy.entry import CHOICES, LedgerEntry


@lru_cache(maxsize=1024)
def spent_epsilon(entries: tuple[LedgerEntry, ...], delta: float) -> float:
    """Return what the entries add up to at `delta`, infinite if one of them has no noise.

    `dp_accounting` composes them as privacy loss distributions, independently of the formulas that
    calibrated them. There is one exception: the noise of sampled releases may have been found by
    the same distributions, so tests compare it with a simulation. The result is the smallest of
    the bounds that are known: the sum of pure epsilons, the distributions, and, with exponential
    choices, Renyi DP with the bounded range of such choices.
    """
    if not entries:
        return 0.0
    if any(entry.mechanism != "cited" and entry.scale <= 0 for entry in entries):
        return math.inf
    # Without a delta pure guarantees add up, and a Gaussian has none.
    pure = sum(entry.pure_epsilon * entry.uses for entry in entries)
    if delta == 0:
        return pure
    # It imports dp_accounting, which takes longer than most commands that compose nothing.
    from dprepro.privacy.losses import spent_by_losses, spent_by_renyi

    spent = min(pure, spent_by_losses(entries, delta))
    if any(entry.mechanism in CHOICES for entry in entries):
        spent = min(spent, spent_by_renyi(entries, delta))
    return spent
