"""Predictions for a table are those of the model for its rows, however they are stored."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from dprepro.additive.editing import set_value
from dprepro.data.card import Card
from dprepro.release import predicting
from dprepro.release.predicting import Wanted, predict_table
from dprepro.rows.table import listening
from dprepro.runtime.errors import DpreproError
from tests.additive import small

ALL = Wanted(explain=True)


def stored(folder: Path, kind: str, X: pd.DataFrame) -> Path:
    """Write rows as a table of some format; return its path."""
    shuffled = X[[*reversed(X.columns)]].assign(unused="secret")
    if kind == "csv":
        path = folder / "new.csv"
        texts = shuffled.map(lambda x: f" {x} " if isinstance(x, str) else x)
        texts.to_csv(path, index=False, na_rep="?")
        return path
    if kind == "csv.gz":
        shuffled.to_csv(folder / "new.csv.gz", index=False)
        return folder / "new.csv.gz"
    if kind == "folder":
        for part in range(3):
            (folder / "new").mkdir(exist_ok=True)
            shuffled.iloc[part::3].to_parquet(folder / "new" / f"{part}.parquet")
        return folder / "new"
    if kind == "texts":  # numbers as text, as some export them
        for name in ("age", "hours", "none missing"):
            shuffled[name] = [f" {x!r}" if x == x else "NA" for x in X[name]]
    shuffled.to_parquet(folder / "new.parquet")
    return folder / "new.parquet"


def in_order(kind: str, X: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([X.iloc[part::3] for part in range(3)]) if kind == "folder" else X


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "folder", "texts"])
def test_every_format_gives_the_models_own_predictions(tmp_path: Path, kind: str) -> None:
    model, X = small.model(), small.rows()
    path = stored(tmp_path, kind, X)
    X = in_order(kind, X)
    predict_table(model, path, tmp_path / "said.parquet", ALL, chunk_rows=64)
    said = pd.read_parquet(tmp_path / "said.parquet")
    assert said["prediction"].tolist() == np.array(model.labels_)[model.predict(X)].tolist()
    np.testing.assert_array_equal(said["probability"], model.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(said["log_odds"], model.decision_function(X))
    np.testing.assert_array_equal(said.iloc[:, 4:-1], model.contributions(X))
    parts = said.drop(columns=["prediction", "probability", "log_odds", "notes"]).sum(axis=1)
    np.testing.assert_allclose(parts, said["log_odds"], rtol=0, atol=1e-12)


def test_a_csv_holds_the_same_numbers_to_the_bit(tmp_path: Path) -> None:
    model, X = small.model("regression"), small.rows()
    path = stored(tmp_path, "csv", X)
    for name in ("said.csv", "said.parquet"):
        predict_table(model, path, tmp_path / name, ALL)
    table = pa.csv.read_csv(tmp_path / "said.csv")
    said = pa.parquet.read_table(tmp_path / "said.parquet")
    assert table.column_names == said.column_names
    for name in said.column_names[:-1]:
        assert table[name].cast(pa.float64()).to_pylist() == said[name].to_pylist()
    assert said["prediction"].to_pylist() == model.predict(X).tolist()
    assert table["notes"].to_pylist() == said["notes"].to_pylist()
    total = np.array(said["sum"])
    assert np.clip(total, -1, 2).tolist() == said["prediction"].to_pylist() != total.tolist()


def test_intervals_are_two_more_columns(tmp_path: Path) -> None:
    model = small.model("regression", intervals=small.INTERVALS)
    path = stored(tmp_path, "csv", small.rows())
    predict_table(model, path, tmp_path / "o.parquet", Wanted(explain=True, interval=0.8))
    said = pd.read_parquet(tmp_path / "o.parquet")
    assert [*said][:4] == ["prediction", "lower", "upper", "sum"]
    ends = model.predict_interval(small.rows(), 0.8)
    np.testing.assert_array_equal(said[["lower", "upper"]], ends)


@pytest.mark.parametrize(
    ("task", "changes", "coverage", "message"),
    [
        ("binary", {}, 0.9, "prediction intervals are for regression"),
        ("regression", {}, 0.9, "does not know how wide"),
        ("regression", {"intervals": small.INTERVALS}, 0.4, "from 0.5 to 0.95, got 0.4"),
        ("regression", {"intervals": small.INTERVALS}, float("nan"), "got nan"),
    ],
)
def test_intervals_that_a_model_does_not_know_are_refused(
    tmp_path: Path, task: str, changes: dict, coverage: float, message: str
) -> None:
    path = stored(tmp_path, "csv", small.rows())
    with pytest.raises(DpreproError, match=message):
        predict_table(
            small.model(task, **changes), path, tmp_path / "o.csv", Wanted(interval=coverage)
        )
    assert not (tmp_path / "o.csv").exists()


def test_columns_can_be_kept_as_they_are(tmp_path: Path) -> None:
    X = small.rows(50).assign(id=[f"{k:03d}" for k in range(50)], number=2**60 + np.arange(50))
    X["number"] = X["number"].astype("Int64").mask(X.index == 3, pd.NA)
    X.to_parquet(tmp_path / "new.parquet")
    keep = ("number", "id", "town", "age", "id")
    predict_table(
        small.model(), tmp_path / "new.parquet", tmp_path / "o.parquet", Wanted(False, keep)
    )
    said = pa.parquet.read_table(tmp_path / "o.parquet")
    assert said.column_names == [*keep[:4], "prediction", "probability"]
    for name in keep[:3]:
        assert said[name].to_pylist() == pa.array(X[name], from_pandas=True).to_pylist()
    X.to_csv(tmp_path / "new.csv", index=False)
    predict_table(small.model(), tmp_path / "new.csv", tmp_path / "o.csv", Wanted(False, keep[:2]))
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert lines[0] == '"number","id","prediction","probability"'
    assert lines[2].startswith(f'"{2**60 + 1}","001",')


def test_labels_without_a_card_are_the_classes(tmp_path: Path) -> None:
    path = stored(tmp_path, "csv", small.rows(9))
    predict_table(small.model(labels=None), path, tmp_path / "o.csv")
    assert {*pd.read_csv(tmp_path / "o.csv")["prediction"]} <= {0, 1}


def test_an_edit_changes_what_is_predicted(tmp_path: Path) -> None:
    model, path = small.model("regression"), stored(tmp_path, "csv", small.rows())
    set_value(model, "town", "Bonn", 1.75)
    predict_table(model, path, tmp_path / "o.csv", ALL)
    said = pd.read_csv(tmp_path / "o.csv")["contribution of town"]
    assert (said[small.rows()["town"] == "Bonn"] == 1.75).all()


def test_a_model_of_an_array_finds_its_columns_by_their_names(tmp_path: Path) -> None:
    features = [small.numeric(f"x{k}", [30.0]) for k in range(2)]
    model = small.model("regression", features=features, named_columns=False)
    X = np.array([[1.0, 99.0], [99.0, 1.0]])
    pd.DataFrame(X, columns=["x0", "x1"])[["x1", "x0"]].to_csv(tmp_path / "n.csv", index=False)
    predict_table(model, tmp_path / "n.csv", tmp_path / "o.csv")
    assert pd.read_csv(tmp_path / "o.csv")["prediction"].tolist() == model.predict(X).tolist()


def test_a_card_says_how_the_table_is_written(tmp_path: Path) -> None:
    columns = ["town", "alter", "hours", "none missing", "plain"]
    card = Card.model_validate(
        {
            "name": "towns", "task": "binary", "target": "income", "positive": ">50K",
            "sources": [{"file": "x.csv", "rename": {"alter": "age"}}], "missing": ["-"],
            "format": {"separator": ";", "header": False, "columns": columns},
        }
    )  # fmt: skip
    model = small.model()
    X = small.rows(60)[["town", "age", "hours", "none missing", "plain"]]
    X.to_csv(tmp_path / "new.csv", sep=";", header=False, index=False, na_rep="-")
    predict_table(model, tmp_path / "new.csv", tmp_path / "o.csv", ALL, card)
    said = pd.read_csv(tmp_path / "o.csv")["log_odds"]
    np.testing.assert_allclose(said, model.decision_function(small.rows(60)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_without_rows_gives_one_with_columns_alone(tmp_path: Path, suffix: str) -> None:
    path = stored(tmp_path, "csv", small.rows(5).iloc[:0])
    predict_table(small.model(), path, tmp_path / f"o.{suffix}", ALL)
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    assert read(tmp_path / f"o.{suffix}").shape == (0, 10)


def refused(tmp_path: Path, X: pd.DataFrame, message: str, **given: Any) -> None:
    X.to_csv(tmp_path / "new.csv", index=False)
    output = given.pop("output", tmp_path / "o.csv")
    with pytest.raises(DpreproError, match=message) as caught:
        predict_table(given.pop("model", small.model()), tmp_path / "new.csv", output, **given)
    assert "secret" not in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {"new.csv"}


def test_what_is_wrong_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    X = small.rows(30)
    wrong = X.rename(columns={"hours": "hour"})
    refused(tmp_path, wrong, r"no column 'hours', a feature of the model; did you mean 'hour'\?")
    refused(
        tmp_path, X, "--keep: the table has no column 'ages'; did", wanted=Wanted(keep=("ages",))
    )
    text = X.astype({"age": object})
    text.loc[29, "age"] = "secret"
    refused(tmp_path, text, "column 'age' is to hold numbers, but holds text")
    refused(tmp_path, X.assign(hours=np.inf), "column 'hours' has infinite values")
    named = X.assign(prediction=1)
    refused(tmp_path, named, "--keep prediction: a column", wanted=Wanted(keep=("prediction",)))
    refused(tmp_path, X, "by its suffix. Allowed: .csv", output=tmp_path / "o.xlsx")
    refused(tmp_path, X, "is the table that is read", output=tmp_path / "new.csv")


def test_a_failure_in_a_late_chunk_leaves_no_part_of_the_file(tmp_path: Path) -> None:
    X = small.rows(300).astype({"age": object})
    X.loc[299, "age"] = np.inf
    (tmp_path / "o.csv").write_text("of before")
    X.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(DpreproError, match="infinite"):
        predict_table(small.model(), tmp_path / "new.csv", tmp_path / "o.csv", chunk_rows=50)
    assert (tmp_path / "o.csv").read_text() == "of before"
    assert {path.name for path in tmp_path.iterdir()} == {"new.csv", "o.csv"}


def test_standard_output_has_the_chunks_before_a_failure(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    X = small.rows(300)
    X.loc[[120, 299], "age"] = np.inf
    X.to_csv(tmp_path / "new.csv", index=False)
    for rows, lines in ((100, 101), (150, 0)):
        with pytest.raises(DpreproError, match="infinite"):
            predict_table(small.model(), tmp_path / "new.csv", None, chunk_rows=rows)
        sys.stdout.flush()
        assert capfdbinary.readouterr().out.count(b"\n") == lines


def test_predictions_do_not_go_into_the_folder_that_is_read(tmp_path: Path) -> None:
    folder = stored(tmp_path, "folder", small.rows(9))
    with pytest.raises(DpreproError, match="is the table that is read, or lies in it"):
        predict_table(small.model(), folder, folder / "said.parquet")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_progress_reaches_its_end(tmp_path: Path, kind: str) -> None:
    path, heard = stored(tmp_path, kind, small.rows()), []
    with listening(lambda what, done, total: heard.append((what, done, total))):
        predict_table(small.model(), path, tmp_path / "o.csv", chunk_rows=100)
    whats, dones, totals = zip(*heard, strict=True)
    assert {*whats} == {"predicting"}
    assert list(dones) == sorted(dones)
    assert dones[-1] == totals[-1] == (400 if kind == "parquet" else path.stat().st_size)


def test_memory_does_not_grow_with_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predicting, "CHUNK_ROWS", 2**11)
    peaks = []
    for times in (20, 80):
        X = pd.concat([small.rows()] * times)
        X.to_parquet(tmp_path / "new.parquet", row_group_size=2**11)
        del X
        tracemalloc.start()
        predict_table(small.model(), tmp_path / "new.parquet", tmp_path / "o.parquet", ALL)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_another_separator_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    small.rows(3).to_csv(path, index=False, sep=";")
    with pytest.raises(DpreproError, match=r'--card CARD: `format: \{separator: ";"\}`'):
        predict_table(small.model(), path, tmp_path / "out.csv")


def test_chunks_are_read_one_ahead_in_order_and_an_error_comes_in_its_place():
    made = []

    def chunks():
        for number in range(3):
            made.append(number)
            yield number
        raise DpreproError("a cell")

    read = predicting._one_ahead(chunks())
    for number in range(3):
        assert next(read) == number
        assert len(made) <= number + 2
    with pytest.raises(DpreproError, match="a cell"):
        next(read)
    assert list(predicting._one_ahead(iter(()))) == []
