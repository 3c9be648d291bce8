"""Locally linear maps, with and without privacy, and the small network beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import REPEATS_EPOCHS, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division

_PAPER = "Harder, Bauer, Park 2020"
_TASKS: frozenset[TaskKind] = frozenset({"binary", "multiclass"})
_NETWORK = {
    "hidden_layer_sizes": [500],
    "max_iter": 20,
    "batch_size": 200,
    "learning_rate_init": 0.001,
}


def _private_estimator() -> Callable[..., Estimator]:
    from dprepro.llm import DPLLMClassifier

    return DPLLMClassifier


def _plain_estimator() -> Callable[..., Estimator]:
    from dprepro.llm import LLMClassifier

    return LLMClassifier


def _build_private(setting: Setting, **params: Any) -> Estimator:
    return _private_estimator()(
        setting.epsilon, setting.delta, domain=setting.domain, random_state=setting.seed, **params
    )


def _build_plain(setting: Setting, **params: Any) -> Estimator:
    return _plain_estimator()(random_state=setting.seed, **params)


def _build_network(setting: Setting, **params: Any) -> Estimator:
    from dprepro.llm.network import Network

    settings: dict[str, Any] = {**_NETWORK, **params}
    settings["hidden_layer_sizes"] = tuple(settings["hidden_layer_sizes"])
    return Network(random_state=setting.seed, **settings)


METHODS = [
    Method(
        name="dp-llm",
        title="DP-LLM",
        tasks=_TASKS,
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ZERO_OUT,
        assumes=(
            "public: bounds, categories, labels, number of rows",
            'with sampling="shuffle", as in the authors\' code: no guarantee',
        ),
        cite=("harder2020",),
        reference=f"{_PAPER}, Algorithm 1, on Poisson samples",
        build=_build_private,
        takes_epsilon=True,
        noise=Noise.FLOATING_POINT,
        divides=Division.NONE,
        repeats_within=REPEATS_EPOCHS,
        keeps_ledger=True,
        encoding="unit-interval",
        defaults=defaults_of(
            _private_estimator,
            "epsilon",
            "delta",
            "domain",
            "random_state",
            written="dprepro.llm.estimator.DPLLMClassifier",
        ),
    ),
    Method(
        name="llm",
        title="LLM",
        tasks=_TASKS,
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=("harder2020",),
        reference=f"{_PAPER}, section 3",
        build=_build_plain,
        takes_epsilon=False,
        repeats_within=REPEATS_EPOCHS,
        encoding="unit-interval",
        defaults=defaults_of(
            _plain_estimator, "random_state", written="dprepro.llm.base.LocallyLinearMaps"
        ),
    ),
    Method(
        name="mlp",
        title="Fully connected network",
        tasks=_TASKS,
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        cite=(
            "pedregosa2011",
            "harder2020",
        ),
        reference=f"scikit-learn, in place of the networks of {_PAPER}, section 4",
        build=_build_network,
        takes_epsilon=False,
        repeats_within=REPEATS_EPOCHS,
        encoding="unit-interval",
        defaults=_NETWORK,
    ),
]
