"""Linear regression, private and not."""

from __future__ import annotations

from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import REPEATS_PRODUCTS, Guarantee, Method, Setting
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.standing import Noise

_REGRESSION: frozenset[TaskKind] = frozenset({"regression"})


def _build_private_fair(setting: Setting, **params: Any) -> Estimator:
    from dprepro.baselines.linear_regression.estimator import DPLinearRegression

    return DPLinearRegression(
        epsilon=setting.epsilon, domain=setting.domain, random_state=setting.seed, **params
    )


def _build_plain(setting: Setting, **params: Any) -> Estimator:
    from sklearn.linear_model import LinearRegression

    return LinearRegression(**params)


def _build_plain_fair(setting: Setting, **params: Any) -> Estimator:
    from dprepro.baselines.linear_regression.estimator import PlainBoundedLinearRegression

    return PlainBoundedLinearRegression(domain=setting.domain, **params)


METHODS = [
    Method(
        name="dp-linear-fair",
        version=2,
        title="DP linear regression (fair)",
        tasks=_REGRESSION,
        guarantee=Guarantee.PURE,
        adjacency=REPLACE_ONE,
        assumes=("public: bounds, categories, target range, number of rows",),
        cite=(
            "zhang2012",
            "holohan2019",
        ),
        reference=(
            "Zhang et al. 2012, the mechanism of diffprivlib 0.6.6 with exact noise, on columns "
            "scaled to [-1, 1]"
        ),
        build=_build_private_fair,
        takes_epsilon=True,
        noise=Noise.EXACT,
        repeats_within=REPEATS_PRODUCTS,
        keeps_ledger=True,
        encoding="symmetric",
    ),
    Method(
        name="linear",
        title="Linear regression (as published)",
        tasks=_REGRESSION,
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("pedregosa2011",),
        reference="scikit-learn defaults on one-hot categories and numeric features as they are",
        build=_build_plain,
        takes_epsilon=False,
        repeats_within=REPEATS_PRODUCTS,
        encoding="one-hot",
    ),
    Method(
        name="linear-fair",
        title="Linear regression (fair)",
        tasks=_REGRESSION,
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("pedregosa2011",),
        reference="least squares on columns scaled to [-1, 1]",
        build=_build_plain_fair,
        takes_epsilon=False,
        repeats_within=REPEATS_PRODUCTS,
        encoding="symmetric",
    ),
]
