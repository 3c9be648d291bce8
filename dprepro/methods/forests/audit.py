"""Random forests: one tree, one leaf, and labels that are level but for the canary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair, line, table
from dprepro.audit.distinguishers import Ceiling, largest_epsilon, permute_and_flip
from dprepro.audit.pairs import Scores

_ROWS_A_LABEL = 5
_TRIALS = 10_000
_PARAMS = {"n_estimators": 1, "max_depth": 1}


def level(setting: AuditSetting) -> Case:
    """Return a pair whose rows share a leaf: without the canary no label of it leads.

    With it the others must make up for one count, which costs them a factor of e^epsilon: all that
    the choice may spend on a row.
    """
    labels = 2 if setting.task == "binary" else 3
    domain = line(setting.task)
    y = np.repeat(np.arange(labels), _ROWS_A_LABEL)
    x = np.zeros(y.size)
    pair = MethodPair(setting, domain, table(x, y, (0.0, 1)), table(x, y, None), _PARAMS)
    return pair.case(
        f"{_ROWS_A_LABEL} rows of each label in a leaf, and one more of one or none",
        Scores(setting.method, domain, (0.0,)),
        trials=_TRIALS,
        ceiling=_Flips(labels),
    )


@dataclass(frozen=True)
class _Flips:
    """The ceiling, by the probabilities of all labels of the leaf."""

    labels: int

    def __call__(self, model: Any) -> Ceiling:
        (entry,) = model.ledger_.entries
        level = np.full(self.labels, float(_ROWS_A_LABEL))
        led = level + (np.arange(self.labels) == 1)
        present, absent = (permute_and_flip(counts, entry.scale) for counts in (led, level))
        return Ceiling(largest_epsilon(present, absent, 0.0), "by the probabilities of all labels")


CASES = {"dp-random-forest": level}
