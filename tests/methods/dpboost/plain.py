"""`kernel.grow` again, in plain Python: every bin and every cut by itself, whole numbers of Python.

Choices are those of the plain exponential mechanism in `tests.privacy.sampling.reference`.
"""

from __future__ import annotations

import math

from dprepro.methods.dpboost.kernel import GAIN_UNIT, UNIT
from tests.privacy.sampling import reference


def score(gradients, ridge):
    """S^2 / (n + lambda) of a list of gradients, whole numbers of `UNIT`."""
    total = sum(gradients) * UNIT
    return total * total / (len(gradients) + ridge) if gradients else 0.0


def candidates(codes, gradients, rows, bins, ridge, min_rows, floor, splittable):
    """Return [(gain, feature, cut)] of the possible splits; features without one are struck out.

    `codes` are lists of every feature's bins, `bins` how many each has.
    """
    found = []
    whole = math.floor(score([gradients[i] for i in rows], ridge) / GAIN_UNIT)
    for j in sorted(splittable):
        before = len(found)
        for cut in range(bins[j] - 1):
            left = [gradients[i] for i in rows if codes[j][i] <= cut]
            right = [gradients[i] for i in rows if codes[j][i] > cut]
            gain = math.floor((score(left, ridge) + score(right, ridge)) / GAIN_UNIT) - whole
            if min(len(left), len(right)) >= min_rows and gain > floor:
                found.append((gain, j, cut))
        if len(found) == before:
            splittable.discard(j)
    return found


def grow(codes, gradients, bins, words, scale, ridge, max_depth, max_leaves, min_rows, complete):
    """Return feature, cut, left, sums and rows of all nodes: lists."""
    codes, gradients = codes.tolist(), gradients.tolist()
    nodes, waiting, fresh = [], {}, [(list(range(len(gradients))), 0, set(range(len(bins))))]
    feature, cut, left = [], [], []
    while True:
        for rows, depth, splittable in fresh:
            node = len(feature)
            nodes.append((rows, depth, splittable))
            feature.append(-1)
            cut.append(0)
            left.append(0)
            if depth < max_depth:
                waiting[node] = None
        full = len(nodes) == 2 * max_leaves - 1
        for node in [node for node, chosen in waiting.items() if chosen is None]:
            rows, _, splittable = nodes[node]
            floor = -math.inf if complete else 0
            limits = ridge, min_rows, floor, splittable
            found = [] if full else candidates(codes, gradients, rows, bins, *limits)
            if not found:
                del waiting[node]
                continue
            gains = [gain for gain, _, _ in found]
            waiting[node] = max(gains), found[reference.choice(words, gains, scale)]
        if full or not waiting:
            break
        node = min(waiting) if complete else max(waiting, key=lambda n: (waiting[n][0], -n))
        _, (_, feature[node], cut[node]) = waiting.pop(node)
        rows, depth, splittable = nodes[node]
        left[node] = len(nodes)
        bin_of = codes[feature[node]]
        sides = (
            [i for i in rows if bin_of[i] <= cut[node]],
            [i for i in rows if bin_of[i] > cut[node]],
        )
        fresh = [(side, depth + 1, set(splittable)) for side in sides]
    sums = [sum(gradients[i] for i in rows) for rows, _, _ in nodes]
    return feature, cut, left, sums, [len(rows) for rows, _, _ in nodes]
