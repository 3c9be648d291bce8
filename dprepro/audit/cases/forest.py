"""Random forests: one tree, one leaf, and labels that are level but for the canary."""

from __future__ import annotations

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair
from dprepro.audit.cases.general import Scores, table
from dprepro.data.domain import Domain, NumericFeature

_ROWS_A_LABEL = 5
_PARAMS = {"n_estimators": 1, "max_depth": 1}


def level(setting: AuditSetting) -> Case:
    """Return a pair whose rows share a leaf: without the canary no label of it leads.

    With it the others must make up for one count, which costs them a factor of e^epsilon: all that
    the choice may spend on a row.
    """
    labels = 2 if setting.task == "binary" else 3
    domain = Domain((NumericFeature("x", 0.0, 1.0),), tuple(map(str, range(labels))))
    y = np.repeat(np.arange(labels), _ROWS_A_LABEL)
    x = np.zeros(y.size)
    pair = MethodPair(setting, domain, table(x, y, (0.0, 1)), table(x, y, None), _PARAMS)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_ROWS_A_LABEL} rows of each label in a leaf, and one more of one or none",
        fit=pair.fit,
        observe=Scores(setting.method, domain, (0.0,)),
    )


CASES = {"dp-random-forest": level}
