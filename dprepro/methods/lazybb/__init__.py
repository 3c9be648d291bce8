"""LazyBB: boosted 1-Rules and trees, with pure and approximate privacy and without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dprepro.methods.entry import Build, Guarantee, Made, Method, not_private, private
from dprepro.privacy.sensitivity import REPLACE_ONE

ADJACENCY = REPLACE_ONE

_PUBLIC = (
    "public: bounds, categories, labels, number of rows",
    "parameters are taken as public: tuning them on the same rows is not covered by epsilon",
)
_NOISE = ("the noise is too small, since the code divides by zeta twice: no guarantee",)
_DEFAULTS = {
    "rounds": 25, "learning_rate": 0.4, "density": 0.4, "splits": 5, "label_share": 0.5,
    "calibration": "tight", "margin": "signed", "diagnostics": False,
}  # fmt: skip


def _boosted(
    name: str, title: str, base: str, guarantee: Guarantee, section: str, **changed: Any
) -> Method:
    is_private = guarantee is not Guarantee.NONE or "calibration" in changed
    left_out = set() if is_private else {"calibration"}
    left_out |= set() if base == "topdown" else {"splits"}
    if base != "topdown" or guarantee is Guarantee.NONE:
        left_out |= {"label_share"}
    defaults = {name: value for name, value in _DEFAULTS.items() if name not in left_out} | changed
    build = Made("dprepro.methods.lazybb.estimator:LazyBBClassifier", base=base, **changed)
    return _method(name, title, guarantee, section, build, is_private, defaults)


def _method(
    name: str, title: str, guarantee: Guarantee, section: str, build: Build, is_private: bool,
    defaults: Mapping[str, Any],
) -> Method:  # fmt: skip
    shared: dict[str, Any] = {
        "name": name, "title": title, "tasks": frozenset({"binary"}), "cite": ("asadi2022",),
        "reference": f"Asadi, Carmosino, Jahanara, Rafiey, Salamatian 2022, {section}",
        "build": build, "encoding": "boolean", "defaults": defaults,
        "form": "" if "topdown" in name else "rules",
    }  # fmt: skip
    if not is_private:
        return not_private(**shared)
    return private(
        **shared,
        version=2,
        guarantee=guarantee,
        adjacency=ADJACENCY,
        assumes=_PUBLIC if guarantee is not Guarantee.NONE else _NOISE,
    )


_ONE_RULE = Made("dprepro.methods.lazybb.estimator:OneRule")
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
        "dp-one-rule", "DP 1-Rule", _PURE, "Algorithm 3", _ONE_RULE, True, {"calibration": "tight"}
    ),
    _method("one-rule", "1-Rule", _NONE, "section 4.1", _ONE_RULE, False, {}),
]  # fmt: skip
