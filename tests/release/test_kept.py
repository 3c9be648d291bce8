"""Whether a model can be kept follows from domain and settings: never found after its noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.file import LARGEST_KEPT_TARGET, encoded, model_from_text
from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.targets import LEAST_RANGE
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.privacy.ledger import tracking_noise
from dprepro.release.planning import _unfit
from tools.domains import BOUNDS, tried

RELEASABLE = [m.name for m in registry.all_methods().values() if not _unfit(m, "binary", False)]
BLOCK = 500


@pytest.mark.parametrize("method", RELEASABLE)
def test_drawn_domains_are_kept_or_refused_before_any_noise(method: str) -> None:
    share = 10 if method in ("dp-ebm-plus", "dp-ebm-sound") else 2
    # 576: a function of two bins that is made decreasing.
    outcomes = [tried(seed, method) for seed in (*range(share), 576)]
    assert "kept" in outcomes


@pytest.mark.parametrize("method", ["dp-ebm-plus", "dp-ebm-sound"])
@pytest.mark.parametrize("first", range(0, 5_000, BLOCK))
def test_ten_thousand_domains_are_kept_or_refused_before_any_noise(first: int, method: str) -> None:
    """5,000 of each method; every 500th has thousands of features or of categories."""
    seeds = range(first, first + BLOCK)
    outcomes = [tried(seed, method, large=seed % 500 == 499) for seed in seeds]
    assert outcomes.count("kept") > BLOCK / 2


@pytest.mark.parametrize("method", ["dp-ebm-plus", "dp-ebm-sound"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_feature_of_any_finite_bounds_is_kept(method: str, bounds: tuple[float, float]) -> None:
    domain = Domain((NumericFeature("x", *bounds),), ("no", "yes"))
    X = pd.DataFrame({"x": np.linspace(*bounds, 40)})
    model: Any = registry.get(method).build(Setting("binary", 1.0, 1e-5, domain, 3), n_epochs=2)
    model.fit(X, np.arange(40) % 2)
    loaded = model_from_text(encoded(model, "model"))
    np.testing.assert_array_equal(loaded.contributions(X), model.contributions(X))


@pytest.mark.parametrize("method", ["dp-ebm-plus", "dp-ebm-sound"])
def test_targets_of_any_bounds_are_kept_or_refused_before_any_noise(method: str) -> None:
    X = pd.DataFrame({"x": np.linspace(0, 1, 40)})
    for lower, upper in BOUNDS:
        domain = Domain((NumericFeature("x", 0, 1),), (lower, upper))
        model: Any = registry.get(method).build(
            Setting("regression", 1.0, 1e-5, domain, 3), n_epochs=2
        )
        with tracking_noise() as may_have_drawn:
            try:
                model.fit(X, np.linspace(lower, upper, 40))
            except ValueError:
                assert not may_have_drawn(), (lower, upper)
                is_small = max(abs(lower), abs(upper)) <= LARGEST_KEPT_TARGET
                assert not is_small or upper - lower < LEAST_RANGE
            else:
                loaded = model_from_text(encoded(model, "model"))
                np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
