"""LazyBB: boosted 1-Rules and trees, with pure and approximate privacy and without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, LateMapping, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.standing import Noise

_PUBLIC = (
    "public: bounds, categories, labels, number of rows",
    "parameters are taken as public: tuning them on the same rows is not covered by epsilon",
)
_NOISE = ("the noise is too small, since the code divides by zeta twice: no guarantee",)
_BOOSTING = {"rounds", "learning_rate", "density", "margin", "diagnostics"}


def _classifier() -> Callable[..., Estimator]:
    from dprepro.lazybb import LazyBBClassifier

    return LazyBBClassifier


_DEFAULTS = defaults_of(_classifier)


def _boosted(
    name: str, title: str, base: str, guarantee: Guarantee, section: str, **changed: Any
) -> Method:
    private = guarantee is not Guarantee.NONE or "calibration" in changed
    taken = _BOOSTING | ({"calibration"} if private else set())
    taken |= {"splits"} if base == "topdown" else set()
    taken |= {"label_share"} if base == "topdown" and guarantee is not Guarantee.NONE else set()

    def build(setting: Setting, **params: Any) -> Estimator:
        return _classifier()(
            base,
            epsilon=setting.epsilon,
            delta=setting.delta,
            domain=setting.domain,
            random_state=setting.seed,
            **{**changed, **params},
        )

    return _method(
        name, title, guarantee, section, build, private,
        LateMapping(lambda: {k: _DEFAULTS[k] for k in _DEFAULTS if k in taken} | changed),
    )  # fmt: skip


def _one_rule(setting: Setting, **params: Any) -> Estimator:
    from dprepro.lazybb import OneRule

    return OneRule(
        epsilon=setting.epsilon, domain=setting.domain, random_state=setting.seed, **params
    )


def _method(
    name: str, title: str, guarantee: Guarantee, section: str, build: Any, private: bool,
    defaults: Mapping[str, Any],
) -> Method:  # fmt: skip
    return Method(
        name=name,
        version=2 if private else 1,
        title=title,
        tasks=frozenset({"binary"}),
        guarantee=guarantee,
        adjacency=REPLACE_ONE if private else None,
        assumes=() if not private else _PUBLIC if guarantee is not Guarantee.NONE else _NOISE,
        cite=("asadi2022",),
        reference=f"Asadi, Carmosino, Jahanara, Rafiey, Salamatian 2022, {section}",
        build=build,
        takes_epsilon=private,
        noise=Noise.EXACT if private else None,
        keeps_ledger=private,
        encoding="boolean",
        defaults=defaults,
    )


_NONE, _PURE, _APPROXIMATE = Guarantee.NONE, Guarantee.PURE, Guarantee.APPROXIMATE

METHODS = [
    _boosted("lazybb-1r", "LazyBB, 1-Rules", "1r", _PURE, "Theorem 7"),
    _boosted("lazybb-topdown", "LazyBB, trees", "topdown", _PURE, "Theorem 10"),
    _boosted(
        "lazybb-1r-approx", "LazyBB, 1-Rules (delta)", "1r", _APPROXIMATE, "section 10",
        composition="advanced",
    ),
    _boosted(
        "lazybb-topdown-approx", "LazyBB, trees (delta)", "topdown", _APPROXIMATE, "section 10",
        composition="advanced",
    ),
    _boosted(
        "lazybb-topdown-2022-code", "LazyBB, trees (authors' noise)", "topdown", _NONE,
        "by the authors' code", calibration="code",
        margin="agreements",
    ),
    _boosted("boosted-1r", "Boosted 1-Rules", "1r", _NONE, "Algorithm 1"),
    _boosted("boosted-topdown", "Boosted trees", "topdown", _NONE, "Algorithm 1"),
    _method(
        "dp-one-rule", "DP 1-Rule", _PURE, "Algorithm 3", _one_rule, True, {"calibration": "tight"}
    ),
    _method("one-rule", "1-Rule", _NONE, "section 4.1", _one_rule, False, {}),
]  # fmt: skip
