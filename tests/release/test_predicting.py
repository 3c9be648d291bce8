"""Predictions for a table are those of the model for its rows, however they are stored.

What a model does not know of new rows is counted exactly, named safely, and bounded in size.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from dprepro.additive.bins import FeatureBins, numeric_bins
from dprepro.additive.editing import set_value
from dprepro.cli import app
from dprepro.data.card import Card
from dprepro.data.cell_values import Marks, read_as_categories
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.release import predicting
from dprepro.release import predicting as counting
from dprepro.release.predicting import Unknown, UnknownValuesError, Wanted, predict_table
from dprepro.rows.table import listening
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.commands import dprepro

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
    lines = (tmp_path / "o.csv").read_text(encoding="utf-8").splitlines()
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
    assert (tmp_path / "o.csv").read_text(encoding="utf-8") == "of before"
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


def categorical(*categories: str, other: bool = False, missing: bool = True) -> FeatureBins:
    labels = (*categories, *(["(other)"] if other else []), *(["(missing)"] if missing else []))
    feature = CategoricalFeature("sex", categories, missing)
    bins = np.arange(len(categories))
    return FeatureBins(feature, np.empty(0), bins, labels, len(labels) - 1 if missing else -1)


def line_of(bins: FeatureBins, values: list) -> str:
    """Return what is said of one column of rows; empty if it is nothing."""
    column = pd.Series(values, name=bins.feature.name)
    if isinstance(bins.feature, CategoricalFeature):
        stored = pa.chunked_array([pa.array(values)])
        read = read_as_categories(stored, bins.feature, Marks(["", "NA"]))
        column = pd.Series(read, name=column.name)
    unknown = Unknown([bins])
    unknown.count(column.to_frame())
    lines = unknown.lines()
    assert bool(unknown) == bool(lines)
    return "\n".join(lines)


def test_texts_that_are_no_category_are_counted_with_the_nearest_one() -> None:
    values = ["Male"] * 600 + ["female"] * 300 + ["x"] * 12 + [" Female "] * 88
    assert line_of(categorical("Female", "Male", other=True), values) == (
        "sex: 312 of 1,000 rows hold a category that the model does not know (counted as "
        "\"(other)\"): 'female' (300; did you mean 'Female'?), 'x' (12)"
    )


@pytest.mark.parametrize(
    ("categories", "text", "meant"),
    [
        (("0", "1"), "1.0", "1"),
        (("0", "1"), "01", "1"),
        (("1", "2"), "17", ""),  # one more digit is another number
        (("some-college", "masters"), "some college", "some-college"),
        (tuple(f"c{k}" for k in range(3000)), "C17", "c17"),
        (tuple(f"c{k}" for k in range(3000)), "d17", ""),  # too many to be compared with
    ],
)
def test_what_a_text_was_meant_to_be(categories: tuple[str, ...], text: str, meant: str) -> None:
    advice = f"; did you mean {meant!r}?" if meant else ""
    assert line_of(categorical(*categories), [text]).endswith(f": {text!r} (1{advice})")


def test_what_the_model_knows_is_not_mentioned() -> None:
    assert line_of(categorical("1", "2"), ["1", " 2", "NA", None]) == ""
    assert line_of(categorical("1", "2"), [1, 2]) == ""
    assert line_of(categorical("1", "2"), [1.0, np.nan]) == ""
    assert line_of(numeric_bins(NumericFeature("age", 17, 90, True), np.empty(0), 1), []) == ""
    values = [17, 90.0, np.nan]
    assert line_of(numeric_bins(NumericFeature("age", 17, 90, True), np.empty(0), 1), values) == ""


def test_numbers_that_are_no_category_are_counted_too() -> None:
    assert line_of(categorical("1", "2", missing=False), [1, 3, 3, 4]) == (
        "sex: 3 of 4 rows hold a category that the model does not know (the feature adds 0): "
        "'3' (2), '4' (1)"
    )


def test_numbers_outside_the_bounds_are_counted_with_the_farthest() -> None:
    bins = numeric_bins(NumericFeature("age", 17, 90.5), np.array([30.0]), -1)
    assert line_of(bins, [np.nextafter(17, 0), 17, 90.5, 91, 120, 50]) == (
        "age: 3 of 6 rows hold a number outside the bounds, 17 to 90.5 (counted as the bound): "
        "1 below (down to 16.999999999999996) and 2 above (up to 120)"
    )
    assert line_of(bins, [-1.0]) == (
        "age: 1 of 1 row holds a number outside the bounds, 17 to 90.5 (counted as the bound): "
        "1 below (down to -1)"
    )


def test_missing_values_are_counted_where_the_model_has_no_bin_for_them() -> None:
    assert line_of(categorical("a", missing=False), ["a", "NA", "b"]) == (
        "sex: 1 of 3 rows holds a category that the model does not know (the feature adds 0): "
        "'b' (1); 1 of 3 rows has no value, for which the model has no bin (the feature adds 0)"
    )


def test_values_and_names_do_not_steer_a_terminal() -> None:
    bins = categorical("a")
    said = line_of(bins, ["\x1b[2J", "a\nb", "\u202eb", "z" * 10_000])
    assert said.isprintable()
    assert r"'\x1b[2J' (1)" in said
    assert len(said) < 400
    object.__setattr__(bins.feature, "name", "\x1b]0;x\x07" + "n" * 1000)
    assert line_of(bins, ["b"]).isprintable()
    assert len(line_of(bins, ["b"])) < 250


def test_counts_add_up_over_chunks_and_few_values_are_shown() -> None:
    unknown = Unknown([categorical("a")])
    for chunk in range(4):
        values = ["often"] * 10 + [f"rare {chunk} {k}" for k in range(20)] + ["a"] * 70
        unknown.count(pd.DataFrame({"sex": pd.Categorical(values)}))
    (line,) = unknown.lines()
    assert line.startswith("sex: 120 of 400 rows hold")
    assert "'often' (40), 'rare" in line
    assert line.count("(1)") == 4
    assert line.endswith(", and 76 more")


def test_memory_is_bounded_in_distinct_values_and_in_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "MOST_REMEMBERED", 8)
    unknown = Unknown([categorical("a")])
    for chunk in range(3):
        values = [*[f"{'y' * 50_000} {chunk}"] * 5, "often", *(f"{chunk} {k}" for k in range(20))]
        unknown.count(pd.DataFrame({"sex": pd.Categorical(values)}))
    (feature,) = unknown._features
    assert len(feature._values) == 8
    assert max(map(len, map(str, feature._values))) <= 100
    (line,) = unknown.lines()
    assert line.startswith("sex: 78 of 78 rows hold")
    assert line.endswith("and more than 3 more")


def test_the_features_with_the_most_come_first_and_few_are_named() -> None:
    bins = [
        numeric_bins(NumericFeature(f"x{k}", 0, 1), np.empty(0), -1) for k in range(13)
    ]  # fmt: skip
    X = pd.DataFrame({f"x{k}": [9.0] * k + [0.0] * (20 - k) for k in range(13)})
    unknown = Unknown(bins)
    unknown.count(X)
    lines = unknown.lines()
    assert [line.split(":")[0] for line in lines[:10]] == [f"x{k}" for k in range(12, 2, -1)]
    assert lines[10:] == ["and 2 more features"]
    with pytest.raises(UnknownValuesError) as caught:
        unknown.refuse()
    assert all(f"\n  x{k}: {k} of 20" in str(caught.value) for k in range(1, 13))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of five rows beside the model file ``model.json``: what is wrong is in its notes."""
    (tmp_path / "model.json").write_text(json.dumps(small.file()))
    X = pd.DataFrame(
        {
            "age": [20.0, -5.0, 250.0, np.nan, 20.0],
            "hours": [8.0, 8.0, 8.0, np.nan, 8.0],
            "none missing": [1.0, 1.0, 1.0, 1.0, np.nan],
            "town": ["Bonn", "bonn", "Bonn", None, "Bonn"],
            "plain": ["Bonn", "Bonn", "Ulm", "Bonn", None],
        }
    )
    X.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


NOTES = [
    "",
    "age: below its bounds; town: unknown category",
    "age: above its bounds; plain: unknown category",
    "",  # missing values have bins there
    "none missing: missing; plain: missing",
]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("chunk_rows", [1, 2, 5])
def test_a_note_on_each_row_is_written_where_predictions_are_explained(
    table: Path, suffix: str, chunk_rows: int
) -> None:
    out = table.with_name(f"o.{suffix}")
    predict_table(small.model(), table, out, Wanted(explain=True), chunk_rows=chunk_rows)
    said = pd.read_csv(out, keep_default_na=False) if suffix == "csv" else pd.read_parquet(out)
    assert said["notes"].tolist() == NOTES
    assert [*said][-1] == "notes"
    predict_table(small.model(), table, out)
    assert "notes" not in (pd.read_csv if suffix == "csv" else pd.read_parquet)(out)


def test_a_column_to_keep_cannot_be_called_as_the_notes_are(table: Path) -> None:
    X = pd.read_csv(table).assign(notes="mine")
    X.to_csv(table, index=False)
    out = table.with_name("o.csv")
    with pytest.raises(DpreproError, match="--keep notes: a column of predictions has this name"):
        predict_table(small.model(), table, out, Wanted(explain=True, keep=("notes",)))
    predict_table(small.model(), table, out, Wanted(keep=("notes",)))
    assert pd.read_csv(out)["notes"].tolist() == ["mine"] * 5


LINES = [
    "age: 2 of 5 rows hold a number outside the bounds, 0 to 100 (counted as the bound): 1 below "
    "(down to -5) and 1 above (up to 250)",
    "plain: 1 of 5 rows holds a category that the model does not know (the feature adds 0): 'Ulm' "
    "(1); 1 of 5 rows has no value, for which the model has no bin (the feature adds 0)",
    "none missing: 1 of 5 rows has no value, for which the model has no bin (the feature adds 0)",
    'town: 1 of 5 rows holds a category that the model does not know (counted as "(other)"): '
    "'bonn' (1; did you mean 'Bonn'?)",
]


@pytest.mark.parametrize("output", ["-", "o.csv"])
def test_standard_error_names_what_is_unknown(table: Path, output: str) -> None:
    place = output if output == "-" else table.with_name(output)
    command = ["predict", str(table.with_name("model.json")), str(table), "-o", str(place)]
    outcome = CliRunner().invoke(app, command)
    assert outcome.exit_code == 0
    assert outcome.stderr.splitlines() == LINES
    assert len(outcome.stdout.splitlines()) == (6 if output == "-" else 1)


def test_nothing_is_said_of_rows_that_the_model_knows(table: Path) -> None:
    pd.read_csv(table).iloc[:1].to_csv(table, index=False)
    command = ["predict", str(table.with_name("model.json")), str(table), "-o", "-", "--strict"]
    outcome = CliRunner().invoke(app, command)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert len(outcome.stdout.splitlines()) == 2


@pytest.mark.parametrize("output", ["-", "o.csv", "o.parquet"])
def test_strict_refuses_unknown_values_and_writes_nothing(table: Path, output: str) -> None:
    # The first rows, a chunk and more, are known.
    known = pd.concat([pd.read_csv(table).iloc[:1]] * 70_000)
    pd.concat([known, pd.read_csv(table)]).to_csv(table, index=False)
    place = output if output == "-" else table.with_name(output)
    command = ["predict", str(table.with_name("model.json")), str(table), "-o", str(place)]
    outcome = CliRunner().invoke(app, [*command, "--strict"])
    assert outcome.stdout == ""
    assert isinstance(outcome.exception, DpreproError)
    lines = str(outcome.exception).splitlines()
    assert lines[0].startswith("--strict: the table holds values that the model does not know")
    assert lines[1:-1] == [f"  {line.replace('of 5', 'of 70,005')}" for line in LINES]
    assert {path.name for path in table.parent.iterdir()} == {"model.json", "new.csv"}
    assert dprepro(*command)


def test_a_table_without_rows_holds_nothing_unknown(table: Path) -> None:
    pd.read_csv(table).iloc[:0].to_csv(table, index=False)
    model = table.with_name("model.json")
    dprepro("predict", model, table, "-o", table.with_name("o.csv"), "--strict", "--explain")
    assert pd.read_csv(table.with_name("o.csv")).shape == (0, 10)
