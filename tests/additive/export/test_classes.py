"""SQL and ONNX of a model of several classes say what `predict` says."""

import json

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bins import finest_bins
from dprepro.additive.export.dialects import DIALECTS
from dprepro.additive.export.onnx import to_onnx
from dprepro.additive.export.sql import to_sql
from dprepro.additive.file import model_from_json, model_to_json
from dprepro.additive.units import Powers
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.release.predicting import Wanted, predictions
from dprepro.runtime.errors import DpreproError
from tests.additive.export.databases import Duckdb, Sqlite

LABELS = ("a lot", "none", "it's some")
FEATURES = (
    NumericFeature("x", 0.0, 1.0, missing=True),
    CategoricalFeature("c", ("u", "v"), missing=True),
)
TYPES = {"x": "DOUBLE PRECISION", "c": "VARCHAR"}


def model(labels=LABELS, scale=1.0):
    """Return a model as a file has it: numbers of x in four bins, c in two, both may be missing."""
    rng = np.random.default_rng(0)
    made = DPEBMPlusClassifier()
    made.classes_, made.labels_ = np.arange(3), labels
    cuts = [np.array([0.25, 0.5, 0.75]), 2]
    made.bins_ = [finest_bins(f, c, 9) for f, c in zip(FEATURES, cuts, strict=True)]
    made.powers_ = Powers(-10, -10, 0)
    made.intercept_ = np.array([0.5, -0.25, 0.0])
    made.shape_functions_ = [
        scale * np.rint(1024 * rng.normal(size=(bins.n_bins, 3))) / 1024 for bins in made.bins_
    ]
    made.bin_counts_ = [np.full(bins.n_bins, 9.0) for bins in made.bins_]
    made.edits_, made.n_features_in_ = [], 2
    made.feature_names_in_ = np.array(["x", "c"], dtype=object)
    return model_from_json(model_to_json(made))


@pytest.mark.parametrize("database", [Sqlite(), Duckdb()], ids=lambda each: each.name)
@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_sql_says_what_predict_says(database, scale):
    found = model(scale=scale)
    rows = [(x, c) for x in (0.1, 0.3, 0.6, 0.9, None) for c in ("u", "v", "w", None)]
    X = pd.DataFrame(rows, columns=["x", "c"]).astype({"x": float})
    expected = predictions(found, X, Wanted(explain=True))
    said = database.answer(to_sql(found, "t", database.name), "t", TYPES, rows)
    assert said["prediction"] == expected["prediction"].tolist()
    assert len(set(said["prediction"])) == 3
    for label in LABELS:
        name = f"probability of {label}"
        np.testing.assert_allclose(said[name], expected[name], rtol=1e-9, atol=1e-290)
    scores = np.column_stack([said[f"log_odds of {label}"] for label in LABELS])
    np.testing.assert_allclose(scores, found.decision_function(X), atol=1e-9)
    assert said["notes"][2] == "c: unknown category"


@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_the_graph_says_what_predict_says(scale):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    found = model(scale=scale)
    session = runtime.InferenceSession(to_onnx(found).SerializeToString())
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == list(LABELS)
    rows = [(x, c) for x in (0.1, 0.3, 0.6, 0.9, np.nan, np.inf) for c in ("u", "v", "w", "")]
    x = np.array([[number] for number, _ in rows])
    c = np.array([[text] for _, text in rows], dtype=object)
    names = [output.name for output in session.get_outputs()]
    said = dict(zip(names, session.run(names, {"x": x, "c": c}), strict=True))
    known = np.isfinite(x[:, 0]) | np.isnan(x[:, 0])
    X = pd.DataFrame({"x": x[known, 0], "c": c[known, 0]})
    X["c"] = X["c"].where(X["c"] != "", None)
    np.testing.assert_allclose(said["log_odds"][known], found.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(said["probability"][known], found.predict_proba(X), atol=1e-6)
    expected = predictions(found, X, Wanted())["prediction"]
    assert said["prediction"][known, 0].tolist() == expected.tolist()
    assert said["prediction"].shape == (24, 1)
    assert said["prediction"][~known, 0].tolist() == [""] * 4
    assert np.isnan(said["log_odds"][~known]).all()


def test_a_value_that_predict_refuses_has_no_prediction():
    said = Sqlite().answer(to_sql(model(), "t", "sqlite"), "t", TYPES, [("inf", "u"), (0.5, "u")])
    assert said["prediction"][0] is None
    assert said["probability of none"][0] is None
    assert said["notes"][0] == "x: infinite"
    assert said["prediction"][1] in LABELS


def test_every_dialect_writes_all_columns():
    for dialect in DIALECTS:
        text = to_sql(model(("low", "mid", "high")), "t", dialect)
        for label in ("low", "mid", "high"):
            assert text.count(f"probability of {label}") == 1
            assert f"log_odds of {label}" in text


def test_labels_that_no_column_can_be_called_by_are_refused():
    with pytest.raises(DpreproError, match=r"BigQuery has no column that is called 'probability"):
        to_sql(model(("a/b", "c", "d")), "t", "bigquery")
    with pytest.raises(DpreproError, match=r"'probability of A' and 'probability of a' are one"):
        to_sql(model(("A", "a", "b")), "t", "duckdb")
    with pytest.raises(DpreproError, match="cannot be written as SQL"):
        to_sql(model(("a\\b", "c", "d")), "t", "sqlite")


def test_interpret_says_what_the_model_says():
    pytest.importorskip("interpret")
    found = model()
    machine = found.to_interpret()
    rows = [(x, c) for x in (0.1, 0.3, 0.6, 0.9, np.nan) for c in ("u", "v", None)]
    X = pd.DataFrame(rows, columns=["x", "c"])
    np.testing.assert_allclose(machine.predict_proba(X), found.predict_proba(X), atol=1e-12)
    expected = np.array(LABELS)[found.predict_proba(X).argmax(axis=1)]
    assert machine.predict(X).tolist() == expected.tolist()
    assert machine.explain_global().data(0)["scores"].shape[1] == 3
