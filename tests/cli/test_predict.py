"""`dprepro predict`: the way from a fitted model to labels of new rows, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro.additive.file import load_model
from dprepro.cli import app
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.commands import dprepro
from tests.lab import Lab, lab

__all__ = ["lab"]


def test_new_rows_get_the_labels_of_the_card(lab: Lab) -> None:
    methods = [{"method": "ebm", "params": {"n_epochs": 20, "outer_bags": 1}}]
    config = lab.config(methods=methods, epsilons=[8], domain="public")
    path, out = lab.folder / "m.json", lab.folder / "said.csv"
    dprepro("fit", config, "--method", "ebm", "-o", path)
    said = dprepro("predict", path, lab.folder / "tiny.csv", "-o", out, "--keep", "y")
    assert said == f"{out}: predictions of 'y'; `probability` is that of 'yes'\n"
    found = pd.read_csv(out)
    assert [*found] == ["y", "prediction", "probability"]
    assert {*found["prediction"]} == {"not yes", "yes"}
    assert ((found["prediction"] == "yes") == (found["probability"] > 0.5)).all()
    X = pd.read_csv(lab.folder / "tiny.csv")[["a", "b"]]
    assert found["probability"].tolist() == load_model(path).predict_proba(X)[:, 1].tolist()
    assert ((found["prediction"] == "yes") == (found["y"] == "yes")).mean() > 0.6


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(small.file()))
    small.rows(40).to_csv(tmp_path / "new.csv", index=False)
    return path


def test_standard_output_gets_rows_alone(model: Path, tmp_path: Path) -> None:
    printed = dprepro("predict", model, tmp_path / "new.csv", "--output", "-", "--explain")
    dprepro("predict", model, tmp_path / "new.csv", "-o", tmp_path / "o.csv", "--explain")
    assert printed == (tmp_path / "o.csv").read_text(encoding="utf-8")
    assert printed.count("\n") == 41


def test_an_error_in_the_first_rows_leaves_standard_output_empty(
    model: Path, tmp_path: Path
) -> None:
    X = small.rows(40).astype({"age": object})
    X.loc[39, "age"] = "secret"
    X.to_csv(tmp_path / "new.csv", index=False)
    outcome = CliRunner().invoke(app, ["predict", *map(str, (model, tmp_path / "new.csv")), "-o-"])
    assert isinstance(outcome.exception, DpreproError)
    assert "column 'age' is to hold numbers" in str(outcome.exception)
    assert outcome.stdout == ""


def test_a_table_without_rows_gives_the_header_on_standard_output(
    model: Path, tmp_path: Path
) -> None:
    small.rows(3).iloc[:0].to_csv(tmp_path / "new.csv", index=False)
    said = dprepro("predict", model, tmp_path / "new.csv", "-o", "-")
    assert said == '"prediction","probability"\n'


def test_what_is_no_model_file_is_told_that_one_is_expected(model: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, message in (
        ("nope", r"nope: there is no such model file\. `dprepro release CARD` and `dprepro fit"),
        ("folder", r"folder: it is a folder\. Name a model file in it, such as model\.json"),
    ):
        with pytest.raises(DpreproError, match=message):
            dprepro("predict", tmp_path / name, tmp_path / "new.csv", "-o", "-")


def test_intervals_are_written_if_the_model_knows_them(model: Path, tmp_path: Path) -> None:
    model.write_text(json.dumps(small.file("regression", intervals=small.INTERVALS)))
    rows, out = tmp_path / "new.csv", tmp_path / "o.csv"
    dprepro("predict", model, rows, "-o", out, "--interval", "0.8")
    said = pd.read_csv(out)
    assert [*said] == ["prediction", "lower", "upper"]
    expected = load_model(model).predict_interval(small.rows(40), 0.8)
    assert said[["lower", "upper"]].to_numpy().tolist() == expected.tolist()
    out.unlink()
    with pytest.raises(DpreproError, match=r"from 0\.5 to 0\.95, got 2"):
        dprepro("predict", model, rows, "-o", out, "--interval", "2")
    model.write_text(json.dumps(small.file()))
    with pytest.raises(DpreproError, match="prediction intervals are for regression"):
        dprepro("predict", model, rows, "-o", out, "--interval", "0.8")
    assert not out.exists()


def test_the_model_is_not_written_over(model: Path, tmp_path: Path) -> None:
    before = model.read_text(encoding="utf-8")
    with pytest.raises(DpreproError, match="is the model file"):
        dprepro("predict", model, tmp_path / "new.csv", "-o", model)
    assert model.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"cuts"', '"cut"', "cut"),
        ('"intercept": ', '"intercept": 1e999, "x": ', "too large"),
        ('"task": "binary"', '"task": "eval"', "task"),
        ('"labels": ["<=50K"', '"labels": ["\\ud800"', "lone surrogate"),
    ],
)
def test_a_hostile_model_file_writes_nothing(
    model: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = model.read_text(encoding="utf-8")
    assert old in text
    model.write_text(text.replace(old, new, 1))
    with pytest.raises(DpreproError, match=message):
        dprepro("predict", model, tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "new.csv"}


def test_names_in_a_model_do_not_steer_the_terminal(model: Path, tmp_path: Path) -> None:
    values = small.file(labels=["no", "\x1b[2J"], target="\x1b]0;x\x07")
    model.write_text(json.dumps(values))
    said = dprepro("predict", model, tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert said.rstrip("\n").isprintable()


def test_a_card_can_say_how_the_csv_is_written(model: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.yaml"
    card.write_text(
        "name: x\ntask: binary\nfile: new.csv\ntarget: y\npositive: a\nformat: {separator: ';'}\n"
    )
    small.rows(40).to_csv(tmp_path / "new.csv", index=False, sep=";")
    with pytest.raises(DpreproError, match="no column 'age'"):
        dprepro("predict", model, tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    dprepro("predict", model, tmp_path / "new.csv", "-o", tmp_path / "o.csv", "--card", card)
    expected = small.model().predict_proba(small.rows(40))[:, 1]
    assert pd.read_csv(tmp_path / "o.csv")["probability"].tolist() == expected.tolist()
