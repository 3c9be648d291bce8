"""Growing and applying one regression tree; deterministic, all randomness is handed in."""

from __future__ import annotations

import math

import numpy as np

from dprepro.compiled import kernel


@kernel()
def _histogram(codes, gradients, rows, starts, histogram):  # type: ignore[no-untyped-def]
    """Set (sum of gradients, rows) of every bin of every feature."""
    histogram[:] = 0.0
    for i in rows:
        for j in range(codes.shape[1]):
            b = starts[j] + codes[i, j]
            histogram[b, 0] += gradients[i]
            histogram[b, 1] += 1.0


@kernel()
def _sum_of(values, members):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in members:
        total += values[i]
    return total


@kernel()
def _first_above(ascending, value):  # type: ignore[no-untyped-def]
    """Return the first place whose number is above `value`, or the size if there is none."""
    low, high = 0, ascending.size
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


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
    return gradient * gradient / (rows + ridge) if rows > 0 else 0.0


@kernel(
    "(float64[:, ::1], int64[::1], float64, int64, float64, boolean[::1], float64[::1])",
    error_model="numpy",
)
def split_gains(histogram, starts, ridge, min_rows, floor, splittable, gains):  # type: ignore[no-untyped-def]
    """Write the gain of "codes up to b go left" for every bin b; return the largest.

    G_L^2 / (n_L + ridge) + G_R^2 / (n_R + ridge) - G^2 / (n + ridge)  (Li et al. 2020, equation 3,
    with the parent's term, which changes no choice between the splits of one node). Minus infinity
    where a side has fewer than `min_rows` rows, the gain is not above `floor`, or the feature is
    not `splittable`; a feature without a gain becomes so no more.
    """
    best = -np.inf
    for j in range(splittable.size):
        first, last = starts[j], starts[j + 1] - 1
        gains[first : last + 1] = -np.inf
        if not splittable[j]:
            continue
        gradient, rows = 0.0, 0.0
        for b in range(first, last + 1):
            gradient += histogram[b, 0]
            rows += histogram[b, 1]
        whole = _score(gradient, rows, ridge)
        left_gradient, left_rows, found = 0.0, 0.0, False
        for b in range(first, last):
            left_gradient += histogram[b, 0]
            left_rows += histogram[b, 1]
            right_rows = rows - left_rows
            if left_rows < min_rows or right_rows < min_rows:
                continue
            left = _score(left_gradient, left_rows, ridge)
            gain = left + _score(gradient - left_gradient, right_rows, ridge) - whole
            if gain > floor:
                gains[b] = gain
                best, found = max(best, gain), True
        splittable[j] = found
    return best


@kernel("(float64[::1], float64, float64, float64, float64[::1])")
def choose(gains, best, scale, uniform, running):  # type: ignore[no-untyped-def]
    """Return a candidate with probability proportional to exp(gain / scale).

    The first at which the running sum exceeds `uniform` times the total. `best` is the largest
    gain, finite; `running` is scratch space of the size of `gains`.
    """
    total, last = 0.0, -1
    for b in range(gains.size):
        if gains[b] > -np.inf:
            total += math.exp((gains[b] - best) / scale)
            last = b
        running[b] = total
    # The product can round up to the total.
    return min(_first_above(running, uniform * total), last)


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
    "(uint8[:, ::1], float64[::1], int64[::1], float64[::1], float64, float64, int64, int64, "
    "int64, boolean)",
)
def grow(  # type: ignore[no-untyped-def]
    codes, gradients, starts, uniforms, scale, ridge, max_depth, max_leaves, min_rows, complete,
):  # fmt: skip
    """Grow a tree whose splits are exponential choices among all cuts of all features.

    Parameters
    ----------
    codes, gradients : uint8 (m, K), float64 (m,)
        The rows that train this tree.
    starts : int64 (K + 1,)
        Where the bins of each feature start in the list of all bins.
    uniforms : float64 (2 * max_leaves - 1,)
        One draw from [0, 1) a node.
    scale : float
        s of P(split) ~ exp(gain / s).
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
    gradient, rows : float64 (nodes,)
        Sum of gradients and number of rows in each node: exact, private.
    """
    n_nodes = 2 * max_leaves - 1
    feature, cut = np.full(n_nodes, -1, np.int64), np.zeros(n_nodes, np.int64)
    left, depth = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    first, last = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    gradient = np.zeros(n_nodes)
    chosen, priority = np.zeros(n_nodes, np.int64), np.full(n_nodes, -np.inf)
    splittable = np.ones((n_nodes, starts.size - 1), np.bool_)
    histogram = np.empty((starts[-1], 2))
    gains, running = np.empty(starts[-1]), np.empty(starts[-1])
    order = np.arange(gradients.size)
    last[0] = gradients.size
    floor = -np.inf if complete else 0.0
    fresh, nodes = 0, 1
    while True:
        for node in range(fresh, nodes):
            members = order[first[node] : last[node]]
            gradient[node] = _sum_of(gradients, members)
            if depth[node] == max_depth or nodes == n_nodes:
                continue
            _histogram(codes, gradients, members, starts, histogram)
            best = split_gains(histogram, starts, ridge, min_rows, floor, splittable[node], gains)
            if best > -np.inf:
                chosen[node] = choose(gains, best, scale, uniforms[node], running)
                priority[node] = -node if complete else best
        node = _largest_at(priority)
        if nodes == n_nodes or priority[node] == -np.inf:
            break
        priority[node] = -np.inf
        feature[node] = _first_above(starts, chosen[node]) - 1
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
    "(float64[::1], uint8[:, ::1], const(int64[::1]), const(int64[::1]), const(int64[::1]), "
    "const(float64[::1]))",
)
def add_values(scores, codes, feature, cut, left, values):  # type: ignore[no-untyped-def]
    """Add to every row's score, float64 (n,), the value of its leaf; `codes` is uint8 (n, K)."""
    for i in range(scores.size):
        node = 0
        while feature[node] >= 0:
            node = left[node] + (codes[i, feature[node]] > cut[node])
        scores[i] += values[node]
