"""DPBoost: the canary alone in a leaf, or the row that makes a split possible at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, Ceiling, MethodPair
from dprepro.audit.cases.general import Scores, table
from dprepro.data.domain import Domain, NumericFeature
from dprepro.dpboost.variants import AS_PUBLISHED

_CROWD = 40
_TRIALS = 20_000
_PARAMS = {"n_trees": 1, "trees_per_ensemble": 1, "max_depth": 1, "max_bins": 2}


def lone_leaf(setting: AuditSetting) -> Case:
    """Return a pair whose canary is alone on its side of the only cut: no row dilutes its leaf."""
    words = f"{_CROWD} rows at one end of a feature, one at the other end or none"
    case = _case(setting, others=0, neighbours=words)
    return replace(case, trials=_TRIALS, ceiling=_of_a_leaf)


def _of_a_leaf(model: Any) -> Ceiling:
    """There is one cut, so that the choice of a split shows nothing; the value of a leaf does."""
    _, leaves = model.ledger_.entries
    return Ceiling(leaves.sensitivity / leaves.scale, "what the value of its leaf spends")


def possible_split(setting: AuditSetting) -> Case:
    """Return a pair whose canary brings one side of the only split up to the least rows."""
    others = AS_PUBLISHED.min_rows - 1
    case = _case(
        setting,
        others=others,
        neighbours=f"{_CROWD} rows at one end, {others} or {others + 1} at the other end",
    )
    return replace(case, observe=_nodes_and_score, trials=200)


def _case(setting: AuditSetting, others: int, neighbours: str) -> Case:
    binary = setting.task == "binary"
    domain = Domain(
        (NumericFeature("x", 0.0, 1.0),), ("0", "1") if binary else (0.0, 1.0)
    )  # fmt: skip
    # Both labels among the crowd; all others have the canary's.
    x = np.repeat([0.0, 1.0], [_CROWD, others])
    y = np.concatenate([np.arange(_CROWD) % 2, np.ones(others, dtype=int)])
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, None), _PARAMS)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=neighbours,
        fit=pair.fit,
        observe=Scores(setting.method, domain, (0.0, 1.0)),
    )


def _nodes_and_score(model: Any) -> np.ndarray:
    """Return the number of nodes of the only tree, and the score of the crowd, float64 (2,).

    A tree without a split adds no noise, and leaves the score from which boosting starts.
    """
    score = model.start_ + model.trees_[0].value[model.trees_[0].left[0]]
    return np.array([float(model.trees_[0].feature.size), score])


_OF_CODE = ("dpboost", "dpboost-2021", "dpboost-2021-indicators")

CASES = dict.fromkeys(_OF_CODE, possible_split) | {"dpboost-sound": lone_leaf}
