"""Logistic regression by noisy gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division


def _estimator() -> Callable[..., Estimator]:
    from dprepro.baselines.gradient_descent import DPGradientDescentClassifier

    return DPGradientDescentClassifier


def _build(setting: Setting, **params: Any) -> Estimator:
    return _estimator()(
        epsilon=setting.epsilon, delta=setting.delta, domain=setting.domain,
        random_state=setting.seed, **params,
    )  # fmt: skip


METHODS = [
    Method(
        name="dp-gd-logistic",
        title="DP gradient descent (logistic)",
        tasks=frozenset({"binary"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADD_REMOVE,
        assumes=("public: bounds, categories, labels",),
        reference="Song, Chaudhuri, Sarwate 2013, on all rows, under Gaussian privacy",
        cite=("song2013",),
        build=_build,
        takes_epsilon=True,
        noise=Noise.EXACT,
        divides=Division.GAUSSIAN,
        keeps_ledger=True,
        defaults=defaults_of(_estimator, "epsilon", "delta", "domain", "random_state"),
    )
]
