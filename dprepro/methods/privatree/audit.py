"""PrivaTree: a canary in a leaf of its own or with a crowd, and one at the end of a range."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, categories, line, table
from dprepro.audit.distinguishers import Ceiling, largest_epsilon, permute_and_flip
from dprepro.data.domain import CategoricalFeature, Domain

_CATEGORIES = ("crowd", "canary")
_CROWD = 20
_PARAMS = {"max_depth": 1}
_TRIALS, _FEW = 10_000, 400


def own_leaf(setting: AuditSetting) -> Case:
    """Return rows of one category, hardly any with the canary's label, and a canary of the other.

    Without the canary both cuts, after the first category and after the last, leave all rows in one
    leaf: one is as likely as the other. With it the second mixes labels, and the first does not.
    """
    domain = Domain((CategoricalFeature("x", _CATEGORIES),), ("0", "1"))
    pair = MethodPair(setting, domain, _categories(1), _categories(0), _PARAMS)
    return pair.case(
        f"{_CROWD} rows of one category, one of another or none; cut and labels seen",
        _released,
        trials=_TRIALS,
        ceiling=_ceiling,
    )


def end_of_a_range(setting: AuditSetting) -> Case:
    """Return rows at two places, and a canary above them or none: the last edge of a bin is seen.

    The range is read from the rows.
    """
    x, y = np.repeat([0.0, 0.5], _CROWD // 2), np.arange(_CROWD) % 2
    pair = MethodPair(
        setting, line(setting.task), table(x, y, (1.0, 1)), table(x, y, None), _PARAMS
    )
    return pair.case(
        f"{_CROWD} rows, and one more above them or none; the edges of bins seen",
        _edges,
        trials=_FEW,
    )


def _categories(canary: int) -> Table:
    codes = np.repeat([0, 1], [_CROWD, canary])
    y = np.arange(codes.size) >= _CROWD - 1
    return pd.DataFrame({"x": categories(codes, _CATEGORIES)}), y.astype(int)


def _released(model: Any) -> np.ndarray:
    """Return where the only cut is and the labels of both leaves, float64 (3,)."""
    return np.append(model.tree_.last, model.tree_.label).astype(np.float64)


def _edges(model: Any) -> np.ndarray:
    edges: np.ndarray = model.bins_[0].edges
    return edges


@dataclass(frozen=True)
class _Leaves:
    """Counts of labels in both leaves, and the impurity of both together, after one of the cuts."""

    counts: tuple[tuple[int, int], tuple[int, int]]

    @property
    def score(self) -> float:
        return -sum(2 * a * b / (a + b) for a, b in self.counts if a + b)


def _ceiling(model: Any) -> Ceiling:
    """Work out the probabilities of all cuts and labels by the formulas of the paper."""
    cuts, labels = model.ledger_.entries
    crowd, worlds = (_CROWD - 1, 1), []
    for canary in (1, 0):
        leaves = _Leaves((crowd, (0, canary))), _Leaves(((crowd[0], crowd[1] + canary), (0, 0)))
        chosen = permute_and_flip(np.array([each.score for each in leaves]), cuts.scale)
        parts = [
            [permute_and_flip(np.array(counts, float), labels.scale) for counts in each.counts]
            for each in leaves
        ]
        worlds.append([
            chosen[cut] * parts[cut][0][left] * parts[cut][1][right]
            for cut, left, right in product(range(2), repeat=3)
        ])  # fmt: skip
    present, absent = np.array(worlds)
    return Ceiling(largest_epsilon(present, absent, 0.0), "by the probabilities of all outcomes")


CASES = {"privatree": end_of_a_range, "privatree-sound": own_leaf}
