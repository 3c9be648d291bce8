"""What the authors' code draws for leaves and splits: the same public numbers in every fit.

Every model of the code starts its generators from constants. Anybody can repeat the draws, so that
they protect no row. They are here because printed results depend on them: the means of 25 splits
share one draw. For a choice to be the code's, its candidates have to come in the code's order, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dprepro.methods.dpboost.bins import ZERO
from dprepro.methods.dpboost.kernel import split_runs

SEED = 42
"""Of the Mersenne Twister (MT19937, 32 bits) that draws the noise of the leaves."""

_SHUFFLE_SEED = 12
"""Of LightGBM's order of features."""

_SPARSE = 0.8
"""LightGBM's sparse_threshold: a bundle of two to four features is undone if so many of its rows
are zero."""

_BINS = 256


def laplace_sequence(n: int) -> np.ndarray:
    """Return the first n numbers of scale 1, float64 (n,), of float32 precision.

    Each is the difference of two exponential numbers -ln(1 - u), with u the next word of the
    generator over 2^32, rounded to float32.
    """
    words = np.random.RandomState(SEED).randint(0, 2**32, size=2 * n, dtype=np.uint32)
    below_one = np.nextafter(np.float32(1), np.float32(0))
    uniform = np.minimum(words.astype(np.float32) / np.float32(2**32), below_one)
    exponential = -np.log1p(-uniform)
    return (exponential[0::2] - exponential[1::2]).astype(np.float64)


def uniform_sequence() -> Iterator[float]:
    """Yield numbers in [0, 1): two words each of x <- 16807 x mod (2^31 - 1), from x = 1."""
    word, span = 1, 2**31 - 2
    while True:
        low = word = 16807 * word % (span + 1)
        high = word = 16807 * word % (span + 1)
        yield ((low - 1) + (high - 1) * float(span)) / float(span) ** 2


class ConstantNoise:
    """Hands out the sequence of `laplace_sequence` in its order, at most `n` numbers of it."""

    def __init__(self, n: int) -> None:
        self._rest = laplace_sequence(n)

    def add_laplace(
        self, exact: np.ndarray, scale: float, unit: float | np.ndarray = 1.0
    ) -> np.ndarray:
        """Return `exact`, int64 (m,) in units of `unit`, with the next m numbers times `scale`."""
        noise, self._rest = np.split(self._rest, [exact.size])
        return exact * unit + scale * noise


def leaf_numbers(feature: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return the number that LightGBM gives to each leaf, int64 (leaves,), in the order of nodes.

    A split leaves its number to its left child; its right child gets the next one. `feature` and
    `left` are those of `Tree`, whose nodes are split in the order of their left children.
    """
    numbers = np.zeros(feature.size, np.int64)
    inner = np.flatnonzero(feature >= 0)
    for made, node in enumerate(inner[np.argsort(left[inner])], start=1):
        numbers[left[node]], numbers[left[node] + 1] = numbers[node], made
    return numbers[feature < 0]


def feature_order(
    columns: Sequence[np.ndarray], codes: np.ndarray, min_rows: int, given: Sequence[int]
) -> list[int]:
    """Return LightGBM's order of the features that can be split at all.

    Parameters
    ----------
    columns
        Of each feature, float64 (n,), NaN where a value is missing.
    codes : uint8 (n, K)
        Their bins.
    min_rows
        A feature needs a cut with 95 % of so many rows on either side.
    given
        The order in which the code is given the features.
    """
    least, used = int(0.95 * min_rows), []
    for k in given:
        below = np.cumsum(np.bincount(codes[:, k], minlength=_BINS))
        if ((below >= least) & (below[-1] - below >= least)).any():
            used.append(k)
    filled = {k: ~(np.abs(columns[k]) <= ZERO) for k in used}
    fullest_first = sorted(used, key=lambda k: -int(filled[k].sum()))
    bundles = min(_bundles(used, filled), _bundles(fullest_first, filled), key=len)
    return [k for bundle in _shuffled(_without_small(bundles, filled)) for k in bundle]


def _bundles(order: Sequence[int], filled: dict[int, np.ndarray]) -> list[list[int]]:
    """Put each feature to the first ones with which it is never unequal to zero at a time.

    The last bundle with room is asked first, then the others in their order.
    """
    bundles: list[list[int]] = []
    unions: list[np.ndarray] = []
    for k in order:
        rows = filled[k]
        room = [b for b, union in enumerate(unions) if union.sum() + rows.sum() <= rows.size]
        for b in [*room[-1:], *room[:-1]]:
            if not (unions[b] & rows).any():
                bundles[b].append(k)
                unions[b] = unions[b] | rows
                break
        else:
            bundles.append([k])
            unions.append(rows)
    return bundles


def _without_small(bundles: list[list[int]], filled: dict[int, np.ndarray]) -> Iterator[list[int]]:
    for bundle in bundles:
        zeros = 1 - sum(float(filled[k].mean()) for k in bundle)
        if 2 <= len(bundle) <= 4 and zeros >= _SPARSE:
            yield from ([k] for k in bundle)
        else:
            yield bundle


def _shuffled(bundles: Iterator[list[int]]) -> list[list[int]]:
    """Exchange each bundle with a later one, by 15 bits of x <- 214013 x + 2531011 mod 2^32."""
    order, word = list(bundles), _SHUFFLE_SEED
    for i in range(len(order) - 1):
        word = (214013 * word + 2531011) % 2**32
        j = (word >> 16 & 0x7FFF) % (len(order) - i - 1) + i + 1
        order[i], order[j] = order[j], order[i]
    return order


@dataclass(eq=False)
class _Node:
    """A node: its rows, LightGBM's number, and its runs of possible splits (see `split_runs`)."""

    members: np.ndarray
    depth: int
    number: int
    splittable: np.ndarray
    runs: np.ndarray = field(default_factory=lambda: np.empty((3, 0), np.int64))
    feature: int = -1
    cut: int = 0
    left: int = 0


def grow(  # as `kernel.grow`
    codes: np.ndarray,
    gradients: np.ndarray,
    starts: np.ndarray,
    order: Sequence[int],
    uniforms: Iterator[float],
    scale: float,
    ridge: float,
    max_depth: int,
    max_leaves: int,
    min_rows: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Grow a best-first tree with the draws of `uniforms`; what it returns is as in `kernel.grow`.

    Parameters
    ----------
    codes, gradients, starts, ridge, max_depth, max_leaves, min_rows
        See `kernel.grow`.
    order
        Of the features; others are not split.
    uniforms
        A split takes one. The candidates of the next leaf follow each other by feature and cut;
        chosen is the first one up to which the probabilities exceed the number.
    scale
        s of P(split) ~ exp(gain / s), in units of `GAIN_UNIT`.
    """
    ranks = np.full(starts.size - 1, -1)
    ranks[list(order)] = np.arange(len(order))
    bins, runs = np.zeros((3, _BINS), np.int64), np.empty((5, starts[-1]), np.int64)

    def node_of(members: np.ndarray, depth: int, number: int, splittable: np.ndarray) -> _Node:
        node = _Node(members, depth, number, splittable)
        if depth < max_depth:
            found = split_runs(
                codes, members, gradients[members], starts, ridge, min_rows, 0, splittable, bins,
                runs,
            )  # fmt: skip
            kept = runs[:3, :found]
            ranked = ranks[np.searchsorted(starts, kept[1], side="right") - 1]
            node.runs = kept[:, np.lexsort((kept[1], ranked))]
        return node

    nodes = [node_of(np.arange(gradients.size), 0, 0, ranks >= 0)]
    waiting = nodes[:]
    for made in range(1, max_leaves):
        waiting = [node for node in waiting if node.runs.size]
        if not waiting:
            break
        node = max(waiting, key=lambda n: (n.runs[0].max(), -n.number))
        waiting.remove(node)
        place = _choice(node.runs, scale, next(uniforms))
        node.feature = int(np.searchsorted(starts, place, side="right")) - 1
        node.cut, node.left = place - int(starts[node.feature]), len(nodes)
        goes_left = codes[node.feature][node.members] <= node.cut
        for rows, number in ((goes_left, node.number), (~goes_left, made)):
            nodes.append(
                node_of(node.members[rows], node.depth + 1, number, node.splittable.copy())
            )
        waiting += nodes[-2:]
    shape = np.array([[n.feature, n.cut, n.left] for n in nodes], np.int64).T
    sums = np.array([gradients[n.members].sum() for n in nodes], np.int64)
    rows = np.array([n.members.size for n in nodes], np.int64)
    return shape[0], shape[1], shape[2], sums, rows


def _choice(runs: np.ndarray, scale: float, uniform: float) -> int:
    """Return the place of the chosen cut in the list of all bins."""
    gains, places, lengths = runs
    each = np.exp((gains - gains.max()) / scale)
    total = np.cumsum(each * lengths)
    drawn = uniform * total[-1]
    run = min(int(np.searchsorted(total, drawn, side="right")), gains.size - 1)
    beyond = int((drawn - (total[run] - each[run] * lengths[run])) / each[run])
    return int(places[run]) + min(max(beyond, 0), int(lengths[run]) - 1)
