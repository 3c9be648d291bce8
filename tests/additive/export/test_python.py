"""The exported module says what the model says, with the standard library alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.export import predictor
from dprepro.additive.export.python import to_python
from tests.additive import small

NASTY = '"""' + 3 * "'" + "\\\n#{}\u2028"


def run(folder: Path, text: str, X: pd.DataFrame) -> pd.DataFrame:
    """Return what the module prints of a CSV, in a Python that finds no library."""
    (folder / "model.py").write_text(text, encoding="utf-8")
    X.to_csv(folder / "new.csv", index=False)
    outcome = subprocess.run(
        [sys.executable, "-I", "-S", "model.py", "new.csv"],
        cwd=folder, capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    (folder / "said.csv").write_text(outcome.stdout, encoding="utf-8")
    return pd.read_csv(folder / "said.csv")


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
def test_the_module_predicts_as_the_model(tmp_path: Path, more: dict) -> None:
    model, X = small.model(**more), small.rows()
    said = run(tmp_path, to_python(model), X)
    np.testing.assert_allclose(said["log_odds"], model.decision_function(X), rtol=0, atol=1e-12)
    expected = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(said["probability"], expected, rtol=0, atol=1e-12)
    assert said["prediction"].tolist() == np.array(model.labels_)[model.predict(X)].tolist()
    parts = said[[f"contribution of {name}" for name in model.term_names]]
    np.testing.assert_array_equal(parts, model.contributions(X))


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_it_reads_a_model_file_as_well(task: str, more: dict) -> None:
    model, X = small.model(task, **more), small.rows(100)
    values = json.loads(json.dumps(small.file(task, **more)))
    said = [predictor.predict(values, row) for row in X.to_dict("records")]
    if task == "binary":
        expected = model.predict_proba(X)[:, 1]
        found = [row["probability"] for row in said]
    else:
        expected, found = model.predict(X), [row["prediction"] for row in said]
        assert {-1.0, 2.0} <= {*found}
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_names_stay_texts_in_the_module() -> None:
    model = small.model(features=[small.numeric(NASTY, [1.0])], labels=["no", NASTY])
    names: dict = {"__name__": "exported"}
    exec(to_python(model), names)
    assert names["MODEL"]["labels"][1] == names["MODEL"]["features"][0]["name"] == NASTY
    said = names["predict"](names["MODEL"], {NASTY: 3.0})
    assert said["log_odds"] == model.decision_function(pd.DataFrame({NASTY: [3.0]}))[0]


def test_log_odds_can_be_far_from_zero() -> None:
    for score, probability in ((-(2**35), 0.0), (2**35, 1.0)):
        said = predictor.predict(small.file(intercept=score, features=[]), {})
        assert said["probability"] == probability


@pytest.mark.parametrize("arguments", [[], ["nowhere.csv"]])
def test_a_missing_file_is_one_line_with_the_usage(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "model.py").write_text(to_python(small.model()), encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-I", "-S", "model.py", *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert outcome.returncode == 1
    (line,) = outcome.stderr.splitlines()
    assert "usage: python model.py NEW.csv" in line
