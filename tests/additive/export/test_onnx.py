"""The ONNX graph says what the model says."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.export.onnx import free_prefix, save_onnx, to_onnx
from dprepro.additive.model import AdditiveModel
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.runtime.errors import DpreproError
from tests.additive import small


def answers(
    model: AdditiveModel, X: pd.DataFrame, missing: Collection[str] = MISSING_TEXTS
) -> dict[str, np.ndarray]:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model, missing).SerializeToString())
    inputs = {
        name: (
            X[[name]].fillna("").to_numpy(dtype=object)
            if not pd.api.types.is_numeric_dtype(X[name])
            else X[[name]].to_numpy(dtype=np.float64)
        )
        for name in X
    }
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, inputs)
    assert all(array.shape == (len(X), 1) for array in found)
    return {name: array[:, 0] for name, array in zip(names, found, strict=True)}


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
def test_the_graph_classifies_as_the_model(more: dict) -> None:
    model, X = small.model(**more), small.rows()
    said = answers(model, X)
    np.testing.assert_allclose(said["log_odds"], model.decision_function(X), rtol=0, atol=1e-12)
    expected = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(said["probability"], expected, rtol=0, atol=1e-6)
    assert said["prediction"].tolist() == np.array(model.labels_)[model.predict(X)].tolist()


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
@pytest.mark.parametrize("limits", [[-1.0, 2.0], None])
def test_the_graph_predicts_numbers_as_the_model(limits: list | None, more: dict) -> None:
    model, X = small.model("regression", range=limits, **more), small.rows()
    said = answers(model, X)["prediction"]
    np.testing.assert_allclose(said, model.predict(X), rtol=0, atol=1e-12)


def test_texts_that_mean_a_missing_value_do_so_but_categories_do_not() -> None:
    model = small.model()
    X = small.rows(2).assign(town=["?", "NA"], plain=["?", "NA"])
    as_read = X.assign(town=[None, "NA"], plain=[None, "NA"])
    expected = model.decision_function(as_read)
    np.testing.assert_allclose(answers(model, X)["log_odds"], expected, rtol=0, atol=1e-12)


def test_names_of_features_do_not_clash_with_the_graphs_own() -> None:
    features = [small.numeric(name, [1.0]) for name in ("log_odds", "_0", "__constant1", "n")]
    model = small.model(features=features)
    X = pd.DataFrame({bins.feature.name: [0.5, 2.0] for bins in model.bins_})
    said = answers(model, X)
    np.testing.assert_allclose(said["log_odds_"], model.decision_function(X), rtol=0, atol=1e-12)
    assert free_prefix(["_a", "b"]) == "__"


def test_a_feature_without_a_name_is_refused() -> None:
    pytest.importorskip("onnx")
    with pytest.raises(DpreproError, match="without a name"):
        to_onnx(small.model(features=[small.numeric("", [1.0])]))


def test_without_onnx_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(DpreproError, match=r"pip install 'dprepro\[onnx\]'"):
        save_onnx(small.model(), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_an_infinite_number_gives_no_prediction(task: str, more: dict) -> None:
    """`dprepro predict` refuses it, which a graph cannot."""
    X = small.rows(4).assign(age=[np.inf, 30.0, -np.inf, np.nan])
    model = small.model(task, **more)
    said = answers(model, X)
    refused = [True, False, True, False]
    for name in said:
        if name == "prediction" and task == "binary":
            assert [text == "" for text in said[name]] == refused
        else:
            assert np.isnan(said[name]).tolist() == refused


def test_a_number_can_stand_for_a_missing_value() -> None:
    X = small.rows(4).assign(age=[-200.0, 30.0, np.nan, 98.0])
    expected = small.model().decision_function(X.assign(age=[np.nan, 30.0, np.nan, np.nan]))
    said = answers(small.model(), X, ["-200.0", "98"])["log_odds"]
    np.testing.assert_allclose(said, expected, rtol=0, atol=1e-12)
