"""Canaries everywhere: rows of every kind that a method treats in a way of its own.

A missing value, a category that no other row has, one of 300 categories, a number at bounds that
are far away, values beyond the bounds, and a row of the label that hardly any row has. DP-EBM+ is
seen by all its noisy answers; other methods by the scores of the canary's values and the crowd's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table
from dprepro.audit.cases.dp_ebm_plus import overheard
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.contract import Estimator, finest_outputs
from dprepro.methods import registry
from dprepro.privacy.sensitivity import REPLACE_ONE

_METHODS = ("dp-ebm-sound", "dpboost-sound", "lazybb-1r", "dp-llm")
_OVERHEARD = "dp-ebm-plus"

_ROWS = 300
_FEW = 3
_MANY = 300
_FAR = 1e12
_RANGE = (0.0, 1.0)
_TRIALS = 400
_ANSWER_TRIALS = 500


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
        place = np.arange(_ROWS)
        labels = 3 if task == "multiclass" else 2
        y = place % labels
        if self.few:
            y = np.where(place < _FEW * (labels - 1), 1 + place % (labels - 1), 0)
        codes = place % (len(self.categories) - 1)
        x = np.full(_ROWS, self.bounds[0] if abs(self.bounds[0]) < _FAR else 0.0)
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
        f"in the last of {_MANY} categories",
        category=f"c{_MANY - 1}",
        categories=tuple(f"c{i}" for i in range(_MANY)),
    ),
    "extreme": _Kind(f"at the bound {_FAR:g}", number=_FAR, bounds=(-_FAR, _FAR)),
    "clipped": _Kind("beyond the bounds", number=_FAR, beyond=100.0),
    "smallest": _Kind("of the label or target that hardly any row has", few=True),
}


def _pair(kind: _Kind, setting: AuditSetting, params: dict[str, Any]) -> MethodPair:
    crowd, (row, target) = kind.crowd(setting.task), kind.row(setting.task, 1)
    absent = crowd
    if registry.get(setting.method).adjacency == REPLACE_ONE:
        # Its place is taken by a row like the crowd's, with the other label.
        absent = _joined(crowd, (crowd[0].iloc[:1], np.array([0])))
    present = _joined(crowd, (row, target))
    return MethodPair(setting, kind.domain(setting.task), present, absent, params)


def _joined(crowd: Table, row: Table) -> Table:
    (X, y), (last, target) = crowd, row
    return pd.concat([X, last], ignore_index=True), np.append(y, target.astype(y.dtype))


def _words(kind: _Kind, pair: MethodPair) -> str:
    replaced = len(pair.present[1]) == len(pair.absent[1])
    return f"{_ROWS} rows, and one {kind.words}, or {'one like them' if replaced else 'none'}"


def _seen_by_scores(setting: AuditSetting, name: str) -> Case:
    kind = KINDS[name]
    pair = _pair(kind, setting, {})
    probe = pd.concat([pair.present[0].iloc[-1:], pair.present[0].iloc[:1]], ignore_index=True)
    return Case(
        subject=f"{setting.method}/{name}",
        task=setting.task,
        neighbours=_words(kind, pair),
        fit=pair.fit,
        observe=_RowScores(setting.method, pair.domain, probe),
        trials=_TRIALS,
    )


def _seen_by_answers(setting: AuditSetting, name: str) -> Case:
    kind = KINDS[name]
    pair = _pair(kind, setting, {"n_epochs": 2})
    return overheard(pair, name, _words(kind, pair), _ANSWER_TRIALS)


@dataclass(frozen=True)
class _RowScores:
    """Observes a model's scores of some rows, float64 (rows * columns,)."""

    method: str
    domain: Domain
    rows: pd.DataFrame

    def __call__(self, model: Estimator) -> np.ndarray:
        encoded = ENCODINGS[registry.get(self.method).encoding](self.domain).transform(self.rows)
        return np.asarray(finest_outputs(model, encoded), dtype=np.float64).ravel()


CASES: dict[str, Callable[[AuditSetting], Case]] = {
    **{f"{m}/{name}": partial(_seen_by_scores, name=name) for m in _METHODS for name in KINDS},
    **{f"{_OVERHEARD}/{name}": partial(_seen_by_answers, name=name) for name in KINDS},
}
