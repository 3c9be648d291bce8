"""Gradient boosting and piecewise linear regression of other libraries, without privacy.

Scikit-learn's gradient boosting, XGBoost, LightGBM (with its own defaults, as the non-private
column beside DPBoost has it) and, as an optional extra, APLR.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprepro.estimators.contract import Estimator
from dprepro.methods.entry import Made, Setting, not_private


def _build_xgboost(setting: Setting, **params: Any) -> Estimator:
    # XGBoost takes seeds of 31 bits; by default it draws nothing, so none of them matters.
    seed = None if setting.seed is None else setting.seed % 2**31
    made = Made("xgboost:XGBClassifier", "xgboost:XGBRegressor", scaled=True, n_jobs=1)
    return made(setting, **({"random_state": seed} | params))


# Quiet, and the same bits on every machine and in every company. With `deterministic` LightGBM
# wants to be told how to lay out its histograms, which it otherwise decides by a stopwatch.
# All that its defaults leave to the seed is which 200,000 rows (`subsample_for_bin`) fix the
# bin edges of a larger table. On credit card fraud that alone can move the AUROC by 0.2.
_REPEATABLE = {"n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}


def _build(setting: Setting, **params: Any) -> Estimator:
    # Imported here, so that the method can be listed, and skipped with a reason, without it.
    from aplr import APLRClassifier, APLRRegressor

    from dprepro.estimators.targets import scaled_targets

    class Classifier(APLRClassifier):
        """APLR with the labels that it was given; the library turns them into texts."""

        def fit(self, X: Any, y: Any) -> Classifier:
            super().fit(X, y)
            self.classes_ = np.unique(y)
            return self

        def predict(self, X: Any) -> np.ndarray:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    estimator = scaled_targets(APLRRegressor) if setting.task == "regression" else Classifier
    seed = 0 if setting.seed is None else setting.seed % 2**31
    return estimator(random_state=seed, n_jobs=1, **params)


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
    not_private(
        name="lightgbm",
        title="LightGBM",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        cite=("ke2017",),
        reference="Ke et al. 2017, library defaults; categories by its native splits",
        build=Made(
            "lightgbm:LGBMClassifier", "lightgbm:LGBMRegressor", scaled=True, **_REPEATABLE
        ),
        # A DataFrame with category columns is what its defaults recognise.
        encoding="category",
        defaults={
            "boosting_type": "gbdt", "num_leaves": 31, "max_depth": -1, "learning_rate": 0.1,
            "n_estimators": 100, "subsample_for_bin": 200_000, "min_split_gain": 0.0,
            "min_child_weight": 1e-3, "min_child_samples": 20, "subsample": 1.0,
            "subsample_freq": 0, "colsample_bytree": 1.0, "reg_alpha": 0.0, "reg_lambda": 0.0,
        },
    ),
    not_private(
        name="aplr",
        title="APLR",
        tasks=frozenset({"binary", "regression"}),
        cite=("vonottenbreit2024",),
        reference="von Ottenbreit, De Bin 2024: package aplr, as in interpret-core",
        build=_build,
        encoding="one-hot",
        requires="aplr",
        defaults={"m": 3000, "v": 0.5, "num_first_steps_with_linear_effects_only": 0},
    ),
]  # fmt: skip
