"""Robust sensitivities of what LazyBB releases, under replace-one with n and kappa public.

Compare two neighbouring datasets over the n + 1 records of both, not over positions: a record keeps
its weight's name when another is exchanged. zeta is the total variation distance that boosting
promises between the two distributions.

- Distance. The same hypotheses give common records the same margins, and so the same measure before
  projecting. Projection multiplies by one factor a dataset, capped at 1, so after normalising the
  common records of one dataset all weigh at least what they do in the other. The distance is then
  the larger weight of the two exchanged records, at most 1 / (kappa n).
- An error is the expectation of an indicator, which moves by at most zeta, and the error of a
  literal's complement moves the other way. (The paper's Observation 8 has 2 zeta.)
- The gain of a split is g(a, b) - g(a0, b0) - g(a1, b1) with g(a, b) = 4 a b / (a + b) over the
  weights of both labels, whose partial derivatives 4 (b / (a + b))^2 and 4 (a / (a + b))^2 lie in
  [0, 4]. It can move by almost 8 zeta (the paper's Lemma 15 claims 4 zeta), but an exponential
  choice pays for differences between the moves of two candidates only. In one leaf the parent's
  term cancels, and each candidate's children move by 4 zeta up or down. In two leaves a gain moves
  by at most 4 times the weight that moves in its leaf, together 2 zeta. Both ways the difference is
  at most 8 zeta, as if one gain moved by 4 zeta: Theorem 9 stands.
- The weights of (leaf, label) move by 2 zeta in L1: what leaves and what arrives. So do the
  differences between a leaf's two labels.
"""

from __future__ import annotations

ONE_RULE_ERROR = 1.0
"""Of the error of any 1-Rule, in units of zeta."""

PUBLISHED_ONE_RULE_ERROR = 2.0
"""The same as printed (Observation 8): valid, and twice what is needed."""

SPLIT_GAIN = 4.0
"""Of the Gini gain of any split, up to a constant common to all, in units of zeta."""

LEAF_WEIGHTS = 2.0
"""L1, of the weights of all labels in all leaves together, in units of zeta."""


def smooth_distance(density: float, rows: int) -> float:
    """Return zeta = 1 / (kappa n), the distance between the weights of neighbours."""
    return 1 / (density * rows)
