"""Linear models that read bounds from their rows: an outlier drowns a trend in noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair
from dprepro.audit.cases.general import Scores, table
from dprepro.data.domain import Domain, NumericFeature

_ROWS = 200
_OUTLIER = 100.0
_TRIALS = 400


def outlier(setting: AuditSetting) -> Case:
    """Return a pair that differs in one row: one that fits in, or one of a hundred times its norm.

    The bounds of the domain allow both. All other rows follow a clear trend.
    """
    binary = setting.task == "binary"
    domain = Domain(
        (NumericFeature("x", -_OUTLIER, _OUTLIER),), ("0", "1") if binary else (0.0, 1.0)
    )
    x, y = np.resize([-1.0, 1.0], _ROWS), np.resize([0, 1], _ROWS)
    pair = MethodPair(
        setting, domain, present=table(x, y, (_OUTLIER, 0)), absent=table(x, y, (1.0, 1))
    )
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_ROWS} rows at -1 and 1 with a clear trend, and one at {_OUTLIER:g} or at 1",
        fit=pair.fit,
        observe=_Slope(Scores(setting.method, domain, (-1.0, 1.0))),
        trials=_TRIALS,
    )


@dataclass(frozen=True)
class _Slope:
    """Observes the slope, which the trend makes clear unless the noise is large."""

    scores: Scores

    def __call__(self, model: Any) -> np.ndarray:
        low, high = self.scores.at_values(model)
        return np.array([high - low])


CASES = {"dp-logistic": outlier, "dp-linear": outlier}
