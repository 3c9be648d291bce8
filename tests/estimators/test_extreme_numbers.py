"""Targets of any finite size: every regressor is as good as near 1, or refuses them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.file import load_model, save_model
from dprepro.data.domain import Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.targets import LARGEST_TARGET, LEAST_RANGE
from dprepro.methods.dp_ebm.ebm import EBMRegressor
from dprepro.methods.dp_ebm.estimator import DPEBMRegressor
from dprepro.methods.entry import Method, Setting
from dprepro.methods.registry import all_methods

ROWS = 200
REGRESSORS = sorted(name for name, one in all_methods().items() if "regression" in one.tasks)
QUICK: dict[str, dict[str, Any]] = {
    "ebm": {"outer_bags": 2, "n_epochs": 200},
    "random-forest": {"n_estimators": 20},
    "aplr": {"m": 60, "cv_folds": 2},
    "gradient-boosting": {"n_estimators": 50},
}
PUBLISHED = {name for name in REGRESSORS if name.startswith("dp-ebm-") and name[7:] in (
    "classic", "classic-2021", "classic-indicators", "gdp", "gdp-2021", "gdp-indicators", "joint",
)}  # fmt: skip
"""They do not centre targets, as the paper does not."""
REFUSED = ("scale it", "domain's target must be", "divide the target and its bounds")
NOT_IN_UNITS_OF_THE_TARGET = {"dp-linear", "toy-dp-ebm"}
"""As published: noise in units of the features, and a sigmoid of the sum."""

_RNG = np.random.default_rng(4)
X = pd.DataFrame({"a": _RNG.random(ROWS), "b": _RNG.normal(size=ROWS).clip(-4, 4)})
Y = (2 * X["a"] - 1 + 0.1 * X["b"]).to_numpy().clip(-2, 2)


def domain_of(scale: float, offset: float = 0.0) -> Domain:
    return Domain(
        (NumericFeature("a", 0.0, 1.0), NumericFeature("b", -4.0, 4.0)),
        target=(offset - 2 * scale, offset + 2 * scale),
        observed=(),
    )


def predicted(method: Method, scale: float, offset: float = 0.0) -> np.ndarray:
    domain = domain_of(scale, offset)
    epsilon, delta = (8.0, 1e-6) if method.takes_epsilon else (math.inf, 0.0)
    setting = Setting("regression", epsilon, delta, domain, 0)
    encoder = ENCODINGS[method.encoding](domain)
    model = method.build(setting, **QUICK.get(method.name, {}))
    rows = encoder.transform(X)
    return np.asarray(model.fit(rows, Y * scale + offset).predict(rows), dtype=np.float64)


def predicted_or_refused(method: Method, scale: float) -> np.ndarray | None:
    try:
        return predicted(method, scale)
    except ValueError as refused:
        if any(words in str(refused) for words in REFUSED):
            return None
        raise


def error(prediction: np.ndarray, scale: float, offset: float = 0.0) -> float:
    assert np.isfinite(prediction).all()
    return float(np.sqrt(np.mean(((prediction - offset) / scale - Y) ** 2)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REGRESSORS)
def test_targets_of_any_size_are_predicted_as_well_or_refused(name: str) -> None:
    method = all_methods()[name]
    usual = error(predicted(method, 1.0), 1.0)
    for scale in (2.0**-880, 1e-160, 1e-9, 1e12, 1e160, 2.0**890):
        found = predicted_or_refused(method, scale)
        if found is None:
            continue
        assert np.isfinite(found).all()
        if name not in NOT_IN_UNITS_OF_THE_TARGET:
            assert error(found, scale) < 1.2 * usual + 0.02, scale


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(REGRESSORS) - NOT_IN_UNITS_OF_THE_TARGET))
def test_targets_far_from_zero_are_predicted_as_well_or_refused(name: str) -> None:
    method = all_methods()[name]
    if name in PUBLISHED:
        with pytest.raises(ValueError, match="does not centre targets"):
            predicted(method, 1.0, 1e12)
        return
    usual = error(predicted(method, 1.0), 1.0)
    assert error(predicted(method, 1.0, 1e12), 1.0, 1e12) < 1.2 * usual + 0.02


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("power", [-880, -333, 501, 865])
@pytest.mark.parametrize(
    "name", ["ebm", "dp-ebm-sound", "dp-ebm-gdp", "dp-ebm-plus", "dpboost-sound", "s-bdt-sound"]
)
def test_a_power_of_two_changes_no_bit(name: str, power: int) -> None:
    method = all_methods()[name]
    scaled = predicted(method, math.ldexp(1.0, power))
    np.testing.assert_array_equal(np.ldexp(scaled, -power), predicted(method, 1.0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("scale", [LARGEST_TARGET * 4, LEAST_RANGE / 8, 5e-324])
def test_what_is_beyond_is_refused_or_finite(name: str, scale: float) -> None:
    found = predicted_or_refused(all_methods()[name], scale)
    assert found is None or np.isfinite(found).all()


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_features_of_any_size_are_read(size: float) -> None:
    rows = pd.DataFrame({"a": X["a"] * size, "b": X["b"]})
    domain = Domain(
        (NumericFeature("a", 0.0, size), NumericFeature("b", -4.0, 4.0)), (-2.0, 2.0), observed=()
    )
    for model in (
        EBMRegressor(outer_bags=2, n_epochs=200, random_state=0),
        DPEBMRegressor(8.0, sensitivity="sound", domain=domain, random_state=0),
    ):
        found = model.fit(rows, Y).predict(rows)
        assert error(found, 1.0) < 0.5


def test_messages_quote_no_value_of_a_row() -> None:
    y = Y.copy()
    y[0] = 1.2345e300
    with pytest.raises(ValueError, match=r"Input y has values beyond 8\.5e\+270: scale it"):
        EBMRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"at least 1\.2e-271 apart: scale y"):
        EBMRegressor().fit(X, Y * 1e-300)


def test_a_model_far_from_zero_is_read_back_as_it_is(tmp_path: Any) -> None:
    model = EBMRegressor(outer_bags=2, n_epochs=200, random_state=0).fit(X, Y + 1e12)
    save_model(model, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), model.predict(X))
