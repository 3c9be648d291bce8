"""The inner loops of non-private boosting: histograms of residuals and greedy best cuts."""

from __future__ import annotations

import math

import numpy as np

from dprepro.additive.sigmoid import sigmoid
from dprepro.runtime.atomics import add_pair
from dprepro.runtime.kernels import kernel

BLOCK_ROWS = 2048
"""Rows a block: what is held of them stays in the first-level cache."""

_COMPARED_LEAVES = 3
"""Up to so many leaves comparisons of codes, many at a time, are faster than a table."""

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@kernel(fastmath=True, error_model="numpy")
def _derivatives(scores, targets, logistic, residuals, hessians):  # type: ignore[no-untyped-def]
    """Write residuals (minus the gradient) and second derivatives of the loss."""
    if logistic:
        for i in range(scores.shape[0]):
            p = sigmoid(scores[i])
            residuals[i] = targets[i] - p
            hessians[i] = p * (_ONE - p)
    else:
        for i in range(scores.shape[0]):
            residuals[i] = targets[i] - scores[i]
            hessians[i] = _ONE


@kernel()
def _add_table(scores, codes, table):  # type: ignore[no-untyped-def]
    for i in range(scores.shape[0]):
        scores[i] += table[codes[i]]


@kernel()
def _add_steps(scores, codes, leaves, edges, steps, table):  # type: ignore[no-untyped-def]
    """Add to every score the step of its code's leaf; `table` has the step of every code."""
    if leaves > _COMPARED_LEAVES:
        _add_table(scores, codes, table)
        return
    # As int32, like scores: of bytes the result of each comparison would have to be made wide.
    first_cut = np.int32(edges[1]) if leaves > 1 else np.int32(0)
    second_cut = np.int32(edges[2]) if leaves > 2 else np.int32(0)
    last = steps[leaves - 1]
    first, second = steps[0], steps[1] if leaves > 2 else last
    for i in range(scores.shape[0]):
        code = np.int32(codes[i])
        step = second if code < second_cut else last
        scores[i] += first if code < first_cut else step


@kernel()
def _histogram(residuals, hessians, codes, even, odd):  # type: ignore[no-untyped-def]
    """Add (residual, hessian) of every row to its bin.

    Neighbouring rows go to two tables, so that a run of equal codes does not wait for itself.
    """
    pairs = codes.shape[0] // 2
    for j in range(pairs):
        i = 2 * j
        add_pair(even, codes[i], residuals[i], hessians[i])
        add_pair(odd, codes[i + 1], residuals[i + 1], hessians[i + 1])
    if codes.shape[0] % 2:
        last = codes.shape[0] - 1
        add_pair(even, codes[last], residuals[last], hessians[last])


@kernel()
def _residual_histogram(residuals, codes, even, odd):  # type: ignore[no-untyped-def]
    """Add the residual of every row to its bin, as `_histogram` does."""
    pairs = codes.shape[0] // 2
    for j in range(pairs):
        i = 2 * j
        even[codes[i], 0] += residuals[i]
        odd[codes[i + 1], 0] += residuals[i + 1]
    if codes.shape[0] % 2:
        last = codes.shape[0] - 1
        even[codes[last], 0] += residuals[last]


@kernel()
def _score_of(gradient, hessian, ridge):  # type: ignore[no-untyped-def]
    return gradient * gradient / (hessian + ridge) if hessian + ridge > 0 else 0.0


@kernel()
def _best_cut(histogram, counts, start, stop, min_leaf, ridge):  # type: ignore[no-untyped-def]
    """Return (gain, cut) of the best way to cut bins [start, stop) in two; gain 0 if there is none.

    The gain is the drop of the second-order loss: S_L + S_R - S with S = G^2 / (H + ridge).
    """
    gradient, hessian, count = 0.0, 0.0, 0.0
    for b in range(start, stop):
        gradient += histogram[b, 0]
        hessian += histogram[b, 1]
        count += counts[b]
    whole = _score_of(gradient, hessian, ridge)
    best_gain, best_cut = 0.0, -1
    left_g, left_h, left_n = 0.0, 0.0, 0.0
    for b in range(start, stop - 1):
        left_g += histogram[b, 0]
        left_h += histogram[b, 1]
        left_n += counts[b]
        if left_n < min_leaf:
            continue
        if count - left_n < min_leaf:
            break
        left = _score_of(left_g, left_h, ridge)
        gain = left + _score_of(gradient - left_g, hessian - left_h, ridge) - whole
        if gain > best_gain:
            best_gain, best_cut = gain, b + 1
    return best_gain, best_cut


@kernel()
def _grow(histogram, counts, n_bins, max_leaves, min_leaf, ridge, edges):  # type: ignore[no-untyped-def]
    """Cut best-first up to `max_leaves` leaves (Algorithm 1, line 14); return their number.

    ``edges[: leaves + 1]`` receives the ascending bin borders of the leaves.
    """
    edges[0], edges[1] = 0, n_bins
    leaves = 1
    while leaves < max_leaves:
        best_gain, best_cut, best_leaf = 0.0, -1, -1
        for leaf in range(leaves):
            start, stop = edges[leaf], edges[leaf + 1]
            gain, cut = _best_cut(histogram, counts, start, stop, min_leaf, ridge)
            if gain > best_gain:
                best_gain, best_cut, best_leaf = gain, cut, leaf
        if best_leaf < 0:
            break
        for later in range(leaves, best_leaf, -1):
            edges[later + 1] = edges[later]
        edges[best_leaf + 1] = best_cut
        leaves += 1
    return leaves


@kernel()
def _loss(scores, targets, logistic):  # type: ignore[no-untyped-def]
    """Mean log loss or mean squared error."""
    total = 0.0
    for i in range(scores.shape[0]):
        s = float(scores[i])
        if logistic:
            total += max(s, 0.0) - s * targets[i] + math.log1p(math.exp(-abs(s)))
        else:
            total += (targets[i] - s) ** 2
    return total / scores.shape[0]


@kernel(
    "(uint8[:, ::1], float32[::1], uint8[:, ::1], float32[::1], float64, int64[::1], "
    "float64[:, ::1], float64, boolean, int64, int64, float64, int64, int64, float64)"
)
def boost_greedily(  # type: ignore[no-untyped-def]
    codes, targets, held_codes, held_targets, intercept, n_bins, counts,
    learning_rate, logistic, max_leaves, min_leaf, ridge, n_epochs, patience, tolerance,
):  # fmt: skip
    """Cyclic boosting with best cuts (Algorithm 1), stopped early on held-out rows.

    Parameters
    ----------
    codes, held_codes : uint8 (K, n), (K, m)
        Bins of the training and of the held-out rows; m may be 0: then all epochs are run.
    targets, held_targets : float32 (n,), (m,)
        Labels (0/1 for logistic).
    intercept : float
        Score from which all rows start.
    n_bins, counts : int64 (K,), float64 (K, B)
        Bins of each feature, and training rows in each.
    learning_rate, logistic, max_leaves, min_leaf, ridge, n_epochs
        As in `EBMClassifier`.
    patience, tolerance : int, float
        Stop after so many epochs without the held-out loss improving by `tolerance` relatively.

    Returns
    -------
    shapes : float64 (K, B)
        Those of the epoch with the lowest held-out loss.
    epochs : int
        Epochs run to reach them.
    """
    n_features = codes.shape[0]
    shapes = np.zeros(counts.shape)
    best_shapes, best_epoch = shapes.copy(), 0
    scores = np.full(targets.shape[0], intercept, np.float32)
    held_scores = np.full(held_targets.shape[0], intercept, np.float32)
    holding = held_targets.shape[0] > 0
    best_loss = _loss(held_scores, held_targets, logistic) if holding else 0.0
    table, steps = np.zeros(counts.shape[1], np.float32), np.zeros(max_leaves, np.float32)
    residuals, hessians = np.empty(BLOCK_ROWS, np.float32), np.empty(BLOCK_ROWS, np.float32)
    even, odd = np.zeros((counts.shape[1], 2)), np.zeros((counts.shape[1], 2))
    edges = np.zeros(max_leaves + 1, np.int64)
    previous, leaves = 0, 1
    for epoch in range(1, n_epochs + 1):
        for k in range(n_features):
            even[:] = 0.0
            odd[:] = 0.0
            for start in range(0, scores.shape[0], BLOCK_ROWS):
                stop = min(start + BLOCK_ROWS, scores.shape[0])
                block, size = scores[start:stop], stop - start
                _add_steps(block, codes[previous, start:stop], leaves, edges, steps, table)
                _derivatives(block, targets[start:stop], logistic, residuals, hessians)
                if logistic:
                    _histogram(residuals[:size], hessians[:size], codes[k, start:stop], even, odd)
                else:
                    _residual_histogram(residuals[:size], codes[k, start:stop], even, odd)
            even += odd
            if not logistic:
                for b in range(counts.shape[1]):
                    even[b, 1] = counts[k, b]  # second derivatives are 1: their sums are exact
            leaves = _grow(even, counts[k], n_bins[k], max_leaves, min_leaf, ridge, edges)
            for leaf in range(leaves):
                first, last = edges[leaf], edges[leaf + 1]
                weight = even[first:last, 1].sum() + ridge
                step = learning_rate * even[first:last, 0].sum() / weight if weight > 0 else 0.0
                steps[leaf] = step
                for b in range(first, last):
                    table[b] = step
                    shapes[k, b] += step
            _add_steps(held_scores, held_codes[k], leaves, edges, steps, table)
            previous = k
        if holding:
            loss = _loss(held_scores, held_targets, logistic)
            if loss < best_loss * (1 - tolerance):
                best_loss, best_epoch = loss, epoch
                for k in range(n_features):
                    for b in range(shapes.shape[1]):
                        best_shapes[k, b] = shapes[k, b]
            elif epoch - best_epoch >= patience:
                return best_shapes, best_epoch
    if holding:
        return best_shapes, best_epoch
    return shapes, n_epochs
