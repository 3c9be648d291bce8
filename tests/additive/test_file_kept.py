"""What a file has room for is known before a fit draws noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.additive import file as module
from dprepro.additive.file import encoded, load_model, model_from_text, rehearsing, save_model
from dprepro.additive.model import AdditiveModel
from dprepro.additive.units import Powers
from dprepro.data.domain import CategoricalFeature, Domain, Feature, NumericFeature
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.privacy.ledger import tracking_noise
from dprepro.runtime.errors import DpreproError
from tests.additive import small

X_UNIT = pd.DataFrame({"x": np.linspace(0, 1, 40), "z": np.linspace(1, 0, 40)})
Y = np.arange(40) % 2
UNIT = (NumericFeature("x", 0, 1), NumericFeature("z", 0, 1))
CLASSIFIERS = (DPEBMClassifier, DPEBMPlusClassifier)


def refused(model: Any, X: Any = X_UNIT, y: Any = Y, *, match: str) -> None:
    with tracking_noise() as may_have_drawn, pytest.raises(ValueError, match=match):
        model.fit(X, y)
    assert not may_have_drawn()


def largest_of(model: Any, X: Any = X_UNIT, y: Any = Y) -> AdditiveModel:
    found: list[AdditiveModel] = []
    with rehearsing(found.append):
        model.fit(X, y)
    (largest,) = found
    return largest


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    ("feature", "monotone", "match"),
    [
        (NumericFeature("x", 0, 1), {"age": "increasing"}, "monotone: the model has no feature"),
        (CategoricalFeature("x", ("a",)), {"x": "increasing"}, "categories, which have no order"),
        (NumericFeature("n" * 10_001, 0, 1), None, "at most 10000 characters"),
        (CategoricalFeature("x", tuple(map(str, range(100_001)))), None, "at most 100000 items"),
        (CategoricalFeature("x", ("a", "\ud800")), None, "a lone surrogate"),
    ],
)
def test_what_no_file_can_hold_is_refused_before_any_noise(
    kind: Any, feature: Feature, monotone: Any, match: str
) -> None:
    column = X_UNIT["x"] if isinstance(feature, NumericFeature) else [feature.categories[0]] * 40
    X = pd.DataFrame({feature.name: column})
    model = kind(n_epochs=2, monotone=monotone, domain=Domain((feature,), ("no", "yes")))
    refused(model, X, match=match)


@pytest.mark.parametrize(
    ("model", "pairs", "edits"),
    [
        (DPEBMClassifier(n_epochs=2, monotone={"z": "decreasing"}), 0, 1),
        (DPEBMPlusClassifier(n_epochs=3, pairs=5), 1, 0),
    ],
)
def test_the_largest_model_has_all_that_a_fit_may_leave(model: Any, pairs: int, edits: int) -> None:
    largest = largest_of(model.set_params(domain=Domain(UNIT, ("no", "yes"))))
    assert (len(largest.pairs_), len(largest.edits_)) == (pairs, edits)
    for most, found in zip(largest.bins_, model.bins_, strict=True):
        assert set(found.cuts) <= set(most.cuts)
    assert len(encoded(largest, "")) > len(encoded(model, ""))
    assert not hasattr(model, "residual_sizes_") or model.residual_sizes_ is None
    assert model.ledger_.post_processing == [str(edit) for edit in model.edits_]


def test_what_a_rehearsal_refuses_is_not_fitted() -> None:
    def refuse(largest: AdditiveModel) -> None:
        raise DpreproError("no room")

    model = DPEBMPlusRegressor(n_epochs=2, domain=Domain(UNIT, (0.0, 1.0)))
    with rehearsing(refuse), tracking_noise() as may_have_drawn:
        with pytest.raises(DpreproError, match="no room"):
            model.fit(X_UNIT, X_UNIT["x"])
        assert not may_have_drawn()


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_rehearsal_has_a_ledger_that_no_file_holds(kind: Any) -> None:
    model = kind(1e5, 1e-5, n_epochs=2, domain=Domain(UNIT, ("no", "yes")))
    with pytest.raises(DpreproError, match="more than any promise of privacy"):
        encoded(largest_of(model), "the model")


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_feature_that_is_constant_by_its_bounds_is_kept(kind: Any, tmp_path: Path) -> None:
    X = pd.DataFrame({"x": np.full(40, 1e300), "z": X_UNIT["z"]})
    domain = Domain((NumericFeature("x", 1e300, 1e300, True), UNIT[1]), ("no", "yes"))
    model = kind(n_epochs=2, domain=domain).fit(X, Y)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.bins_[0].cuts.size == 0
    np.testing.assert_array_equal(loaded.contributions(X), model.contributions(X))


@pytest.mark.parametrize("kind", [DPEBMRegressor, DPEBMPlusRegressor])
def test_target_bounds_beyond_the_room_of_a_file_are_refused(kind: Any) -> None:
    domain = Domain(UNIT, (-1e265, 1e265))
    y = 1e265 * (2 * X_UNIT["x"] - 1)
    refused(kind(n_epochs=2, domain=domain), X_UNIT, y, match=r"go beyond 7\.9e\+261 in size")
    within = Domain(UNIT, (-7e261, 7e261))
    model = kind(n_epochs=2, domain=within, random_state=1).fit(X_UNIT, 7e-39 * y)
    loaded = model_from_text(encoded(model, ""))
    np.testing.assert_array_equal(loaded.predict(X_UNIT), model.predict(X_UNIT))


def test_the_noise_of_functions_that_are_zero_stays_what_it_is() -> None:
    nothing, level, rows = [np.zeros(3)], np.array([1.0]), [np.ones(3)]
    assert Powers.of(nothing, level, rows).functions == 0
    assert Powers.of(nothing, level, rows, [np.full(3, 0.3)]).functions == -31
    assert Powers.of([np.full(3, 1e-290)], level, rows, [np.full(3, 0.3)]).functions == -91
    assert Powers.of([np.ones(3)], level, rows, [np.full(3, 0.3)]).functions == -29


def test_a_model_of_more_than_16_mib_is_read_as_it_was_written(tmp_path: Path) -> None:
    """As that of 1,200 features has: `load_model` once refused it."""
    places = {
        "categories": [f"{k:9000}" for k in range(2_000)],
        "groups": [k % 3 for k in range(2_000)],
    }
    town = {**small.categorical("town", [0, 1, 2], ["a", "b", "c"], None), **places}
    model = small.model(features=[town])
    path = tmp_path / "model.json"
    save_model(model, path)
    assert path.stat().st_size > 16 * 2**20
    loaded = load_model(path)
    assert all(map(np.array_equal, loaded.shape_functions_, model.shape_functions_))


def test_a_file_that_would_not_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = DPEBMClassifier(n_epochs=1, domain=Domain(UNIT, ("no", "yes"))).fit(X_UNIT, Y)
    path = tmp_path / "model.json"
    save_model(model, path)
    size = path.stat().st_size
    monkeypatch.setattr(module, "MAX_BYTES", size - 1)
    for refused_by in (load_model, lambda path: save_model(model, path)):
        with pytest.raises(DpreproError, match=r"larger than a file|its file could have"):
            refused_by(path)
    assert path.stat().st_size == size
    monkeypatch.setattr(module, "MAX_BYTES", size)
    save_model(model, path)
    load_model(path)
