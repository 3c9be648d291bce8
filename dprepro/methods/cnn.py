"""The convolutional networks beside locally linear maps: an optional extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division

REPEATS_NETWORK = 1e-2
"""Rounding of another processor can lead thousands of steps elsewhere. Accuracies of other seeds
differ by 9e-3 on Fashion-MNIST, relative; rounding is taken to do no more."""


def _estimator() -> Callable[..., Estimator]:
    from dprepro.baselines.cnn import ConvolutionalNetwork

    return ConvolutionalNetwork


def _private_estimator() -> Callable[..., Estimator]:
    from dprepro.baselines.cnn import DPConvolutionalNetwork

    return DPConvolutionalNetwork


def _build_private(setting: Setting, **params: Any) -> Estimator:
    return _private_estimator()(
        setting.epsilon, setting.delta, domain=setting.domain, random_state=setting.seed, **params
    )


def _build(setting: Setting, **params: Any) -> Estimator:
    return _estimator()(random_state=setting.seed, **params)


METHODS = [
    Method(
        name="cnn",
        title="Convolutional network",
        tasks=frozenset({"binary", "multiclass"}),
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("harder2020",),
        reference="Harder, Bauer, Park 2020, section 4.1, and PyTorch's example for MNIST",
        build=_build,
        takes_epsilon=False,
        repeats_within=REPEATS_NETWORK,
        encoding="unit-interval",
        requires="torch",
        defaults=defaults_of(_estimator, "random_state"),
    ),
    Method(
        name="dp-cnn",
        title="DP-SGD network",
        tasks=frozenset({"binary", "multiclass"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ZERO_OUT,
        assumes=("public: bounds, labels, number of rows",),
        cite=("harder2020",),
        reference="Harder, Bauer, Park 2020, Figure 8, and TensorFlow Privacy's tutorial for MNIST",
        build=_build_private,
        takes_epsilon=True,
        noise=Noise.FLOATING_POINT,
        divides=Division.NONE,
        repeats_within=REPEATS_NETWORK,
        keeps_ledger=True,
        encoding="unit-interval",
        requires="torch",
        defaults=defaults_of(_private_estimator, "epsilon", "delta", "domain", "random_state"),
    ),
]
