"""Growing and applying one regression tree, in whole numbers of `UNIT`; gains are in `GAIN_UNIT`.

Sums over rows are sums of integers. What is computed from them uses floating-point operations that
are correctly rounded everywhere, in the order written here, and is rounded down to an integer.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.compiled import kernel
from dprepro.exact.kernels import exponential_choice

_NEVER = -(2**62)
"""Below all gains."""

UNIT = 2.0**-24
"""What a whole number counts in, of targets scaled to [-1, 1]."""

GAIN_UNIT = 2.0**-20
"""What a gain in whole numbers counts in."""


@kernel()
def _histogram(codes, gradients, rows, starts, histogram):  # type: ignore[no-untyped-def]
    """Set (sum of gradients, rows) of every bin of every feature."""
    histogram[:] = 0
    for i in rows:
        for j in range(codes.shape[1]):
            b = starts[j] + codes[i, j]
            histogram[b, 0] += gradients[i]
            histogram[b, 1] += 1


@kernel()
def _sum_of(values, members):  # type: ignore[no-untyped-def]
    total = 0
    for i in members:
        total += values[i]
    return total


@kernel()
def _feature_of(starts, place):  # type: ignore[no-untyped-def]
    """Return the feature of the bin at `place` in the list of all bins."""
    j = 0
    while starts[j + 1] <= place:
        j += 1
    return j


@kernel()
def _largest_at(values):  # type: ignore[no-untyped-def]
    """Return the first place of the largest number."""
    best = 0
    for i in range(values.size):
        if values[i] > values[best]:
            best = i
    return best


@kernel(error_model="numpy")
def _score(gradient, rows, ridge):  # type: ignore[no-untyped-def]
    """Return S^2 / (n + lambda), float64; S is in units of `UNIT`."""
    total = gradient * UNIT
    return total * total / (rows + ridge) if rows > 0 else 0.0


@kernel()
def _in_units(gain):  # type: ignore[no-untyped-def]
    return np.int64(math.floor(gain / GAIN_UNIT))


@kernel(
    "(int64[:, ::1], int64[::1], float64, int64, int64, boolean[::1], int64[::1], int64[::1])",
    error_model="numpy",
)
def split_gains(histogram, starts, ridge, min_rows, floor, splittable, gains, cuts):  # type: ignore[no-untyped-def]
    """Write the gains of all possible splits and their bins; return how many there are.

    The gain of "codes up to bin b go left" is, in units of `GAIN_UNIT`,
    floor(S_L^2 / (n_L + ridge) + S_R^2 / (n_R + ridge)) - floor(S^2 / (n + ridge))
    (Li et al. 2020, equation 3, with the parent's term, which changes no choice between the splits
    of one node). `sensitivity.gain_sensitivity` bounds what a row does to the first term. A split
    is possible if both sides have `min_rows` rows, its gain is above `floor` and its feature is
    `splittable`; a feature without a possible split becomes so no more.
    """
    found = 0
    for j in range(starts.size - 1):
        if not splittable[j]:
            continue
        first, last = starts[j], starts[j + 1] - 1
        gradient, rows = 0, 0
        for b in range(first, last + 1):
            gradient += histogram[b, 0]
            rows += histogram[b, 1]
        whole = _in_units(_score(gradient, rows, ridge))
        left_gradient, left_rows, before = 0, 0, found
        for b in range(first, last):
            left_gradient += histogram[b, 0]
            left_rows += histogram[b, 1]
            right_rows = rows - left_rows
            if left_rows < min_rows or right_rows < min_rows:
                continue
            left = _score(left_gradient, left_rows, ridge)
            gain = _in_units(left + _score(gradient - left_gradient, right_rows, ridge)) - whole
            if gain > floor:
                gains[found], cuts[found] = gain, b
                found += 1
        splittable[j] = found > before
    return found


@kernel()
def _partition(codes, feature, cut, rows):  # type: ignore[no-untyped-def]
    """Move rows with codes up to `cut` to the front, in order; return their number."""
    left, right = 0, 0
    others = np.empty_like(rows)
    for i in rows:
        if codes[i, feature] <= cut:
            rows[left] = i
            left += 1
        else:
            others[right] = i
            right += 1
    rows[left:] = others[:right]
    return left


@kernel(
    "(uint8[:, ::1], int64[::1], int64[::1], uint32[::1], uint64, int64, float64, int64, int64, "
    "int64, boolean)",
)
def grow(  # type: ignore[no-untyped-def]
    codes, gradients, starts, state, mantissa, shift, ridge, max_depth, max_leaves, min_rows,
    complete,
):  # fmt: skip
    """Grow a tree whose splits are exponential choices among all cuts of all features.

    Parameters
    ----------
    codes, gradients : uint8 (m, K), int64 (m,)
        The rows that train this tree.
    starts : int64 (K + 1,)
        Where the bins of each feature start in the list of all bins.
    state : uint32 (33,)
        See `exact.Bits`.
    mantissa, shift : uint64, int
        s = mantissa 2^-shift of P(split) ~ exp(gain / s), in units of `GAIN_UNIT`.
    ridge : float
        lambda.
    max_depth, max_leaves, min_rows : int
        Limits of the tree, and rows that a split must leave on either side.
    complete : bool
        True: every node above `max_depth` is split, whatever rows it holds, in the order in which
        nodes arise. False: next is the leaf with the largest gain, until none has a positive one.

    Returns
    -------
    feature, cut, left : int64 (nodes,)
        Rows with ``codes[feature] <= cut`` go to node `left`, others to ``left + 1``. Feature -1
        marks a leaf.
    gradient, rows : int64 (nodes,)
        Sum of gradients and number of rows in each node: exact, private.
    """
    n_nodes = 2 * max_leaves - 1
    feature, cut = np.full(n_nodes, -1, np.int64), np.zeros(n_nodes, np.int64)
    left, depth = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    first, last = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    gradient = np.zeros(n_nodes, np.int64)
    chosen, priority = np.zeros(n_nodes, np.int64), np.full(n_nodes, _NEVER)
    splittable = np.ones((n_nodes, starts.size - 1), np.bool_)
    histogram = np.empty((starts[-1], 2), np.int64)
    gains, cuts = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    order = np.arange(gradients.size)
    last[0] = gradients.size
    floor = _NEVER if complete else 0
    fresh, nodes = 0, 1
    while True:
        for node in range(fresh, nodes):
            members = order[first[node] : last[node]]
            gradient[node] = _sum_of(gradients, members)
            if depth[node] == max_depth or nodes == n_nodes:
                continue
            _histogram(codes, gradients, members, starts, histogram)
            found = split_gains(
                histogram, starts, ridge, min_rows, floor, splittable[node], gains, cuts
            )
            if found > 0:
                chosen[node] = cuts[exponential_choice(state, mantissa, shift, gains[:found])]
                priority[node] = -node if complete else gains[_largest_at(gains[:found])]
        node = _largest_at(priority)
        if nodes == n_nodes or priority[node] == _NEVER:
            break
        priority[node] = _NEVER
        feature[node] = _feature_of(starts, chosen[node])
        cut[node] = chosen[node] - starts[feature[node]]
        left[node] = nodes
        middle = first[node] + _partition(
            codes, feature[node], cut[node], order[first[node] : last[node]]
        )
        first[nodes], last[nodes] = first[node], middle
        first[nodes + 1], last[nodes + 1] = middle, last[node]
        depth[nodes : nodes + 2] = depth[node] + 1
        splittable[nodes : nodes + 2] = splittable[node]
        fresh, nodes = nodes, nodes + 2
    return feature[:nodes], cut[:nodes], left[:nodes], gradient[:nodes], (last - first)[:nodes]


@kernel(
    "(int64[::1], uint8[:, ::1], const(int64[::1]), const(int64[::1]), const(int64[::1]), "
    "const(int64[::1]))",
)
def add_values(scores, codes, feature, cut, left, values):  # type: ignore[no-untyped-def]
    """Add to every row's score, int64 (n,), the value of its leaf; `codes` is uint8 (n, K)."""
    for i in range(scores.size):
        node = 0
        while feature[node] >= 0:
            node = left[node] + (codes[i, feature[node]] > cut[node])
        scores[i] += values[node]
