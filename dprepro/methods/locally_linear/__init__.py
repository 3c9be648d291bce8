"""Locally linear maps, with and without privacy, and the small network beside them."""

from __future__ import annotations

import math
from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.entry import REPEATS_EPOCHS, Guarantee, Made, Setting, not_private, private
from dprepro.privacy.budget import Division
from dprepro.privacy.guarantee_status import Noise
from dprepro.privacy.sensitivity import ZERO_OUT

ADJACENCY = ZERO_OUT

_PAPER = "Harder, Bauer, Park 2020"
_TASKS: frozenset[TaskKind] = frozenset({"binary", "multiclass"})
_MAPS = {
    "n_maps": 30, "n_projected": 300, "inverse_temperature": 1 / 30, "epochs": 20,
    "batch_size": 500, "learning_rate": 0.001, "decay": 0.8, "decay_every": 5,
    "projection_sd": math.sqrt(0.5), "centre": 0.0, "spread": 1.0,
}  # fmt: skip
_NETWORK = {
    "hidden_layer_sizes": [500],
    "max_iter": 20,
    "batch_size": 200,
    "learning_rate_init": 0.001,
}


def _build_network(setting: Setting, **params: Any) -> Estimator:
    from dprepro.methods.locally_linear.network import Network

    settings: dict[str, Any] = {**_NETWORK, **params}
    settings["hidden_layer_sizes"] = tuple(settings["hidden_layer_sizes"])
    return Network(random_state=setting.seed, **settings)  # its `epsilon` is Adam's


METHODS = [
    private(
        name="dp-llm",
        title="DP-LLM",
        tasks=_TASKS,
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=(
            "public: bounds, categories, labels, number of rows",
            'with sampling="shuffle", as in the authors\' code: no guarantee',
        ),
        cite=("harder2020",),
        form="local maps",
        reference=f"{_PAPER}, Algorithm 1, on Poisson samples",
        build=Made("dprepro.methods.locally_linear.estimator:DPLLMClassifier"),
        noise=Noise.FLOATING_POINT,
        divides=Division.NONE,
        repeats_within=REPEATS_EPOCHS,
        encoding="unit-interval",
        defaults={
            "clip_norm": 0.5, "noise_multiplier": None, "accountant": "pld", "sampling": "poisson",
            **_MAPS,
        },
    ),
    not_private(
        name="llm",
        title="LLM",
        tasks=_TASKS,
        cite=("harder2020",),
        form="local maps",
        reference=f"{_PAPER}, section 3",
        build=Made("dprepro.methods.locally_linear.estimator:LLMClassifier"),
        repeats_within=REPEATS_EPOCHS,
        encoding="unit-interval",
        defaults=_MAPS,
    ),
    not_private(
        name="mlp",
        title="Fully connected network",
        tasks=_TASKS,
        cite=("pedregosa2011", "harder2020"),
        reference=f"scikit-learn, in place of the networks of {_PAPER}, section 4",
        build=_build_network,
        repeats_within=REPEATS_EPOCHS,
        encoding="unit-interval",
        defaults=_NETWORK,
    ),
]  # fmt: skip
