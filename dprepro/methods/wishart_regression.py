"""Linear regression with Wishart noise."""

from __future__ import annotations

from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import REPEATS_PRODUCTS, Guarantee, Method, Setting
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.standing import Noise


def _build(setting: Setting, **params: Any) -> Estimator:
    from dprepro.baselines.wishart_regression import WishartLinearRegression

    return WishartLinearRegression(
        epsilon=setting.epsilon, domain=setting.domain, random_state=setting.seed, **params
    )


METHODS = [
    Method(
        name="dp-linear",
        version=2,
        title="DP linear regression (as published)",
        tasks=frozenset({"regression"}),
        guarantee=Guarantee.NONE,
        adjacency=REPLACE_ONE,
        assumes=(
            "not covered by epsilon: bounds of all columns and of the target, largest row norm",
            "Wishart noise is not private, and its library withdrew it: no guarantee",
        ),
        cite=(
            "sheffet2015",
            "imtiaz2016",
            "holohan2019",
        ),
        reference="Sheffet 2015; Imtiaz, Sarwate 2016; as diffprivlib 0.3 with its defaults",
        build=_build,
        takes_epsilon=True,
        noise=Noise.FLOATING_POINT,
        repeats_within=REPEATS_PRODUCTS,
        keeps_ledger=True,
        encoding="one-hot",
    )
]
