"""Random forests, private and not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.standing import Noise


def _estimator() -> Callable[..., Estimator]:
    from dprepro.baselines.forests.estimator import DPRandomForest

    return DPRandomForest


def _build_private(setting: Setting, **params: Any) -> Estimator:
    return _estimator()(
        epsilon=setting.epsilon, domain=setting.domain, random_state=setting.seed, **params
    )


def _build_plain(setting: Setting, **params: Any) -> Estimator:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    from dprepro.estimators.targets import scaled_targets

    regression = setting.task == "regression"
    estimator = scaled_targets(RandomForestRegressor) if regression else RandomForestClassifier
    return estimator(random_state=setting.seed, n_jobs=1, **params)


METHODS = [
    Method(
        name="dp-random-forest",
        version=2,
        title="DP random forest",
        tasks=frozenset({"binary", "multiclass"}),
        guarantee=Guarantee.PURE,
        adjacency=ZERO_OUT,
        assumes=("public: bounds, categories, labels, number and order of rows",),
        cite=(
            "fletcher2017",
            "holohan2019",
        ),
        reference=(
            "Fletcher, Islam 2017, the trees of diffprivlib 0.6.6, with exact permute-and-flip"
        ),
        build=_build_private,
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        encoding="one-hot",
        defaults=defaults_of(_estimator, "epsilon", "domain", "random_state"),
    ),
    Method(
        name="random-forest",
        title="Random forest",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=(
            "breiman2001",
            "pedregosa2011",
        ),
        reference="Breiman 2001, scikit-learn defaults (100 trees) on one-hot categories",
        build=_build_plain,
        takes_epsilon=False,
        encoding="one-hot",
        defaults={"n_estimators": 100, "max_depth": None, "min_samples_leaf": 1},
    ),
]
