"""Smooth distributions in whole numbers: no row gets more than 1 / (kappa n) of the weight."""

from __future__ import annotations

from collections.abc import Sequence

from dprepro.privacy.robust import TOTAL, largest_weight


def smooth_weights(measure: Sequence[int], counts: Sequence[int], density: float) -> list[int]:
    """Return the weight of a row in each group of rows, in units of 1 / `TOTAL`.

    The Bregman projection of a measure m onto those with values in [0, 1] and a sum of at least
    kappa n is min(1, c m): c = 1 if the sum is reached already, and else c > 1 such that it is
    reached exactly (Barak, Hardt, Kale 2009; Asadi et al. 2022, section 2.1). Divided by
    its sum, it is min(cap, a m) for an m of at most 1, in both cases: cap is 1 / (kappa n), and a
    is such that all rows together weigh 1. Here the weights are

        w = min(C, floor(a m)),    C = floor(T / (kappa n)),    T = `TOTAL`,

    where a is the rational number at which min(C, a m) adds up to T, or without limit if the rows
    weigh less than T even so. All of it is integer arithmetic, so it is exact. For
    `robust.smooth_distance` three things are proved:

    - A weight depends on its m and on a alone, besides n and kappa, and grows with a. So of two
      neighbours, one gives all rows that both have at least the weight that the other gives.
    - No weight exceeds C.
    - All n weights add up to at most T, and to more than T - n: rounding down takes less than 1
      from each; and if all are C, then n C > n (T / (kappa n) - 1) >= T - n.

    a is found by capping groups, the largest m first, until the next one needs no cap.

    Parameters
    ----------
    measure
        m of each group, positive, in any unit that all share. Groups may have the same m.
    counts
        The rows in each group, positive Python integers: NumPy's would overflow.
    density
        kappa, in (0, 1].
    """
    cap, left = largest_weight(density, sum(counts)), TOTAL
    mass = sum(n * m for n, m in zip(counts, measure, strict=True))
    weights = [cap] * len(measure)
    falling = sorted(range(len(measure)), key=measure.__getitem__, reverse=True)
    for place, group in enumerate(falling):
        # Here a = left / mass, and a group is capped if its a m exceeds C.
        if left * measure[group] <= cap * mass:
            for free in falling[place:]:
                weights[free] = left * measure[free] // mass
            break
        left -= cap * counts[group]
        mass -= measure[group] * counts[group]
    return weights
