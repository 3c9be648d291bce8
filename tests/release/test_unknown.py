"""What a model does not know of new rows is counted exactly, named safely, and bounded in size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from dprepro.additive.bins import FeatureBins, numeric_bins
from dprepro.cli import app
from dprepro.data.cells import Marks, read_as_categories
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.release import predicting as counting
from dprepro.release.predicting import Unknown, UnknownValuesError, Wanted, predict_table
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.commands import dprepro


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
