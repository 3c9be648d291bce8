"""Logistic regression, private and not."""

from __future__ import annotations

from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import REPEATS_NEVER, REPEATS_SOLVER, Guarantee, Method, Setting
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.standing import Noise

_CLASSIFICATION: frozenset[TaskKind] = frozenset({"binary"})
_REFERENCE = "Chaudhuri, Monteleoni, Sarwate 2011, as in diffprivlib 0.6.6"


def _build_private(setting: Setting, **params: Any) -> Estimator:
    from dprepro.baselines.logistic.estimator import DPLogisticRegression

    return DPLogisticRegression(
        epsilon=setting.epsilon, domain=setting.domain, random_state=setting.seed, **params
    )


def _build_private_fair(setting: Setting, **params: Any) -> Estimator:
    sound = {"data_norm": 1.0, "fit_intercept": False, "tol": 1e-8, "max_iter": 10_000}
    return _build_private(setting, **sound, **params)


def _build_plain(setting: Setting, **params: Any) -> Estimator:
    from dprepro.baselines.logistic.estimator import PlainLogisticRegression

    return PlainLogisticRegression(random_state=setting.seed, **params)


def _build_plain_fair(setting: Setting, **params: Any) -> Estimator:
    return _build_plain(setting, fit_intercept=False, max_iter=10_000, **params)


def _build_standardized(setting: Setting, **params: Any) -> Estimator:
    from dprepro.baselines.logistic.estimator import StandardizedLogisticRegression

    return StandardizedLogisticRegression(random_state=setting.seed, **params)


METHODS = [
    Method(
        name="dp-logistic",
        title="DP logistic regression (as published)",
        tasks=_CLASSIFICATION,
        guarantee=Guarantee.NONE,
        adjacency=REPLACE_ONE,
        assumes=(
            "not covered by epsilon: the largest row norm",
            "one-hot categories, numeric features not scaled, library defaults: no guarantee",
        ),
        cite=(
            "chaudhuri2011",
            "holohan2019",
        ),
        reference=_REFERENCE + ", with its defaults",
        build=_build_private,
        takes_epsilon=True,
        noise=Noise.FLOATING_POINT,
        repeats_within=REPEATS_SOLVER,
        keeps_ledger=True,
        encoding="one-hot",
        defaults={"C": 1.0, "max_iter": 100},
    ),
    Method(
        name="dp-logistic-fair",
        title="DP logistic regression (fair)",
        tasks=_CLASSIFICATION,
        guarantee=Guarantee.PURE,
        adjacency=REPLACE_ONE,
        assumes=("public: bounds, categories, labels, number of rows",),
        cite=(
            "chaudhuri2011",
            "holohan2019",
        ),
        reference=_REFERENCE + ", on rows scaled to norm 1 by public bounds",
        build=_build_private_fair,
        takes_epsilon=True,
        noise=Noise.FLOATING_POINT,
        repeats_within=REPEATS_SOLVER,
        keeps_ledger=True,
        encoding="unit-norm",
        defaults={"C": 1.0},
    ),
    Method(
        name="logistic",
        title="Logistic regression (as published)",
        tasks=_CLASSIFICATION,
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("pedregosa2011",),
        reference="scikit-learn defaults on one-hot categories and numeric features as they are",
        build=_build_plain,
        takes_epsilon=False,
        repeats_within=REPEATS_NEVER,
        encoding="one-hot",
        defaults={"C": 1.0, "max_iter": 100},
    ),
    Method(
        name="logistic-standardized",
        title="Logistic regression (standardized)",
        tasks=_CLASSIFICATION,
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("pedregosa2011",),
        reference="scikit-learn defaults on one-hot categories and standardized numeric features",
        build=_build_standardized,
        takes_epsilon=False,
        repeats_within=REPEATS_SOLVER,
        encoding="one-hot",
        defaults={"C": 1.0, "max_iter": 100},
    ),
    Method(
        name="logistic-fair",
        title="Logistic regression (fair)",
        tasks=_CLASSIFICATION,
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("pedregosa2011",),
        reference="scikit-learn on one-hot categories and features scaled to [-1, 1] by the bounds",
        build=_build_plain_fair,
        takes_epsilon=False,
        repeats_within=REPEATS_SOLVER,
        encoding="symmetric",
        defaults={"C": 1.0},
    ),
]
