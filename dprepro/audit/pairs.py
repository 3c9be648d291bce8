"""Pairs for any method: a row that is extreme, alone at another x, an outlier, or contradicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, line, table
from dprepro.audit.transcript import ExactlyOverheard, Knows
from dprepro.data.domain import Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.contract import Estimator, finest_outputs
from dprepro.methods import registry
from dprepro.privacy.query import Query
from dprepro.privacy.sensitivity import REPLACE_ONE

_ROWS = 20
_FEATURES = (NumericFeature("x", 0.0, 1.0),)
_CROWD = 19
_FEW_TRIALS = 400
_TREND = 200
_OUTLIER = 100.0


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
    return pair.case(
        f"{_ROWS} rows at one end of a feature, one at the other end "
        + ("with the highest or the lowest label" if replaced else "or none"),
        Scores(setting.method, domain, (0.0, 1.0)),
    )


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
        return scores_of(self.method, self.domain, pd.DataFrame({"x": list(self.at)}), model)


def scores_of(method: str, domain: Domain, rows: pd.DataFrame, model: Estimator) -> np.ndarray:
    """Return a model's scores of some rows, float64 (rows * columns,)."""
    encoded = ENCODINGS[registry.get(method).encoding](domain).transform(rows)
    return np.asarray(finest_outputs(model, encoded), dtype=np.float64).ravel()


# --- methods that read x exactly: if rows differ in x, and only then, does the score depend on it -


def another_x(setting: AuditSetting, params: Mapping[str, Any] | None = None) -> Case:
    """Return a pair whose canary alone has another x, or has the crowd's, or is not there."""
    domain = line(setting.task)
    x, y = np.zeros(_CROWD), np.arange(_CROWD) % 2
    replaced = registry.get(setting.method).adjacency == REPLACE_ONE
    pair = MethodPair(
        setting,
        domain,
        present=table(x, y, (1.0, 1)),
        absent=table(x, y, (0.0, 1) if replaced else None),
        params=params or {},
    )
    return pair.case(
        f"{_CROWD} rows at one end of a feature, one at the other end or "
        + ("with them" if replaced else "none"),
        _Dependence(Scores(setting.method, domain, (0.0, 1.0))),
        trials=_FEW_TRIALS,
    )


@dataclass(frozen=True)
class _Dependence:
    """Observes the logarithm of how far the score at one end is from that at the other."""

    scores: Scores

    def __call__(self, model: Any) -> np.ndarray:
        scores = self.scores.at_values(model)
        spread = np.abs(np.subtract(*np.split(scores, 2))).max()
        return np.array([np.log(spread + np.finfo(float).tiny)])


# --- methods that read bounds from their rows: an outlier drowns a trend in noise -----------------


def outlier(setting: AuditSetting) -> Case:
    """Return a pair that differs in one row: one that fits in, or one of a hundred times its norm.

    The bounds of the domain allow both. All other rows follow a clear trend.
    """
    binary = setting.task == "binary"
    domain = Domain(
        (NumericFeature("x", -_OUTLIER, _OUTLIER),), ("0", "1") if binary else (0.0, 1.0)
    )
    x, y = np.resize([-1.0, 1.0], _TREND), np.resize([0, 1], _TREND)
    pair = MethodPair(
        setting, domain, present=table(x, y, (_OUTLIER, 0)), absent=table(x, y, (1.0, 1))
    )
    return pair.case(
        f"{_TREND} rows at -1 and 1 with a clear trend, and one at {_OUTLIER:g} or at 1",
        _Slope(Scores(setting.method, domain, (-1.0, 1.0))),
        trials=_FEW_TRIALS,
    )


@dataclass(frozen=True)
class _Slope:
    """Observes the slope, which the trend makes clear unless the noise is large."""

    scores: Scores

    def __call__(self, model: Any) -> np.ndarray:
        low, high = self.scores.at_values(model)
        return np.array([high - low])


# --- linear models whose answers are all seen -----------------------------------------------------

_ALIKE = 40
_ANSWER_TRIALS = 8000


def contradicted(
    setting: AuditSetting,
    params: Mapping[str, Any],
    knows: Callable[[MethodPair, Table], Callable[[], Knows]],
    entry_of: Callable[[Query], int],
) -> Case:
    """Return a crowd at one end of the only feature, and a canary that contradicts it there.

    The canary's row is as long as rows can be. Its label or target is opposite to the crowd's, so
    that its gradients are nearly as long as they can be, and its target is at a bound.

    Parameters
    ----------
    params
        Of the method.
    knows, entry_of
        See `ExactlyOverheard`.
    """
    binary = setting.task == "binary"
    domain = line(setting.task)
    x, y = np.ones(_ALIKE), np.zeros(_ALIKE, int)
    x[0], y[0] = 0.0, 1  # a row with the other label is there in both worlds
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, None), params)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{_ALIKE} rows, and one more at their end with the opposite "
            f"{'label' if binary else 'target'} or none; all answers seen"
        ),
        fit=ExactlyOverheard(pair, knows, entry_of),
        observe=_evidence,
        trials=_ANSWER_TRIALS,
    )


def _evidence(outcome: Any) -> np.ndarray:
    return np.array([outcome.evidence])
