"""A pair for any method: one extreme row in a small table, and the scores that it moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table
from dprepro.data.domain import Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.contract import Estimator, finest_outputs
from dprepro.methods import registry
from dprepro.privacy.sensitivity import REPLACE_ONE

_ROWS = 20
_FEATURES = (NumericFeature("x", 0.0, 1.0),)


def general_case(setting: AuditSetting) -> Case:
    """Return a case that knows nothing of the method but its encoding and its neighbours.

    All rows lie at one end of the only feature, with both labels; the canary at the other end. It
    is there or not, or, under replace-one, has one label or the other.
    """
    binary = setting.task != "regression"
    domain = Domain(_FEATURES, ("0", "1") if binary else (0.0, 1.0))
    crowd_x, crowd_y = np.zeros(_ROWS), np.arange(_ROWS) % 2
    replaced = registry.get(setting.method).adjacency == REPLACE_ONE
    present = table(crowd_x, crowd_y, canary=(1.0, 1))
    absent = table(crowd_x, crowd_y, canary=(1.0, 0) if replaced else None)
    pair = MethodPair(setting, domain, present, absent)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{_ROWS} rows at one end of a feature, one at the other end "
            + ("with the highest or the lowest label" if replaced else "or none")
        ),
        fit=pair.fit,
        observe=Scores(setting.method, domain, (0.0, 1.0)),
    )


def table(x: np.ndarray, y: np.ndarray, canary: tuple[float, int] | None) -> Table:
    """Return a table of one feature "x" with the canary's (x, y), if any, as last row."""
    if canary is not None:
        x, y = np.append(x, canary[0]), np.append(y, canary[1])
    return pd.DataFrame({"x": x}), y


@dataclass(frozen=True)
class Scores:
    """Observes a model's scores at some values of x, and the logarithms of their sizes.

    The latter show noise whose scale depends on the canary.
    """

    method: str
    domain: Domain
    at: tuple[float, ...]

    def __call__(self, model: Estimator) -> np.ndarray:
        """Return float64 (2 * values,)."""
        scores = self.at_values(model)
        return np.concatenate([scores, np.log(np.abs(scores) + np.finfo(float).tiny)])

    def at_values(self, model: Estimator) -> np.ndarray:
        """Return the scores alone, float64 (values * columns,): logits, probabilities or values."""
        X = pd.DataFrame({"x": list(self.at)})
        encoded = ENCODINGS[registry.get(self.method).encoding](self.domain).transform(X)
        return np.asarray(finest_outputs(model, encoded), dtype=np.float64).ravel()
