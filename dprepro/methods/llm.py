"""Locally linear maps, with and without privacy, and the small network beside them."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.estimators.inputs import check_rows
from dprepro.llm import DPLLMClassifier, LLMClassifier
from dprepro.methods.registry import REPEATS_EPOCHS, Guarantee, Method, Setting
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


class Network(MLPClassifier):
    """scikit-learn's fully connected network; that it stops after its epochs is the point."""

    def fit(self, X: Any, y: Any) -> Network:
        """Fit without warning of slow convergence."""
        check_rows(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().fit(X, y)


def _build_private(setting: Setting, **params: Any) -> Estimator:
    return DPLLMClassifier(
        setting.epsilon, setting.delta, domain=setting.domain, random_state=setting.seed, **params
    )


def _build_plain(setting: Setting, **params: Any) -> Estimator:
    return LLMClassifier(random_state=setting.seed, **params)


def _build_network(setting: Setting, **params: Any) -> Estimator:
    settings: dict[str, Any] = {**_NETWORK, **params}
    settings["hidden_layer_sizes"] = tuple(settings["hidden_layer_sizes"])
    return Network(random_state=setting.seed, **settings)


def _defaults(estimator: type, *excluded: str) -> dict[str, Any]:
    parameters = inspect.signature(estimator).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in excluded}


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
        defaults=_defaults(DPLLMClassifier, "epsilon", "delta", "domain", "random_state"),
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
        defaults=_defaults(LLMClassifier, "random_state"),
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
