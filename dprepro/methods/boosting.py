"""Gradient boosting without privacy: scikit-learn's, and XGBoost."""

from __future__ import annotations

from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Made, Setting, not_private


def _build_xgboost(setting: Setting, **params: Any) -> Estimator:
    # XGBoost takes seeds of 31 bits; by default it draws nothing, so none of them matters.
    seed = None if setting.seed is None else setting.seed % 2**31
    made = Made("xgboost:XGBClassifier", "xgboost:XGBRegressor", scaled=True, n_jobs=1)
    return made(setting, **({"random_state": seed} | params))


METHODS = [
    not_private(
        name="gradient-boosting",
        title="Gradient boosting",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        cite=("friedman2001", "pedregosa2011"),
        reference="Friedman 2001, scikit-learn defaults on one-hot categories",
        build=Made(
            "sklearn.ensemble:GradientBoostingClassifier",
            "sklearn.ensemble:GradientBoostingRegressor",
            scaled=True,
        ),
        encoding="one-hot",
        defaults={"n_estimators": 100, "learning_rate": 0.1, "max_depth": 3, "subsample": 1.0},
    ),
    not_private(
        name="xgboost",
        title="XGBoost",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        cite=("chen2016",),
        reference="Chen, Guestrin 2016, library defaults on one-hot categories",
        build=_build_xgboost,
        encoding="one-hot",
        # None: the library's own default (100 trees of depth 6 at a rate of 0.3).
        defaults={"n_estimators": None, "learning_rate": None, "max_depth": None},
    ),
]
