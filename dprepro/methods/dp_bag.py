"""DP-Bag as the paper runs it, and with a guarantee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import REPEATS_SOLVER, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.standing import Noise


def _estimator() -> Callable[..., Estimator]:
    from dprepro.baselines.dp_bag import DPBagClassifier

    return DPBagClassifier


def _build(inputs: str) -> Any:
    def build(setting: Setting, **params: Any) -> Estimator:
        return _estimator()(
            inputs=inputs, epsilon=setting.epsilon, delta=setting.delta, domain=setting.domain,
            random_state=setting.seed, **params,
        )  # fmt: skip

    return build


def _method(name: str, title: str, guarantee: Guarantee, inputs: str, assumes: str) -> Method:
    return Method(
        name=name,
        version=2,
        title=title,
        tasks=frozenset({"binary"}),
        guarantee=guarantee,
        adjacency=REPLACE_ONE,
        assumes=("public: bounds, categories, labels, number of rows", assumes),
        cite=("jordon2019",),
        reference="Jordon, Yoon, van der Schaar 2019, by the authors' code, every vote charged",
        build=_build(inputs),
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        repeats_within=REPEATS_SOLVER,
        defaults=defaults_of(_estimator, "inputs", "epsilon", "delta", "domain", "random_state"),
    )


METHODS = [
    _method(
        "dp-bag", "DP-Bag", Guarantee.NONE, "rows",
        "not covered by epsilon: the features of half of the rows, which the student learns from",
    ),
    _method(
        "dp-bag-sound", "DP-Bag (sound)", Guarantee.APPROXIMATE, "domain",
        "the student learns from rows drawn from the public domain",
    ),
]  # fmt: skip
