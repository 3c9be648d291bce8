"""Neighbouring tables for any method, with the row that they differ in: the canary.

It is extreme, alone at another x, an outlier, or contradicts the others; or one of the kinds that a
method may treat in a way of its own, see `KINDS`: a missing value, a category that no other row
has, one of 300 categories, a number at bounds that are far away, values beyond the bounds, and a
row of the label that hardly any row has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, line, table
from dprepro.audit.transcript import ExactlyOverheard, Knows
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
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
    numeric = setting.task == "regression"
    domain = line(setting.task)
    x, y = np.ones(_ALIKE), np.zeros(_ALIKE, int)
    others = 1 if numeric else len(domain.target) - 1
    # A row with each other label is there in both worlds.
    x[:others], y[:others] = 0.0, np.arange(1, others + 1)
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, None), params)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{_ALIKE} rows, and one more at their end with the opposite "
            f"{'target' if numeric else 'label'} or none; all answers seen"
        ),
        fit=ExactlyOverheard(pair, knows, entry_of),
        observe=_evidence,
        trials=_ANSWER_TRIALS,
    )


def _evidence(outcome: Any) -> np.ndarray:
    return np.array([outcome.evidence])


_CANARY_ROWS = 300
_FEW = 3
_MANY = 300
_FAR = 1e12
_RANGE = (0.0, 1.0)
_TRIALS = 400


@dataclass(frozen=True)
class _Kind:
    """A kind of canary: its row, and what the domain and the crowd are beside it.

    Attributes
    ----------
    words
        What the canary is, for `Case.neighbours`.
    number, category
        The canary's value of the features "x" and "c"; NaN and None are missing.
    bounds
        Of "x".
    categories
        Of "c"; the crowd is spread over all but the last.
    missing
        Whether values may be missing; a few of the crowd's then are.
    few
        Whether hardly any other row has the canary's label or target.
    beyond
        By how much the canary's target exceeds its range; it is clipped.
    """

    words: str
    number: float = 1.0
    category: str | None = "a"
    bounds: tuple[float, float] = (0.0, 1.0)
    categories: tuple[str, ...] = ("a", "b", "other")
    missing: bool = False
    few: bool = False
    beyond: float = 0.0

    def domain(self, task: str) -> Domain:
        """Return the public domain."""
        features = (
            NumericFeature("x", *self.bounds, missing=self.missing),
            CategoricalFeature("c", self.categories, missing=self.missing),
        )
        labels = 3 if task == "multiclass" else 2
        return Domain(features, _RANGE if task == "regression" else tuple(map(str, range(labels))))

    def crowd(self, task: str) -> Table:
        """Return all rows but the canary: labels in turn, or few but the first."""
        place = np.arange(_CANARY_ROWS)
        labels = 3 if task == "multiclass" else 2
        y = place % labels
        if self.few:
            y = np.where(place < _FEW * (labels - 1), 1 + place % (labels - 1), 0)
        codes = place % (len(self.categories) - 1)
        x = np.full(_CANARY_ROWS, self.bounds[0] if abs(self.bounds[0]) < _FAR else 0.0)
        if self.missing:
            x[-_FEW:], codes[-2 * _FEW : -_FEW] = np.nan, -1
        c = pd.Categorical.from_codes(codes, pd.Index(list(self.categories)))
        return pd.DataFrame({"x": x, "c": c}), y.astype(float if task == "regression" else int)

    def row(self, task: str, target: int) -> Table:
        """Return the canary alone."""
        c = pd.Categorical([self.category], categories=list(self.categories))
        y = np.array([target])
        if task == "regression":
            y = y + self.beyond * (2 * target - 1)
        return pd.DataFrame({"x": [self.number], "c": c}), y


KINDS = {
    "missing": _Kind("with all values missing", math.nan, None, missing=True),
    "rare": _Kind("of a category of its own", category="other"),
    "many": _Kind(
        f"in the last of {_MANY} categories, of the label or target that hardly any row has",
        category=f"c{_MANY - 1}",
        categories=tuple(f"c{i}" for i in range(_MANY)),
        few=True,
    ),
    "extreme": _Kind(f"at the bound {_FAR:g}", number=_FAR, bounds=(-_FAR, _FAR)),
    "clipped": _Kind("beyond the bounds", number=_FAR, beyond=100.0),
    "smallest": _Kind("of the label or target that hardly any row has", few=True),
}


def canary_pair(setting: AuditSetting, name: str, params: dict[str, Any]) -> tuple[MethodPair, str]:
    """Return the pair of a kind, and what it is in words."""
    kind = KINDS[name]
    crowd, (row, target) = kind.crowd(setting.task), kind.row(setting.task, 1)
    absent = crowd
    replaced = registry.get(setting.method).adjacency == REPLACE_ONE
    if replaced:
        # Its place is taken by a row like the crowd's, with the other label.
        absent = _joined(crowd, (crowd[0].iloc[:1], np.array([0])))
    present = _joined(crowd, (row, target))
    pair = MethodPair(setting, kind.domain(setting.task), present, absent, params)
    words = (
        f"{_CANARY_ROWS} rows, and one {kind.words}, or {'one like them' if replaced else 'none'}"
    )
    return pair, words


def _joined(crowd: Table, row: Table) -> Table:
    (X, y), (last, target) = crowd, row
    return pd.concat([X, last], ignore_index=True), np.append(y, target.astype(y.dtype))


def canary_cases(method: str) -> dict[str, Callable[[AuditSetting], Case]]:
    """Return a case of every kind, seen by the scores of the canary's values and the crowd's."""
    return {f"{method}/{name}": partial(_seen_by_scores, name=name) for name in KINDS}


def _seen_by_scores(setting: AuditSetting, name: str) -> Case:
    pair, words = canary_pair(setting, name, {})
    probe = pd.concat([pair.present[0].iloc[-1:], pair.present[0].iloc[:1]], ignore_index=True)
    return pair.case(
        words, partial(scores_of, setting.method, pair.domain, probe), trials=_TRIALS, name=name
    )
