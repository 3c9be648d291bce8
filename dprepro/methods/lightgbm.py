"""LightGBM with its own defaults: the non-private column beside DPBoost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of

# Quiet, and the same bits on every machine and in every company. With `deterministic` LightGBM
# wants to be told how to lay out its histograms, which it otherwise decides by a stopwatch.
_REPEATABLE = {"n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}


def _estimator(task: TaskKind = "binary") -> Callable[..., Estimator]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    from dprepro.estimators.targets import scaled_targets

    return scaled_targets(LGBMRegressor) if task == "regression" else LGBMClassifier


def _build(setting: Setting, **params: Any) -> Estimator:
    # All that its defaults leave to the seed is which 200,000 rows (`subsample_for_bin`) fix the
    # bin edges of a larger table. On credit card fraud that alone can move the AUROC by 0.2.
    return _estimator(setting.task)(random_state=setting.seed, **(_REPEATABLE | params))


# What the task decides, and what does not change the model.
_NOT_PARAMETERS = (
    "objective", "class_weight", "random_state", "n_jobs", "importance_type", "kwargs",
)  # fmt: skip

METHODS = [
    Method(
        name="lightgbm",
        title="LightGBM",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("ke2017",),
        reference="Ke et al. 2017, library defaults; categories by its native splits",
        build=_build,
        takes_epsilon=False,
        # A DataFrame with category columns is what its defaults recognise.
        encoding="category",
        defaults=defaults_of(_estimator, *_NOT_PARAMETERS, written="lightgbm.sklearn.LGBMModel"),
    )
]
