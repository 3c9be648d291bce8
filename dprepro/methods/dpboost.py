"""DPBoost, as its authors' code does it, with other options of that code, and without its leaks."""

from __future__ import annotations

from typing import Any

from dprepro.data.encode import IndicatorEncoder
from dprepro.dpboost import DPBoostClassifier, DPBoostRegressor
from dprepro.dpboost.variants import AS_PUBLISHED, SOUND, Variant, of_code
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Build, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.standing import Noise

_DEFAULTS = defaults_of(DPBoostClassifier, "epsilon", "variant", "domain", "random_state")


def _estimator(setting: Setting, variant: str | Variant, **params: Any) -> Estimator:
    estimator = DPBoostRegressor if setting.task == "regression" else DPBoostClassifier
    given: dict[str, Any] = {"domain": setting.domain, "random_state": setting.seed}
    return estimator(setting.epsilon, variant=variant, **(given | params))


def _build(variant: str) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        return _estimator(setting, variant, **params)

    return build


_OPTIONS = {
    "parts": "equal", "scale": None, "start": "mean", "first_gain": False, "constant_draws": False,
    "numbers_first": False, "read_as_text": (), "noise_seed": None,
}  # fmt: skip
"""Of `of_code`; `scale` None is 0..1 for labels and -1..1 for other targets. `noise_seed` takes the
place of the task's own seed: all splits then share their draws, those of our generator."""


def _build_of_code(encoding: str) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        options = {name: params.pop(name, value) for name, value in _OPTIONS.items()}
        seed, scale = options.pop("noise_seed"), options.pop("scale")
        scale = scale or ("-1..1" if setting.task == "regression" else "0..1")
        given = {} if seed is None else {"random_state": seed}
        if encoding == "indicators":
            given["domain"] = IndicatorEncoder(setting.domain).domain
        return _estimator(setting, of_code(scale=scale, **options), **(given | params))

    return build


def _of_code(name: str, title: str, coding: str, encoding: str) -> Method:
    return Method(
        name=name,
        version=1,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=AS_PUBLISHED.adjacency,
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
        adjacency=AS_PUBLISHED.adjacency,
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
        adjacency=SOUND.adjacency,
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
