"""Random boosting: one tree, one leaf, and a canary with the rare label."""

from __future__ import annotations

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair, line, table
from dprepro.audit.pairs import Scores

_CROWD, _RARE = 2000, 60
_PARAMS = {"n_trees": 1, "update": "averaging", "candidates": "uniform"}


def rare_label(setting: AuditSetting) -> Case:
    """Return a pair whose rows share a leaf, wherever splits are drawn: the canary moves its mean.

    Of the noise on labels and rows, that on labels alone decides the mean, since labels are rare.
    So the audit sees 1/sqrt(2) of what a row moves.
    """
    scale = max(1.0, 1.0 / setting.epsilon)
    crowd, rare = round(_CROWD * scale), round(_RARE * scale)
    domain = line(setting.task)
    x, y = np.full(crowd, 0.5), np.arange(crowd) < rare
    labels = y.astype(int)
    pair = MethodPair(setting, domain, table(x, labels, (0.5, 1)), table(x, labels, None), _PARAMS)
    return pair.case(
        f"{crowd} rows in a leaf, {rare} with the rare label, and one more or none",
        Scores(setting.method, domain, (0.5,)),
    )


CASES = {"dp-random-boosting": rare_label}
