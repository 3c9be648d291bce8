"""LightGBM with its own defaults: the non-private column beside DPBoost."""

from __future__ import annotations

from dprepro.methods.registry import Made, not_private

# Quiet, and the same bits on every machine and in every company. With `deterministic` LightGBM
# wants to be told how to lay out its histograms, which it otherwise decides by a stopwatch.
# All that its defaults leave to the seed is which 200,000 rows (`subsample_for_bin`) fix the
# bin edges of a larger table. On credit card fraud that alone can move the AUROC by 0.2.
_REPEATABLE = {"n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}

METHODS = [
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
    )
]  # fmt: skip
