"""Gradient boosting without privacy: scikit-learn's, and XGBoost."""

from __future__ import annotations

from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting


def _build_sklearn(setting: Setting, **params: Any) -> Estimator:
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    from dprepro.estimators.targets import scaled_targets

    if setting.task == "regression":
        return scaled_targets(GradientBoostingRegressor)(random_state=setting.seed, **params)
    return GradientBoostingClassifier(random_state=setting.seed, **params)


def _build_xgboost(setting: Setting, **params: Any) -> Estimator:
    from xgboost import XGBClassifier, XGBRegressor

    from dprepro.estimators.targets import scaled_targets

    estimator = scaled_targets(XGBRegressor) if setting.task == "regression" else XGBClassifier
    # XGBoost takes seeds of 31 bits; by default it draws nothing, so none of them matters.
    seed = None if setting.seed is None else setting.seed % 2**31
    return estimator(random_state=seed, n_jobs=1, **params)


METHODS = [
    Method(
        name="gradient-boosting",
        title="Gradient boosting",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=(
            "friedman2001",
            "pedregosa2011",
        ),
        reference="Friedman 2001, scikit-learn defaults on one-hot categories",
        build=_build_sklearn,
        takes_epsilon=False,
        encoding="one-hot",
        defaults={"n_estimators": 100, "learning_rate": 0.1, "max_depth": 3, "subsample": 1.0},
    ),
    Method(
        name="xgboost",
        title="XGBoost",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("chen2016",),
        reference="Chen, Guestrin 2016, library defaults on one-hot categories",
        build=_build_xgboost,
        takes_epsilon=False,
        encoding="one-hot",
        # None: the library's own default (100 trees of depth 6 at a rate of 0.3).
        defaults={"n_estimators": None, "learning_rate": None, "max_depth": None},
    ),
]
