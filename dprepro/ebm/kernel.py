"""Boosting, step by step, with given cuts and noise: deterministic.

Layout: bin codes are uint8 and lie feature by feature; a row's score and target are float32, its
residual a whole number. No loop has a table look-up, so that LLVM vectorises it. A pass applies one
step's update and sums the next step's residuals, in three short loops over blocks that stay in the
first-level cache, 14 bytes a row. Sums are exact and do not depend on the order of the rows: see
`exact_sums`. Logistic boosting with at most 3 leaves has a quicker form of the same pass: see
`odds_kernel`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.additive.exact_sums import BLOCK_ROWS, or_zero, step_scale
from dprepro.additive.sigmoid import sigmoid
from dprepro.compiled import kernel
from dprepro.ebm.odds_kernel import ODDS_LIMIT, odds_pass, scores_from, start_odds

NEVER = np.uint8(255)
"""Padding for unused cuts; what lies above it gets an increment of 0."""

_ZERO = np.float32(0.0)

# Half a unit in the last place of float32, relative.
_HALF_UNIT = 2.0**-24

# error_model="numpy": the default checks each division for zero, which stops vectorisation.
_exact: Any = {"error_model": "numpy"}


@kernel(**_exact)
def _add_update(scores, codes, cuts, increments, first):  # type: ignore[no-untyped-def]
    """Add `first` to every score and increments[j] to those whose code reaches cuts[j]."""
    for j in range(0, cuts.shape[0], 2):
        cut_a, cut_b = cuts[j], cuts[j + 1]
        add_a, add_b = increments[j], increments[j + 1]
        base = first if j == 0 else _ZERO
        for i in range(scores.shape[0]):
            scores[i] += (
                base
                + (add_a if codes[i] >= cut_a else _ZERO)
                + (add_b if codes[i] >= cut_b else _ZERO)
            )


@kernel(**_exact)
def _residuals(scores, targets, logistic, bound, scale, out):  # type: ignore[no-untyped-def]
    """Write target minus prediction to `out`, in units of 1 / `scale`, truncated towards zero."""
    if logistic:
        for i in range(scores.shape[0]):
            out[i] = np.int32(or_zero(targets[i] - sigmoid(scores[i])) * scale)
    else:
        for i in range(scores.shape[0]):
            residual = or_zero(targets[i] - scores[i])
            out[i] = np.int32(min(max(residual, -bound), bound) * scale)


@kernel(**_exact)
def _unbounded_residuals(scores, targets, scale, out):  # type: ignore[no-untyped-def]
    """Do what `_residuals` does, where int32 may not hold them."""
    for i in range(scores.shape[0]):
        out[i] = np.trunc(np.float64(targets[i] - scores[i]) * scale)


@kernel(**_exact, fastmath={"reassoc"})
def _add_sums(residuals, codes, cuts, sums):  # type: ignore[no-untyped-def]
    """Add to sums[0] all residuals, to sums[j + 1] those of rows whose code reaches cuts[j].

    Residuals are whole numbers, int32 or float64: any order of additions gives the same.
    """
    number = residuals.dtype.type
    none = number(0)
    for j in range(0, cuts.shape[0], 2):
        cut_a, cut_b = cuts[j], cuts[j + 1]
        total, sum_a, sum_b = none, none, none
        for i in range(codes.shape[0]):
            residual = residuals[i]
            total = number(total + residual)
            sum_a = number(sum_a + (residual if codes[i] >= cut_a else none))
            sum_b = number(sum_b + (residual if codes[i] >= cut_b else none))
        sums[0] += total if j == 0 else none
        sums[j + 1] += sum_a
        sums[j + 2] += sum_b


@kernel(
    "(float32[::1], float32[::1], uint8[::1], Tuple((uint8[::1], float32[::1], float32)), "
    "uint8[::1], uint8[::1], boolean, float32, float64, Tuple((int32[::1], float64[::1])), "
    "float64[::1])",
    **_exact,
)
def _fused_pass(  # type: ignore[no-untyped-def]
    scores, targets, previous, update, current, cuts, logistic, bound, scale, buffers, sums
):
    """Apply the last step's update, form residuals, and sum them per cut of this step's feature.

    `sums` are whole numbers in units of 1 / `scale`.
    """
    last_cuts, increments, first = update
    single, double = buffers
    sums[:] = 0.0
    for start in range(0, scores.shape[0], BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, scores.shape[0])
        block, labels = scores[start:stop], targets[start:stop]
        _add_update(block, previous[start:stop], last_cuts, increments, first)
        if logistic or bound < np.inf:
            _residuals(block, labels, logistic, bound, np.float32(scale), single[: block.size])
            _add_sums(single[: block.size], current[start:stop], cuts, sums)
        else:
            _unbounded_residuals(block, labels, scale, double[: block.size])
            _add_sums(double[: block.size], current[start:stop], cuts, sums)


@kernel()
def _release_leaves(sums, noise, counts, cuts, n_leaves, rate, released, values):  # type: ignore[no-untyped-def]
    """Write noisy leaf sums to `released`, averages to `values`: Algorithm 2, lines 16 to 18.

    Leaf l starts at cuts[l - 1]. `rate` is the learning rate in the unit of `sums`, whose
    differences are exact.
    """
    for leaf in range(n_leaves):
        inner = sums[leaf + 1] if leaf + 1 < n_leaves else 0.0
        start = cuts[leaf - 1] if leaf > 0 else 0
        stop = cuts[leaf] if leaf + 1 < n_leaves else counts.size
        count = counts[start:stop].sum()
        total = rate * (sums[leaf] - inner) + noise[leaf]
        released[leaf] = total
        values[leaf] = total / count if count > 0 else 0.0


@kernel()
def _add_to_shape(shape, cuts, values, n_leaves, increments):  # type: ignore[no-untyped-def]
    """Add a leaf's value to its bins (lines 19 to 22); write the jumps at the cuts."""
    increments[:] = 0
    shape += values[0]
    for leaf in range(1, n_leaves):
        jump = values[leaf] - values[leaf - 1]
        increments[leaf - 1] = jump
        shape[cuts[leaf - 1] :] += jump


@kernel()
def _odds_factors(values, n_leaves, factors):  # type: ignore[no-untyped-def]
    """Write what the odds of a row of either label are multiplied by, (2, 3) by label and leaf."""
    for leaf in range(3):
        value = values[min(leaf, n_leaves - 1)]
        factors[0, leaf], factors[1, leaf] = math.exp(-value), math.exp(value)


@kernel()
def _rounding(top, bottom, new_top, new_bottom, n_cuts):  # type: ignore[no-untyped-def]
    """Return by how much more a step's rounding lets scores stray from the sum of the functions.

    In units of what either sum can reach, C cuts round: 1 + 2C for the increments (a jump is at
    most two leaf values), and at most 5 a pair of cuts as they are added to each other and to the
    score. Odds round twice a step.
    """
    reached = 1 + max(top, -bottom) + max(new_top, -new_bottom)
    return _HALF_UNIT * (5 * n_cuts + 2) * reached


@kernel("(float64, float64)")
def largest_residual(highest, lowest):  # type: ignore[no-untyped-def]
    """Return an upper bound of |y - sigmoid(F)| over y in {0, 1} and lowest <= F <= highest.

    It is sigmoid(max(highest, -lowest)); the last term is what `sigmoid` itself is off by.
    """
    return min(1.0, 1.0 / (1.0 + math.exp(-max(highest, -lowest))) + 3e-7)


@kernel(
    "(uint8[:, ::1], float32[::1], float32[::1], uint8[:, ::1], float64[:, ::1], float64[:, "
    "::1], int64[::1], float64, boolean, float32, boolean)",
)
def boost(  # type: ignore[no-untyped-def]
    codes, targets, scores, cuts, noise, counts, n_bins, learning_rate, logistic, bound, adaptive
):
    """Boost feature by feature with given random cuts and noise (Algorithm 2, lines 11 to 28).

    Parameters
    ----------
    codes : uint8 (K, n)
        Bin of every row, feature by feature; values below ``n_bins[k]``.
    targets, scores : float32 (n,)
        Labels (0/1 for logistic) and initial scores; `scores` is updated in place by all but the
        last step. Ascending labels and at most 3 leaves make the fast pass possible.
    cuts : uint8 (T, C)
        For step t on feature t mod K, the ascending first bins of leaves 2, 3, ...; C is even, at
        least 2, and unused places hold `NEVER`.
    noise : float64 (T, L)
        Noise to add to the L leaf sums, after multiplication by the learning rate. If `adaptive`,
        it is scaled down first, see there.
    counts : float64 (K, B)
        Noisy bin counts, the denominators.
    n_bins : int64 (K,)
        Bins of each feature; a step uses min(L, n_bins) leaves.
    learning_rate : float
        eta.
    logistic : bool
        Residual y - sigmoid(score), else y - score clipped to [-bound, bound].
    bound : float32
        See `logistic`; inf leaves residuals as they are.
    adaptive : bool
        For logistic: multiply the noise of each step by the largest residual that any row could
        have, `largest_residual` of the shape functions so far, all rounding of float32 scores
        allowed for. The functions are released, so the factor is public, and noise over
        sensitivity stays what it was.

    Returns
    -------
    shapes : float64 (K, B)
        The shape function of every feature, one value a bin.
    noise_factors : float64 (T,)
        What the noise of each step was multiplied by: 1 unless `adaptive`.
    leaf_sums : float64 (T, L)
        The noisy leaf sums; 0 in places of leaves that a step does not have.
    """
    n_features = codes.shape[0]
    shapes = np.zeros(counts.shape)
    noise_factors, leaf_sums = np.ones(cuts.shape[0]), np.zeros(noise.shape)
    sums = np.zeros(cuts.shape[1] + 1)
    values = np.zeros(noise.shape[1])
    buffers = np.empty(BLOCK_ROWS, np.int32), np.empty(BLOCK_ROWS)
    scale = step_scale(1.0 if logistic else bound)
    increments, first = np.zeros(cuts.shape[1], np.float32), _ZERO
    highest, lowest, drift = np.zeros(n_features), np.zeros(n_features), 0.0
    in_odds = logistic and cuts.shape[1] == 2
    odds = np.empty(targets.size if in_odds else 0, np.float32)
    n_negative, reach = start_odds(targets, scores, odds)
    in_odds = in_odds and n_negative >= 0 and reach <= ODDS_LIMIT
    odds_factors = np.ones((2, 3), np.float32)
    below = cuts - np.uint8(1)
    for step in range(cuts.shape[0]):
        k = step % n_features
        # Row 0 and no increments stand for "no update yet" in the first step.
        previous = (step - 1) % n_features if step > 0 else 0
        earlier = max(step - 1, 0)
        top, bottom = highest.sum(), lowest.sum()
        if in_odds and reach + max(top, -bottom) > ODDS_LIMIT:
            in_odds = False
            scores_from(odds, n_negative, scores)
        if in_odds:
            odds_pass(
                odds, n_negative, codes[previous], below[earlier], odds_factors,
                codes[k], below[step], sums,
            )  # fmt: skip
        else:
            update = (cuts[earlier], increments, first)
            _fused_pass(
                scores, targets, codes[previous], update, codes[k], cuts[step],
                logistic, bound, scale, buffers, sums,
            )  # fmt: skip
        n_leaves = min(noise.shape[1], n_bins[k])
        shape = shapes[k, : n_bins[k]]
        if adaptive:
            noise_factors[step] = largest_residual(top + drift, bottom - drift)
        _release_leaves(
            sums, noise_factors[step] * noise[step], counts[k, : n_bins[k]], cuts[step], n_leaves,
            learning_rate / scale, leaf_sums[step], values,
        )  # fmt: skip
        _add_to_shape(shape, cuts[step], values, n_leaves, increments)
        first = np.float32(values[0])
        _odds_factors(values, n_leaves, odds_factors)
        highest[k], lowest[k] = shape.max(), shape.min()
        drift += _rounding(top, bottom, highest.sum(), lowest.sum(), cuts.shape[1])
    if in_odds:
        scores_from(odds, n_negative, scores)
    return shapes, noise_factors, leaf_sums
