"""The ONNX graph says what the model says."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.export.onnx import free_prefix, save_onnx, to_onnx
from dprepro.additive.export.plain import free_name
from dprepro.additive.model import AdditiveModel
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.additive.export import odd


def answers(
    model: AdditiveModel, X: pd.DataFrame, missing: Collection[str] = MISSING_TEXTS
) -> dict[str, np.ndarray]:
    pytest.importorskip("onnx")
    return run_graph(to_onnx(model, missing).SerializeToString(), X)


def run_graph(graph: bytes, X: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the outputs of a graph, (n,) each; notes are in the words of `dprepro predict`."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(graph)
    inputs = {
        name: (
            X[[name]].fillna("").to_numpy(dtype=object)
            if not pd.api.types.is_numeric_dtype(X[name])
            else X[[name]].to_numpy(dtype=np.float64)
        )
        for name in X
    }
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, inputs), strict=True))
    codes = found.pop(free_name("notes", list(X)))
    assert codes.shape == X.shape
    assert {array.shape for array in found.values()} == {(len(X), 1)}
    said = {name: array[:, 0] for name, array in found.items()}
    return said | {"notes": written(session, codes)}


def written(session: Any, codes: np.ndarray) -> np.ndarray:
    """Return notes in the words of `dprepro predict`, as the metadata of a graph say."""
    about = session.get_modelmeta().custom_metadata_map
    words, features = json.loads(about["notes"]), json.loads(about["features"])
    return np.array(
        [
            "; ".join(
                f"{name}: {words[code]}" for name, code in zip(features, row, strict=True) if code
            )
            for row in codes
        ]
    )


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
        if name == "notes":
            assert ["age: infinite" in note for note in said[name]] == refused
        elif name == "prediction" and task == "binary":
            assert [text == "" for text in said[name]] == refused
        else:
            assert np.isnan(said[name]).tolist() == refused


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_odd_rows_are_predicted_and_noted_as_predict_does(task: str, tmp_path: Path) -> None:
    """Numbers are numbers here, and texts have no blanks but those of categories."""
    model, rows = odd.fitted(task), odd.random_rows(5)
    said = odd.predicted(model, rows, tmp_path)
    assert said is not None
    found = answers(model, odd.as_read(model, tmp_path / "rows.csv"))
    for name in {"log_odds", "probability"} & {*said.columns}:
        atol = 1e-12 if name == "log_odds" else 1e-6
        np.testing.assert_allclose(found[name], said.numbers(name), rtol=0, atol=atol)
    if task == "binary":
        assert found["prediction"].tolist() == said.columns["prediction"]
    else:
        wanted = said.numbers("prediction")
        np.testing.assert_allclose(found["prediction"], wanted, rtol=0, atol=1e-12)
    assert found["notes"].tolist() == said.columns["notes"]
    assert odd.counted(found["notes"]) == said.counts


def test_a_number_can_stand_for_a_missing_value() -> None:
    X = small.rows(4).assign(age=[-200.0, 30.0, np.nan, 98.0])
    expected = small.model().decision_function(X.assign(age=[np.nan, 30.0, np.nan, np.nan]))
    said = answers(small.model(), X, ["-200.0", "98"])["log_odds"]
    np.testing.assert_allclose(said, expected, rtol=0, atol=1e-12)
