"""A measurement of held-out rows as a fit, so that all tests of curators look at its curator, too.

The model is public and always the same: all rows of the fit are held out.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin

from dprepro.additive.file import LoadedClassifier, LoadedRegressor, model_from_json
from dprepro.additive.measurement import Measurement
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger
from dprepro.release.curator import Grouping, HeldOut, measure
from tests.additive import small

GROUPINGS = (
    Grouping.of(NumericFeature("x", 0, 1), (0.3, 0.5)),
    Grouping.of(CategoricalFeature("c", ("a", "b"))),
)


def model(task: str) -> LoadedClassifier | LoadedRegressor:
    """Return a model of columns x and z in [0, 1], and c of "a" and "b"."""
    number = {"kind": "numeric", "lower": 0.0, "upper": 1.0, "cuts": [0.25, 0.5, 0.75]}
    bins = [f"bin {k}" for k in range(4)]
    letter = {"kind": "categorical", "categories": ["a", "b"], "groups": [0, 1]}
    features = [
        small.feature("x", 4, None, bins, **number),
        small.feature("z", 4, None, bins, **number),
        small.feature("c", 2, None, ["a", "b"], **letter),
    ]
    if task == "multiclass":
        return model_from_json(small.several(small.file(features=features)))
    if task == "counts":
        made = small.file("regression", features=features, range=[0.0, 2.0], link="log")
        return model_from_json({**made, "version": 5})
    return model_from_json(small.file(task, features=features))


class MeasuredClassifier(BaseEstimator):
    """Measures how good the model is on the rows of a fit."""

    task, target = "binary", None
    groupings = GROUPINGS
    domain = "that of the model"

    def __init__(self, adjacency: str = "add/remove-one", random_state: int | None = 0) -> None:
        self.adjacency = adjacency
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: Any) -> Any:
        """Set `measurement_` and `ledger_`."""
        self.ledger_ = Ledger(1.0, 1e-6, self.adjacency)  # type: ignore[arg-type]
        self.measurement_: Measurement = measure(
            model(self.task), HeldOut(X, y), self.ledger_, PrivacyBudget(1.0, 1e-6),
            self.groupings, 0.2, self.target, self.random_state,
        )  # fmt: skip
        return self


class MeasuredRegressor(RegressorMixin, MeasuredClassifier):
    """The same for a regression of targets from -1 to 2, counted from 1/2 beyond each bound."""

    task, target = "regression", (-1.0, 2.0)


class MeasuredOfCounts(MeasuredRegressor):
    """The same for counts from 0 to 2."""

    task, target = "counts", (0.0, 2.0)


class MeasuredOfClasses(MeasuredClassifier):
    """The same for three classes, of which the rows may have two."""

    task = "multiclass"
    groupings = (Grouping("y", ("0", "1", "2"), by_class=True), *GROUPINGS)
