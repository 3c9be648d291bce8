"""DPBoost, as its authors' code does it, with other options of that code, and without its leaks."""

from __future__ import annotations

from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.entry import Build, Guarantee, Made, Method, Setting, private
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT, Adjacency

ADJACENCY, SOUND_ADJACENCY = ZERO_OUT, ADD_REMOVE

_ESTIMATORS = (
    "dprepro.methods.dpboost.estimator:DPBoostClassifier",
    "dprepro.methods.dpboost.estimator:DPBoostRegressor",
)
_DEFAULTS = {
    "n_trees": 50, "trees_per_ensemble": 50, "learning_rate": 0.1, "max_depth": 6,
    "reg_lambda": 0.1, "max_bins": 255,
}  # fmt: skip
_OPTIONS = {
    "parts": "equal", "scale": None, "start": "mean", "first_gain": False, "constant_draws": False,
    "numbers_first": False, "read_as_text": (), "noise_seed": None,
}  # fmt: skip
"""Of `of_code`; `scale` None is 0..1 for labels and -1..1 for other targets. `noise_seed` takes the
place of the task's own seed: all splits then share their draws, those of our generator."""


def _build_of_code(encoding: str) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        from dprepro.methods.dpboost.variants import of_code

        options = {name: params.pop(name, value) for name, value in _OPTIONS.items()}
        seed, scale = options.pop("noise_seed"), options.pop("scale")
        scale = scale or ("-1..1" if setting.task == "regression" else "0..1")
        given = {} if seed is None else {"random_state": seed}
        if encoding == "indicators":
            from dprepro.data.encode import IndicatorEncoder  # imports pandas

            given["domain"] = IndicatorEncoder(setting.domain).domain
        made = Made(*_ESTIMATORS, variant=of_code(scale=scale, **options))
        return made(setting, **(given | params))

    return build


def _method(
    name: str, title: str, reference: str, build: Build, *, version: int = 1,
    guarantee: Guarantee = Guarantee.NONE, adjacency: Adjacency = ADJACENCY,
    observed: str = "bin edges, mean of the target", **more: Any,
) -> Method:  # fmt: skip
    return private(
        name=name,
        version=version,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=guarantee,
        adjacency=adjacency,
        assumes=(
            f"not covered by epsilon: {observed}",
            "exact gains and counts decide how trees grow: no guarantee",
        )
        if guarantee is Guarantee.NONE
        else ("public: bounds, categories, target range or labels",),
        cite=("li2020",),
        reference=f"Li, Wu, Wen, He 2020, {reference}",
        build=build,
        **({"defaults": _DEFAULTS} | more),
    )


def _of_code(name: str, title: str, coding: str, encoding: str) -> Method:
    return _method(
        name,
        title,
        "as the authors' code with balance_partition=1 (squared loss on "
        f"labels 0/1, from their mean; {coding})",
        _build_of_code(encoding),
        encoding=encoding,
        defaults=_DEFAULTS | _OPTIONS,
    )


METHODS = [
    _method(
        "dpboost",
        "DPBoost",
        "as the authors' code (squared loss on -1/+1 labels)",
        Made(*_ESTIMATORS, variant="as-published"),
        version=2,
        observed="bin edges, mean of the target (regression)",
    ),
    _method(
        "dpboost-sound",
        "DPBoost (sound)",
        "sections 4.1-4.3",
        Made(*_ESTIMATORS, variant="sound"),
        version=2,
        guarantee=Guarantee.PURE,
        adjacency=SOUND_ADJACENCY,
    ),
    _of_code("dpboost-2021", "DPBoost (2021)", "categories as codes", "frame"),
    _of_code("dpboost-2021-indicators", "DPBoost (2021, one-hot)", "one-hot", "indicators"),
]
