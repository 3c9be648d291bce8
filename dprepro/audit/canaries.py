"""Canaries everywhere: rows of every kind that a method treats in a way of its own.

A missing value, a category that no other row has, one of 300 categories, a number at bounds that
are far away, values beyond the bounds, and a row of the label that hardly any row has.
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
from dprepro.audit.pairs import scores_of
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods import registry
from dprepro.privacy.sensitivity import REPLACE_ONE

_ROWS = 300
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
    words = f"{_ROWS} rows, and one {kind.words}, or {'one like them' if replaced else 'none'}"
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
