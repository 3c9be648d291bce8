"""Weights of rows, as a fit takes them: each in whole numbers of a share of the public largest."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprepro.estimators.columns import check_array, check_finite
from dprepro.rows.partition import WEIGHT_UNIT
from dprepro.runtime.arguments import MODERATE

LARGEST_WEIGHT = MODERATE
"""Kind of the parameter that states the public largest weight."""


def read_weights(given: Any, rows: int, largest: float) -> np.ndarray:
    """Return w / `largest` in whole numbers of `WEIGHT_UNIT`, int32 (n,), rounded down.

    So the largest weight is 1 / `WEIGHT_UNIT`, and none is more. A weight below `WEIGHT_UNIT` of
    the largest is 0: its row adds nothing.

    Parameters
    ----------
    given : (n,)
        Weights w: numbers above 0, at most `largest`.
    rows
        n.
    largest
        Public.

    Raises
    ------
    ValueError
        On anything else; the message quotes no weight and counts no rows.
    """
    check_array("sample_weight", given)
    if np.ndim(given) != 1 or len(given) != rows:
        raise ValueError("sample_weight must hold one number for each row of X, in one dimension")
    weights = check_finite("sample_weight", given)
    if not ((weights > 0) & (weights <= largest)).all():
        raise ValueError(
            f"sample_weight must lie above 0 and not above the public largest_weight, {largest:g}, "
            "and some weight does not: leave out rows without a weight, and state the largest "
            "weight that a row of such a table may have, whichever are in it, by largest_weight=..."
        )
    # Products with powers of 2 are exact, and a quotient of w <= W is at most 1 when it is rounded.
    return np.asarray(np.floor(weights / largest / WEIGHT_UNIT).astype(np.int32))
