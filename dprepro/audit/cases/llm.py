"""Locally linear maps: a canary whose gradient is clipped throughout, in all batches or in some."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, Ceiling, MethodPair
from dprepro.audit.cases.general import table
from dprepro.data.domain import Domain, NumericFeature

_CROWD = 20
# With every row in every batch all releases are plain Gaussian, and mu is what is spent. Adam
# starts anew in each epoch, of one step, and gradients are far below its floor of 1e-8. So every
# step is linear in the noisy sum, and the filters end as the sum of all: no linear rule loses
# anything. Steps are so long that where filters started, which nobody knows, is small beside the
# noise. A gradient that is clipped to so little keeps its length until the canary is learnt by
# heart.
_EPOCHS = 8
_PARAMS = {
    "n_maps": 1,
    "n_projected": None,
    "batch_size": _CROWD + 1,
    "epochs": _EPOCHS,
    "decay": 1.0,
    "decay_every": 1,
    "clip_norm": 1e-10,
}
_RATE = 100.0
"""Times epsilon, as the noise falls with it."""
_TRIALS = 30_000
# So many rows that one more or less hardly changes the rate, which is public. Four steps.
_MANY = 200
_SAMPLED_PARAMS = {
    "n_maps": 2,
    "n_projected": 10,
    "batch_size": 60,
    "epochs": 1,
    "learning_rate": 1.0,
    "clip_norm": 1e-4,
}
_SAMPLED_TRIALS = 2000


def clipped_throughout(setting: AuditSetting) -> Case:
    """Return a crowd at x = 0, which moves no filter, and a canary at x = 1 or none."""
    labels = 2 if setting.task == "binary" else 3
    domain = Domain((NumericFeature("x", 0.0, 1.0),), tuple(map(str, range(labels))))
    x, y = np.zeros(_CROWD), np.arange(_CROWD) % labels
    params = {**_PARAMS, "learning_rate": _RATE * setting.epsilon}
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, None), params)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_CROWD} rows at one end of a feature, one at the other end or none",
        fit=pair.fit,
        observe=_parameters,
        trials=_TRIALS,
        ceiling=_of_all_sums,
    )


def _of_all_sums(model: Any) -> Ceiling:
    """The canary's gradient has full norm in every sum, and the model says no more than they."""
    return Ceiling(model.ledger_.spent_epsilon(), "what all sums spend")


def sampled(setting: AuditSetting) -> Case:
    """Return the same with samples of three tenths, two maps a class, and projections.

    What shows little: most steps leave the canary out, and projections are unknown.
    """
    labels = 2 if setting.task == "binary" else 3
    domain = Domain((NumericFeature("x", 0.0, 1.0),), tuple(map(str, range(labels))))
    x, y = np.zeros(_MANY), np.arange(_MANY) % labels
    pair = MethodPair(
        setting, domain, table(x, y, (1.0, 1)), table(x, y, None), _SAMPLED_PARAMS
    )  # fmt: skip
    return Case(
        subject=f"{setting.method}/sampled",
        task=setting.task,
        neighbours=f"{_MANY} rows at one end of a feature, one at the other end or none; sampled",
        fit=pair.fit,
        observe=_parameters,
        trials=_SAMPLED_TRIALS,
    )


def _parameters(model: Any) -> np.ndarray:
    """Return all filters and offsets, the models' only parameters."""
    return np.concatenate([model.filters_.ravel(), model.offsets_.ravel()]).astype(np.float64)


CASES = {"dp-llm": clipped_throughout, "dp-llm/sampled": sampled}
