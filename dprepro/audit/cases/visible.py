"""Methods that read x exactly: if rows differ in x, and only then, does the score depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair
from dprepro.audit.cases.general import Scores, table
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods import registry
from dprepro.privacy.sensitivity import REPLACE_ONE

_CROWD = 19
_TRIALS = 400


def another_x(setting: AuditSetting, params: Mapping[str, Any] | None = None) -> Case:
    """Return a pair whose canary alone has another x, or has the crowd's, or is not there."""
    binary = setting.task == "binary"
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1") if binary else (0.0, 1.0))
    x, y = np.zeros(_CROWD), np.arange(_CROWD) % 2
    replaced = registry.get(setting.method).adjacency == REPLACE_ONE
    pair = MethodPair(
        setting,
        domain,
        present=table(x, y, (1.0, 1)),
        absent=table(x, y, (0.0, 1) if replaced else None),
        params=params or {},
    )
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{_CROWD} rows at one end of a feature, one at the other end or "
            + ("with them" if replaced else "none")
        ),
        fit=pair.fit,
        observe=_Dependence(Scores(setting.method, domain, (0.0, 1.0))),
        trials=_TRIALS,
    )


def another_x_for_a_student(setting: AuditSetting) -> Case:
    """Return the same pair for a student that sees half of the rows, labelled nearly at random."""
    rate = setting.epsilon / _CROWD
    return another_x(setting, {"teachers": 2, "partitions": 1, "rate": rate})


@dataclass(frozen=True)
class _Dependence:
    """Observes the logarithm of how far the score at one end is from that at the other."""

    scores: Scores

    def __call__(self, model: Any) -> np.ndarray:
        scores = self.scores.at_values(model)
        spread = np.abs(np.subtract(*np.split(scores, 2))).max()
        return np.array([np.log(spread + np.finfo(float).tiny)])


CASES = {"toy-dp-ebm": another_x, "dp-bag": another_x_for_a_student}
