"""DPBoost, as its authors' code does it, with other options of that code, and without its leaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Build, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT
from dprepro.privacy.standing import Noise

if TYPE_CHECKING:
    from dprepro.dpboost.variants import Variant


def _estimator(task: TaskKind = "binary") -> Callable[..., Estimator]:
    from dprepro.dpboost import DPBoostClassifier, DPBoostRegressor

    return DPBoostRegressor if task == "regression" else DPBoostClassifier


_DEFAULTS = defaults_of(
    _estimator, "epsilon", "variant", "domain", "random_state",
    written="dprepro.dpboost.estimator._DPBoost",
)  # fmt: skip


def _made(setting: Setting, variant: str | Variant, **params: Any) -> Estimator:
    given: dict[str, Any] = {"domain": setting.domain, "random_state": setting.seed}
    return _estimator(setting.task)(setting.epsilon, variant=variant, **(given | params))


def _build(variant: str) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        return _made(setting, variant, **params)

    return build


_OPTIONS = {
    "parts": "equal", "scale": None, "start": "mean", "first_gain": False, "constant_draws": False,
    "numbers_first": False, "read_as_text": (), "noise_seed": None,
}  # fmt: skip
"""Of `of_code`; `scale` None is 0..1 for labels and -1..1 for other targets. `noise_seed` takes the
place of the task's own seed: all splits then share their draws, those of our generator."""


def _build_of_code(encoding: str) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        from dprepro.dpboost.variants import of_code

        options = {name: params.pop(name, value) for name, value in _OPTIONS.items()}
        seed, scale = options.pop("noise_seed"), options.pop("scale")
        scale = scale or ("-1..1" if setting.task == "regression" else "0..1")
        given = {} if seed is None else {"random_state": seed}
        if encoding == "indicators":
            from dprepro.data.encode import IndicatorEncoder  # imports pandas

            given["domain"] = IndicatorEncoder(setting.domain).domain
        return _made(setting, of_code(scale=scale, **options), **(given | params))

    return build


def _of_code(name: str, title: str, coding: str, encoding: str) -> Method:
    return Method(
        name=name,
        version=1,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=ZERO_OUT,
        assumes=(
            "not covered by epsilon: bin edges, mean of the target",
            "exact gains and counts decide how trees grow: no guarantee",
        ),
        cite=("li2020",),
        reference=(
            "Li, Wu, Wen, He 2020, as the authors' code with balance_partition=1 (squared loss on "
            f"labels 0/1, from their mean; {coding})"
        ),
        build=_build_of_code(encoding),
        takes_epsilon=True,
        encoding=encoding,
        noise=Noise.EXACT,
        keeps_ledger=True,
        defaults=_DEFAULTS | _OPTIONS,
    )


METHODS = [
    Method(
        name="dpboost",
        version=2,
        title="DPBoost",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=ZERO_OUT,
        assumes=(
            "not covered by epsilon: bin edges, mean of the target (regression)",
            "exact gains and counts decide how trees grow: no guarantee",
        ),
        cite=("li2020",),
        reference="Li, Wu, Wen, He 2020, as the authors' code (squared loss on -1/+1 labels)",
        build=_build("as-published"),
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        defaults=_DEFAULTS,
    ),
    Method(
        name="dpboost-sound",
        version=2,
        title="DPBoost (sound)",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.PURE,
        adjacency=ADD_REMOVE,
        assumes=("public: bounds, categories, target range or labels",),
        cite=("li2020",),
        reference="Li, Wu, Wen, He 2020, sections 4.1-4.3",
        build=_build("sound"),
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        defaults=_DEFAULTS,
    ),
    _of_code("dpboost-2021", "DPBoost (2021)", "categories as codes", "frame"),
    _of_code("dpboost-2021-indicators", "DPBoost (2021, one-hot)", "one-hot", "indicators"),
]
