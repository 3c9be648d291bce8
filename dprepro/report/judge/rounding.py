"""Differences of scores: the last bits, in which equal scores can differ, are none."""

from __future__ import annotations

ROUNDING = 1e-12
"""Scores that differ by no more than this part of the larger one are equal. Sums over rows are off
by less, and one row that is predicted otherwise moves a score by more."""


def score_difference(one: float, other: float) -> float:
    """Return one score minus another, 0.0 where they differ by rounding alone."""
    found = one - other
    return 0.0 if abs(found) <= ROUNDING * max(abs(one), abs(other)) else found
