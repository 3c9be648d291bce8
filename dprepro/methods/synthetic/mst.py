"""MST: counts of columns, a tree of pairs of columns, and counts of these pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dprepro.methods.synthetic.curator import (
    ColumnCounts,
    Expect,
    PairChoice,
    PairCounts,
    SyntheticCurator,
)
from dprepro.methods.synthetic.tree_model import (
    Noisy,
    Pair,
    TreeModel,
    estimated_column,
    estimated_rows,
    merged,
    merged_places,
)


def learn(curator: SyntheticCurator, sizes: Sequence[int]) -> tuple[TreeModel, list[np.ndarray]]:
    """Return the model of what a curator answers, and the place of each cell, int64 (m,) each.

    Parameters
    ----------
    sizes
        How many cells each column has.
    """
    whole = ColumnCounts(math.sqrt(len(sizes)), 1.0, len(sizes))
    answer = curator.count_columns(whole)
    counts = np.split(answer.value, np.cumsum(sizes)[:-1])
    places = [merged_places(each, answer.scale) for each in counts]
    columns = [
        merged(each, place, answer.scale**2) for each, place in zip(counts, places, strict=True)
    ]
    rows = estimated_rows(columns)
    likely = tuple(estimated_column([each], rows) for each in columns)
    curator.tell(Expect(tuple(places), likely, rows))
    tree = _choose_tree(curator, len(sizes))
    answer = curator.count_pairs(PairCounts(math.sqrt(len(tree)), 1.0, tree))
    shapes = [(len(likely[a]), len(likely[b])) for a, b in tree]
    tables = np.split(answer.value, np.cumsum([a * b for a, b in shapes])[:-1])
    variance = np.array(answer.scale**2)
    pairs = {
        pair: Noisy(table.reshape(shape), variance)
        for pair, table, shape in zip(tree, tables, shapes, strict=True)
    }
    return TreeModel.of(columns, pairs), places


def _choose_tree(curator: SyntheticCurator, columns: int) -> tuple[Pair, ...]:
    """Return pairs that join all columns, chosen one after the other, none within what is joined.

    That is Kruskal's algorithm for a spanning tree of large scores, with private choices.
    """
    pairs, parts = list(combinations(range(columns), 2)), np.arange(columns)
    chosen: list[Pair] = []
    for number in range(columns - 1):
        candidates = [k for k, (a, b) in enumerate(pairs) if parts[a] != parts[b]]
        answer = curator.choose(PairChoice(1.0, 1.0, number, tuple(candidates)))
        a, b = pairs[candidates[int(answer.value)]]
        chosen.append((a, b))
        parts[parts == parts[b]] = parts[a]
    return tuple(chosen)


def drawn_cells(
    model: TreeModel, places: Sequence[np.ndarray], generator: np.random.Generator
) -> np.ndarray:
    """Return synthetic rows, int64 (rows, columns): one of the cells of each place, at random."""
    drawn = model.draw(generator)
    for column, place in enumerate(places):
        order, sizes = np.argsort(place, kind="stable"), np.bincount(place)
        starts = np.cumsum(sizes) - sizes
        own = drawn[:, column]
        drawn[:, column] = order[starts[own] + generator.integers(sizes[own])]
    return drawn
