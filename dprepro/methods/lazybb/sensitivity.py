"""Robust sensitivities of what LazyBB answers, under replace-one with n and kappa public.

Compare two neighbouring datasets over the n + 1 records of both, not over positions: a record keeps
its weight's name when another is exchanged. zeta is half the L1 distance that boosting promises
between the two weightings: the total variation distance, as far as both add up to 1.

- Weights are whole numbers of units 1 / T, T = `TOTAL`. `lazybb.weights` proves three things of
  them. One dataset gives all common records at least what they weigh in the other. No weight
  exceeds C = floor(T / (kappa n)). All weights add up to at most T and to more than T - n.
- Distance. The same hypotheses give common records the same margins, and so the same measure before
  projecting. Let dataset 1, of sum S, be the one in which common records weigh more, S' the other's
  sum, and w, w' the weights of the records that only 1 and only 2 has. Common records move by
  (S - w) - (S' - w') in all. So the L1 distance is S - S' + 2 w' < n + 2 C, and
  zeta = (C + n / 2) / T. The paper's 1 / (kappa n) is what is left without rounding; n / 2 units
  are kappa n^2 / 2^61 of it, a millionth for 2 million rows and kappa = 1/2.
- An error is the weight of the rows that a rule gets wrong. The errors of two rules move apart by
  at most the L1 distance, 2 zeta, as if one moved by zeta. (The paper's Observation 8 has 2 zeta.)
- The gain of a split is g(a, b) - g(a0, b0) - g(a1, b1) with g(a, b) = 4 a b / (a + b) over the
  weights of both labels, whose partial derivatives 4 (b / (a + b))^2 and 4 (a / (a + b))^2 lie in
  [0, 4]. It can move by almost 8 zeta (the paper's Lemma 15 claims 4 zeta), but an exponential
  choice pays for differences between the moves of two candidates only. In one leaf the parent's
  term cancels, and each candidate's children move up by at most 4 times the weight that is gained
  and down by at most 4 times what is lost. In two leaves a gain moves by at most 4 times the weight
  that moves in its leaf. Gained and lost weight are together the L1 distance, 2 zeta, and so is the
  weight that moves in two leaves. Both ways the difference is at most 8 zeta, as if one gain moved
  by 4 zeta: Theorem 9 stands.
- The weights of (leaf, label) move by 2 zeta in L1. So do the differences between a leaf's two
  labels.

Rounding adds to what is charged. An answer is rounded down to whole numbers of a public unit, 2^d
weight units; see `dropped_bits`. That moves an error or a gain by less than one such unit up or
down, as if its sensitivity were one unit larger, and each of the 2 L weights of L leaves by less
than one unit. What else a gain costs is `GAIN_ROUNDING`.

Choices about weighted rows, where a neighbour may also move the weights.

A boosting round hands its learner a dataset and a distribution over it. Neighbouring datasets then
come with distributions of total variation distance at most zeta, and what a utility can move by
over both is its *robust sensitivity* (Asadi et al. 2022, section 2.4). Sensitivities here are
robust ones: zeta is in them, and nothing divides by it again.
"""

from __future__ import annotations

import math

TOTAL_BITS = 60
TOTAL = 2**TOTAL_BITS
"""What all rows of a table weigh together, at most: weights are whole numbers, int64."""

ONE_RULE_ERROR = 1.0
"""Of the error of any 1-Rule, in units of zeta."""

PUBLISHED_ONE_RULE_ERROR = 2.0
"""The same as printed (Observation 8): valid, and twice what is needed."""

SPLIT_GAIN = 4.0
"""Of the Gini gain of any split, up to a constant common to all, in units of zeta."""

GAIN_ROUNDING = 2**12
"""By how many weight units a gain's sensitivity grows since g is worked out in doubles.

g = 4 a b / (a + b) from whole a and b takes five operations that round, each off by a factor within
1 +- u, u = 2^-53: a, b and a + b become doubles, then a product and a quotient. The result is
within 5.01 u g of g, and is then rounded down to a whole number. No g exceeds a + b, and those of
the two parts add up to no more, so a gain lies within 2 * 5.01 u T = 1283 of the exact one, and 3
for what is rounded down. Two gains that both change their error move apart by at most 4 * 1286:
half of that is 2572.
"""

LEAF_WEIGHTS = 2.0
"""L1, of the weights of all labels in all leaves together, in units of zeta."""

_SCALE_BITS = 52
"""Noise has a scale of at most 2^52 units: `sampling.sampler` draws below 2^53."""


def largest_weight(density: float, rows: int) -> int:
    """Return C = floor(T / (kappa n)), the most that a row weighs, in units of 1 / T."""
    numerator, denominator = float(density).as_integer_ratio()
    return TOTAL * denominator // (numerator * rows)


def smooth_distance(density: float, rows: int) -> float:
    """Return zeta = (C + n / 2) / T, the distance between the weights of neighbours."""
    return (largest_weight(density, rows) + rows / 2) / TOTAL


def dropped_bits(scale: float) -> int:
    """Return d: noise of that scale can be drawn on whole numbers of 2^d weight units.

    0 unless the noise is large, as the weights of all rows go: above 2^-8.
    """
    return max(0, math.frexp(scale)[1] + TOTAL_BITS - _SCALE_BITS)


def unit_of(dropped: int) -> float:
    """Return the unit of an answer that dropped so many bits: 2^d / T."""
    return math.ldexp(1.0, dropped - TOTAL_BITS)


def error_sensitivity(zeta: float, unit: float) -> float:
    """Return the sensitivity of the error of a 1-Rule, rounded down to that unit."""
    return ONE_RULE_ERROR * zeta + unit


def gain_sensitivity(zeta: float, unit: float) -> float:
    """Return the sensitivity of the gain of a split, rounded down to that unit."""
    return SPLIT_GAIN * zeta + GAIN_ROUNDING / TOTAL + unit


def leaf_sensitivity(zeta: float, unit: float, leaves: int) -> float:
    """Return the L1 sensitivity of the weights of both labels in so many leaves."""
    return LEAF_WEIGHTS * zeta + 2 * leaves * unit
