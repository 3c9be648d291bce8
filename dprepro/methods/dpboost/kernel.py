"""Growing and applying one regression tree, in whole numbers of `UNIT`; gains are in `GAIN_UNIT`.

Targets, scores and leaf values lie on a public grid, so sums over rows are sums of integers: exact,
in any order. What is computed from them uses floating-point operations that are correctly rounded
everywhere, in the order written here, and is rounded down to an integer.

A node has many more cuts than rows that tell them apart: between two bins that hold rows, all cuts
have one gain. Such a *run* of cuts is computed once.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.privacy.sampling.exact_noise import exponential_choice_of_runs
from dprepro.runtime.kernels import kernel

_NEVER = -(2**62)
"""Below all gains."""

UNIT = 2.0**-24
"""What a whole number counts in, of targets scaled to [-1, 1]."""

GAIN_UNIT = 2.0**-20
"""What a gain in whole numbers counts in."""

LARGEST_GRADIENT = 2**33
"""Gradients are smaller than this, in units of `UNIT`: `_bin_sums` counts rows in the same word."""

_COUNT_BITS = 15
_CHUNK = 2 ** (_COUNT_BITS - 1)
_COUNTS = 2**_COUNT_BITS - 1

_BINS, _GROUP = 256, 8

_FEATURE, _LEFT = 8, 32
_CUTS, _FEATURES = 2**_FEATURE - 1, 2 ** (_LEFT - _FEATURE) - 1
"""A node's word: see `pack_tree`."""

_BLOCK = 1024
"""Rows a block: what is held of them stays in the first-level cache while tree follows tree."""

LARGEST = 2**52
"""Released values are clipped to so many units: a score of 2,000 trees still fits an int64."""


@kernel()
def _bin_sums(codes, members, packed, cells, sums, rows):  # type: ignore[no-untyped-def]
    """Add the sum of gradients, and the number of rows, of each code to `sums` and `rows`.

    `packed` is 2^15 g + 1 of every member, so that one addition counts both: at most 2^14 rows add
    up to 2^15 S + n with |S| < 2^47 and n < 2^15. `cells` holds zeros before and after.
    """
    for start in range(0, members.size, _CHUNK):
        for i in range(start, min(start + _CHUNK, members.size)):
            cells[codes[members[i]]] += packed[i]
        for first in range(0, _BINS, _GROUP):
            found = 0
            for b in range(first, first + _GROUP):
                found |= cells[b]
            if found != 0:
                for b in range(first, first + _GROUP):
                    sums[b] += cells[b] >> _COUNT_BITS
                    rows[b] += cells[b] & _COUNTS
                    cells[b] = 0


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


@kernel("(int64[::1], int64[::1], int64, int64, float64, int64[::1])", error_model="numpy")
def gains_of(left_gradients, left_rows, gradient, rows, ridge, gains):  # type: ignore[no-untyped-def]
    """Write the gains of cuts with these sums on their left side, of a node with these sums.

    The gain is, in units of `GAIN_UNIT`,
    floor(S_L^2 / (n_L + ridge) + S_R^2 / (n_R + ridge)) - floor(S^2 / (n + ridge))
    (Li et al. 2020, equation 3, with the parent's term, which changes no choice between the splits
    of one node). `sensitivity.gain_sensitivity` bounds what a row does to the first term.
    """
    whole = _in_units(_score(gradient, rows, ridge))
    for i in range(gains.size):
        left = _score(left_gradients[i], left_rows[i], ridge)
        right = _score(gradient - left_gradients[i], rows - left_rows[i], ridge)
        gains[i] = _in_units(left + right) - whole


@kernel()
def _runs_of_feature(sums, rows, first, last, cuts, lengths, left_gradients, left_rows, found):  # type: ignore[no-untyped-def]
    """Append the runs of the cuts `first` .. `last` - 1 to the `found` runs there are.

    A run starts at the first cut, or at a bin that holds rows. `sums` and `rows` are of the
    feature's bins, and hold zeros afterwards.
    """
    cut, gradient, count = first, 0, 0
    for b in range(last - first + 1):
        if rows[b] == 0:
            continue
        if first + b < last:
            if first + b > cut:
                cuts[found], lengths[found] = cut, first + b - cut
                left_gradients[found], left_rows[found] = gradient, count
                found += 1
            cut = first + b
            gradient += sums[b]
            count += rows[b]
        sums[b], rows[b] = 0, 0
    if last > cut:
        cuts[found], lengths[found] = cut, last - cut
        left_gradients[found], left_rows[found] = gradient, count
        found += 1
    return found


@kernel(
    "(uint8[:, ::1], int64[::1], const(int64[::1]), const(int64[::1]), float64, int64, int64, "
    "boolean[::1], int64[:, ::1], int64[:, ::1])",
    error_model="numpy",
)
def split_runs(  # type: ignore[no-untyped-def]
    codes, members, gradients, starts, ridge, min_rows, floor, splittable, bins, runs
):
    """Write the runs of possible splits of a node; return how many there are.

    Parameters
    ----------
    codes : uint8 (K, n)
        Bin of every row.
    members, gradients : int64 (m,)
        The rows of the node, and their gradients.
    starts : int64 (K + 1,)
        Place of each feature's first bin in the list of all bins; the number of bins.
    ridge : float
        lambda.
    min_rows, floor : int
        A split is possible if both sides have `min_rows` rows, its gain is above `floor` and its
        feature is splittable.
    splittable : bool (K,)
        A feature without a possible split becomes False.
    bins : int64 (3, 256)
        Zeros, before and after.
    runs : int64 (5, starts[K])
        Of each run: the gain, the place of the first cut in the list of all bins, the number of
        cuts, and the sum of gradients and the rows on their left. "Codes up to this bin go left."
    """
    gains, cuts, lengths, left_gradients, left_rows = runs[0], runs[1], runs[2], runs[3], runs[4]
    packed = (gradients << _COUNT_BITS) + 1
    gradient, found = gradients.sum(), 0
    for j in range(starts.size - 1):
        if not splittable[j]:
            continue
        first, last, before = starts[j], starts[j + 1] - 1, found
        _bin_sums(codes[j], members, packed, bins[0], bins[1], bins[2])
        found = _runs_of_feature(
            bins[1], bins[2], first, last, cuts, lengths, left_gradients, left_rows, found
        )
        gains_of(
            left_gradients[before:found], left_rows[before:found], gradient, members.size, ridge,
            gains[before:found],
        )  # fmt: skip
        kept = before
        for i in range(before, found):
            smaller = min(left_rows[i], members.size - left_rows[i])
            if smaller >= min_rows and gains[i] > floor:
                gains[kept], cuts[kept], lengths[kept] = gains[i], cuts[i], lengths[i]
                kept += 1
        found = kept
        splittable[j] = found > before
    return found


@kernel()
def _partition(codes, cut, rows, others):  # type: ignore[no-untyped-def]
    """Move rows with codes up to `cut` to the front, in order; return their number.

    `others` is scratch, as long as `rows` or longer.
    """
    left, right = 0, 0
    for i in rows:
        rows[left], others[right] = i, i
        goes_left = codes[i] <= cut
        left += goes_left
        right += not goes_left
    for i in range(right):
        rows[left + i] = others[i]
    return left


@kernel(
    "(uint8[:, ::1], int64[::1], int64[::1], uint32[::1], uint64, int64, float64, int64, int64, "
    "int64, boolean)"
)
def grow(  # type: ignore[no-untyped-def]
    codes, gradients, starts, state, mantissa, shift, ridge, max_depth, max_leaves, min_rows,
    complete,
):  # fmt: skip
    """Grow a tree whose splits are exponential choices among all cuts of all features.

    Parameters
    ----------
    codes, gradients : uint8 (K, m), int64 (m,)
        The rows that train this tree; gradients are smaller than `LARGEST_GRADIENT`.
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
    bins, runs = np.zeros((3, _BINS), np.int64), np.empty((5, starts[-1]), np.int64)
    order, others = np.arange(gradients.size), np.empty(gradients.size, np.int64)
    last[0] = gradients.size
    floor = _NEVER if complete else 0
    fresh, nodes = 0, 1
    while True:
        for node in range(fresh, nodes):
            members = order[first[node] : last[node]]
            own = gradients[members]
            gradient[node] = own.sum()
            if depth[node] == max_depth or nodes == n_nodes:
                continue
            found = split_runs(
                codes, members, own, starts, ridge, min_rows, floor, splittable[node], bins, runs
            )
            if found > 0:
                gains = runs[0, :found]
                run, beyond = exponential_choice_of_runs(
                    state, mantissa, shift, gains, runs[2, :found]
                )
                chosen[node] = runs[1, run] + beyond
                priority[node] = -node if complete else gains.max()
        node = _largest_at(priority)
        if nodes == n_nodes or priority[node] == _NEVER:
            break
        priority[node] = _NEVER
        feature[node] = _feature_of(starts, chosen[node])
        cut[node] = chosen[node] - starts[feature[node]]
        left[node] = nodes
        middle = first[node] + _partition(
            codes[feature[node]], cut[node], order[first[node] : last[node]], others
        )
        first[nodes], last[nodes] = first[node], middle
        first[nodes + 1], last[nodes + 1] = middle, last[node]
        depth[nodes : nodes + 2] = depth[node] + 1
        for k in range(splittable.shape[1]):
            splittable[nodes, k] = splittable[nodes + 1, k] = splittable[node, k]
        fresh, nodes = nodes, nodes + 2
    return feature[:nodes], cut[:nodes], left[:nodes], gradient[:nodes], (last - first)[:nodes]


@kernel("(const(int64[::1]), const(int64[::1]), const(int64[::1]), int64, int64[::1])")
def pack_tree(feature, cut, left, first, words):  # type: ignore[no-untyped-def]
    """Write each node of a tree as one word, for `add_trees`; return the tree's depth.

    The tree is as `grow` has it, and `first` is its first node's number among those of all trees.
    A word is 2^32 times the left child's number, plus 2^8 times the feature, which is below 2^24,
    plus the cut. A leaf is its own left child, whatever the codes: a walk of `depth` steps ends in
    a leaf.
    """
    depth = np.zeros(feature.size, np.int64)
    for node in range(feature.size):
        if feature[node] < 0:
            words[node] = (first + node) << _LEFT | _BINS - 1
        else:
            words[node] = (first + left[node]) << _LEFT | feature[node] << _FEATURE | cut[node]
            depth[left[node] : left[node] + 2] = depth[node] + 1
    return depth.max()


@kernel(
    "(int64[::1], int64[::1], uint8[:, ::1], const(int64[::1]), const(int64[:, ::1]), "
    "const(int64[:, ::1]))"
)
def add_trees(scores, added, codes, rows, nodes, trees):  # type: ignore[no-untyped-def]
    """Add to the scores of `rows` the values of the trees that they lack.

    Parameters
    ----------
    scores, added : int64 (n,)
        Of every row: its score, and how many trees, the first ones, it holds. Both are changed.
    codes : uint8 (n, K)
        Bin of every row.
    rows : int64 (m,)
        Which rows.
    nodes : int64 (2, nodes)
        Words and values of the nodes of all trees; see `pack_tree`.
    trees : int64 (2, trees)
        First node and depth of every tree.
    """
    words, values, at = nodes[0], nodes[1], np.empty(_BLOCK, np.int64)
    for start in range(0, rows.size, _BLOCK):
        block = rows[start : start + _BLOCK]
        for t in range(added[block].min(), trees.shape[1]):
            at[:] = trees[0, t]
            for _ in range(trees[1, t]):
                for i in range(block.size):
                    word = words[at[i]]
                    code = codes[block[i], word >> _FEATURE & _FEATURES]
                    at[i] = (word >> _LEFT) + (code > word & _CUTS)
            for i in range(block.size):
                if added[block[i]] <= t:
                    scores[block[i]] += values[at[i]]
        for i in block:
            added[i] = max(added[i], trees.shape[1])


def truncated(targets: np.ndarray) -> np.ndarray:
    """Return scaled targets in whole units, int64 (n,), rounded towards zero: none grows."""
    return np.trunc(targets / UNIT).astype(np.int64)


def whole(released: np.ndarray) -> np.ndarray:
    """Return released values in whole units, int64, rounded to the nearest."""
    return np.clip(np.rint(released / UNIT), -LARGEST, LARGEST).astype(np.int64)


def on_grid(released: np.ndarray) -> np.ndarray:
    """Return released values as float64 multiples of the unit: exact."""
    return whole(released) * UNIT
