"""SQL says what `predict` says, in three databases, whatever the types of columns are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.additive.export import predictor
from dprepro.additive.export.sql import to_sql
from dprepro.additive.file import LoadedClassifier, model_to_json
from dprepro.release.predicting import NewRows, Wanted, predictions
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.additive.export.databases import Database, postgresql

TYPES = {
    "integer": pa.int64(),
    "double": pa.float64(),
    "real": pa.float32(),
    "decimal": pa.decimal128(12, 2),
    "boolean": pa.bool_(),
    "text": pa.string(),
}
IN_SQL = {
    "integer": "BIGINT", "double": "DOUBLE PRECISION", "real": "REAL", "decimal": "DECIMAL(12, 2)",
    "boolean": "BOOLEAN", "text": "VARCHAR",
}  # fmt: skip
MANY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def predicted(model: LoadedClassifier, kind: str, values: Sequence[Any], folder: Path) -> list:
    """Return the log odds that `dprepro predict` writes of a Parquet file with a column x."""
    path = folder / "x.parquet"
    pa.parquet.write_table(pa.table({"x": pa.array(values, TYPES[kind])}), path)
    tables = [
        predictions(model, X, Wanted(explain=True))["log_odds"]
        for X, _ in NewRows(path, model).chunks()
    ]
    return np.concatenate(tables).tolist()


def said(
    database: Database, model: LoadedClassifier, kind: str, values: Sequence[Any], **more: Any
) -> list:
    rows = [(value,) for value in values]
    if database.name == "sqlite":  # which has neither decimals nor Booleans
        rows = [(float(v) if isinstance(v, Decimal) else v,) for (v,) in rows]
    query = to_sql(model, "t", database.name, **more)
    return database.answer(query, "t", {"x": IN_SQL[kind]}, rows)["log_odds"]


def in_python(model: LoadedClassifier, values: Sequence[Any]) -> list:
    record = model_to_json(model)
    return [predictor.predict(record, {"x": value})["log_odds"] for value in values]


def categorical(categories: Sequence[str], has_other: bool = True) -> LoadedClassifier:
    """Return a model of x with a bin for each category, for missing and for other values."""
    size = len(categories)
    labels = [*map("bin {}".format, range(size)), "(missing)", *(["(other)"] * has_other)]
    bins = small.feature(
        "x", len(labels), size, labels,
        kind="categorical", categories=list(categories), groups=list(range(size)),
    )  # fmt: skip
    model = small.model(features=[bins])
    assert isinstance(model, LoadedClassifier)
    return model


def numeric(cuts: Sequence[float]) -> LoadedClassifier:
    bounds = {"lower": -8e307, "upper": 8e307}
    model = small.model(features=[small.numeric("x", list(cuts), own_bin=True) | bounds])
    assert isinstance(model, LoadedClassifier)
    return model


CATEGORIES = [
    "1", "2", "1.0", "01", "-0", "0.1", "0.10000000149011612", "1e2", "inf", "-200",
    "Yes", "No", "TRUE", "false", "t", "N", "True", "False", "y",
    "a", "A", "é", "É", "it's", "two words", "NA", "nan", "null", "%", "_", " padded",
]  # fmt: skip
TEXTS = [
    *CATEGORIES, "", "?", "NaN", " 1", "1.0 ", "\ta", "\u00a0a\u2003", "a\r\n", "\x1fé\x0b",
    "-200.0", "yes ", "tRUE", "  ", "unseen",
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, 2.0, 0.1, 100.0, -200.0, 7.0]
VALUES = {
    "integer": [0, 1, 2, 100, -200, 7],
    "double": [*NUMBERS, math.nan, math.inf, -math.inf],
    "real": [*(float(np.float32(x)) for x in NUMBERS), math.nan, math.inf],
    "decimal": [Decimal(text) for text in ("0", "1", "1.00", "2.00", "0.10", "100", "-200", "7")],
    "boolean": [True, False],
    "text": TEXTS,
}


@MANY
@given(data=st.data())
def test_a_category_is_found_whatever_the_type_of_a_column(
    database: Database, folder: Path, data: st.DataObject
) -> None:
    categories = data.draw(st.lists(st.sampled_from(CATEGORIES), min_size=1, unique=True))
    model = categorical(categories, data.draw(st.booleans()))
    kind = data.draw(st.sampled_from(sorted(VALUES)))
    values = [*VALUES[kind], None]
    if database.name == "sqlite" and kind == "boolean":  # a number in SQLite
        kind, values = "integer", [None if value is None else int(value) for value in values]
    expected = predicted(model, kind, values, folder)
    np.testing.assert_allclose(in_python(model, values), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(said(database, model, kind, values), expected, rtol=0, atol=1e-12)


CUTS = [
    -7e307, -1e22, -200.0, -0.1, -5e-324, 0.0, 5e-324, 1e-300, 0.1, float(np.float32(0.1)),
    0.1 + 0.2, 0.5, 1.0, 37.123456789012, 2.0**53, 1e22, 1e300, 7e307,
]  # fmt: skip


@MANY
@given(data=st.data())
def test_a_number_is_read_whatever_the_type_of_a_column(
    database: Database, folder: Path, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.sampled_from(CUTS), unique=True)))
    model = numeric(cuts)
    kind = data.draw(st.sampled_from(sorted(VALUES)))
    values = [*VALUES[kind]]
    if kind == "double":
        numbers = [*CUTS, *np.nextafter(CUTS, 0).tolist(), -0.0, math.nan]
        more = st.floats(allow_infinity=False)
        values = [*numbers, *data.draw(st.lists(more, max_size=9))]
    elif kind == "real":
        more = st.floats(allow_infinity=False, width=32, allow_subnormal=False)
        values = [*values[:-1], *data.draw(st.lists(more, max_size=9))]
    elif kind == "text":
        values = [" 0.1", "+.5", "1E2 ", "-200", "1e-1", "", "?", "NA", "nan", "null", "007"]
        values += [repr(float(x)) for x in data.draw(st.lists(st.decimals(-999, 999, places=4)))]
    if kind != "boolean":  # a column of Booleans and nulls is another matter of `predict`
        values.append(None)
    if database.name == "sqlite" and kind == "boolean":  # a number in SQLite
        kind, values = "integer", [None if value is None else int(value) for value in values]
    expected = predicted(model, kind, values, folder)
    np.testing.assert_allclose(in_python(model, values), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(said(database, model, kind, values), expected, rtol=0, atol=1e-12)


def test_a_number_of_four_bytes_is_not_what_it_is_printed_as(
    database: Database, folder: Path
) -> None:
    """0.1 and 0.7 of four bytes are a little more, and a little less."""
    values = [float(np.float32(0.1)), float(np.float32(0.7))]
    for model in (numeric([0.1, values[0], 0.7]), categorical(["0.1", repr(values[0])])):
        expected = predicted(model, "real", values, folder)
        assert said(database, model, "real", values) == expected
        assert expected != in_python(model, [0.1, 0.7])


INFINITE = ["inf", "-Infinity", "1e999", math.inf, -math.inf]
REFUSED = [
    "abc", "inf", "-Infinity", "1,5", "1e", "0x10", "1_000", "+-1", "1 2", ".e3",
    "1.2.3", "12abc", "true", "1e999", "\u0661", "--", "%",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_number_never_becomes_one(database: Database, text: str) -> None:
    with pytest.raises(ValueError, match="column 'x' is to hold numbers"):
        predictor.predict(model_to_json(numeric([0.5])), {"x": text})
    assert_refused(database, "text", text)


@pytest.mark.parametrize("kind", ["double", "real"])
@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_numbers_are_refused(database: Database, kind: str, value: float) -> None:
    assert_refused(database, kind, value)


def assert_refused(database: Database, kind: str, value: Any) -> None:
    """The row has no prediction, and its note says why; other rows have one."""
    models = [numeric([0.5]), small.model("regression", features=[small.numeric("x", [0.5])])]
    note = "infinite" if value in INFINITE else "not a number"
    for model in models:
        query = to_sql(model, "t", database.name)
        rows = [(value,), ("1",)]
        answer = database.answer(query, "t", {"x": IN_SQL[kind]}, rows)
        for name in {"log_odds", "probability", "prediction", "sum"} & {*answer}:
            assert answer[name][0] is None
            assert answer[name][1] is not None
        assert answer["notes"] == [f"x: {note}", ""]


@pytest.mark.parametrize("missing", [["-200", "99"], ["-200.0", "+99e0", "?"]])
def test_marks_that_are_numbers_stand_for_every_spelling(
    database: Database, missing: list[str]
) -> None:
    values: dict[str, list] = {
        "integer": [-200, 99], "double": [-200.0, 99.0], "real": [-200.0, 99.0],
        "decimal": [Decimal(-200), Decimal(99)],
        "text": ["-200", "-200.0", " -2e2\t", "099", "99.00", "+99"],
    }  # fmt: skip
    for model in (numeric([0.5, 98.5]), categorical(["1", "200", "ninety"])):
        (absent,) = said(database, model, "integer", [None])
        for kind, marks in values.items():
            found = said(database, model, kind, [*marks, "1"], missing=missing)
            assert found[:-1] == [absent] * len(marks)
            assert found[-1] != absent


def test_a_mark_that_is_a_category_is_none(database: Database) -> None:
    model = categorical(["99", "a", "-200.0"])
    (absent,) = said(database, model, "text", [None])
    texts = said(database, model, "text", ["99", "-200.0", "-200", "98"], missing=["99", "-200"])
    assert [odds == absent for odds in texts] == [False, False, True, False]
    numbers = said(database, model, "double", [99.0, -200.0, 98.0], missing=["99", "-200"])
    assert numbers == [texts[0], texts[1], texts[3]]


def test_a_category_with_blanks_makes_them_count(database: Database) -> None:
    model = categorical(["a", "a "])
    values = ["a", "a ", " a", "a\t"]
    found = said(database, model, "text", values)
    assert found == in_python(model, values)
    assert len({*found}) == 3


def test_dates_and_times_are_found_or_have_no_prediction(database: Database) -> None:
    """DuckDB takes 12:30 and 01/02/2020 of a CSV for a time and a date, and writes them anew."""
    if database.name == "sqlite":
        pytest.skip("SQLite has no such types")
    model = categorical(["2020-02-01", "12:30:00", "12:30"])
    query, wanted = to_sql(model, "t", database.name), in_python(model, ["2020-02-01", "12:30:00"])
    for kind, right, wrong, odds in (
        ("DATE", "2020-02-01", "2020-02-02", wanted[0]),
        ("TIME", "12:30", "12:31", wanted[1]),
    ):
        assert database.answer(query, "t", {"x": kind}, [(right,)])["log_odds"] == [odds]
        found = database.answer(query, "t", {"x": kind}, [(right,), (wrong,)])
        assert found["log_odds"] == [odds, None]
        assert found["notes"] == ["", "x: a date or time"]
        number = to_sql(numeric([0.5]), "t", database.name)
        found = database.answer(number, "t", {"x": kind}, [(right,)])
        assert (found["log_odds"], found["notes"]) == ([None], ["x: a date or time"])


def test_bytes_have_no_prediction(database: Database) -> None:
    """`predict` refuses them, too."""
    kind = "BYTEA" if database.name == "postgresql" else "BLOB"
    for model in (numeric([0.5]), categorical(["1"])):
        query = to_sql(model, "t", database.name)
        found = database.answer(
            query, "t", {"x": kind}, [(b"1" if database.name == "sqlite" else "1",)]
        )
        assert (found["log_odds"], found["notes"]) == ([None], ["x: bytes"])


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_whole_models_predict_the_same(database: Database, task: str, more: dict) -> None:
    model, X = small.model(task, **more), small.rows()
    kinds = ["DOUBLE PRECISION"] * 3 + ["VARCHAR"] * 2
    rows = X.astype(object).where(X.notna(), None).to_numpy().tolist()
    query, types = to_sql(model, "t", database.name), dict(zip(X, kinds, strict=True))
    found = database.answer(query, "t", types, rows)
    wanted = predictions(model, X, Wanted(explain=True))
    for name in {"probability", "log_odds", "sum"} & {*found}:
        np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=1e-12)
    if task == "binary":
        assert found["prediction"] == wanted["prediction"].tolist()
    else:
        np.testing.assert_allclose(found["prediction"], wanted["prediction"], rtol=0, atol=1e-12)
        assert {-1.0, 2.0} <= {*found["prediction"]}


NAMES = [
    'quo"te', "it's", "*/ /* /* --", "select", "a.b", "Größe", "日本 \u00a0x", "t", "b", "blanks",
    "scored", "log_odds", "Prediction", "%s:name$1?", ";", " ", "x" * 140,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_kind_is_found(database: Database, name: str) -> None:
    features = [
        small.numeric(name, [1.0]),
        small.categorical("other" + name, [0, 1], ["a", "b"], None) | {"categories": [name, "x"]},
    ]
    model = small.model(features=features)
    types = {name: "BIGINT", "other" + name: "VARCHAR"}
    rows = [(0, name), (3, "x"), (3, name)]
    odds = database.answer(to_sql(model, name, database.name), name, types, rows)
    found = next(odds[each] for each in odds if each.startswith("log_odds") and each not in types)
    X = pd.DataFrame(rows, columns=list(types))
    np.testing.assert_allclose(found, model.decision_function(X), rtol=0, atol=1e-12)
    assert len({*found}) == 3


def test_names_that_postgresql_cannot_tell_apart_are_refused_for_it(database: Database) -> None:
    first, second = "x" * 70 + "a", "x" * 70 + "b"
    model = small.model(features=[small.numeric(first, [1.0]), small.numeric(second, [2.0])])
    if database.name == "postgresql":
        with pytest.raises(DpreproError, match=r"one to PostgreSQL.*cuts long names"):
            to_sql(model, "t", database.name)
        return
    query = to_sql(model, "t", database.name)
    rows = [(0, 3), (3, 0)]
    found = database.answer(query, "t", {first: "BIGINT", second: "BIGINT"}, rows)
    expected = model.decision_function(pd.DataFrame(rows, columns=[first, second]))
    np.testing.assert_allclose(found["log_odds"], expected, rtol=0, atol=1e-12)


def test_a_column_of_earlier_predictions_does_not_count(database: Database) -> None:
    """Two columns of one name: databases take the first, or refuse."""
    query = to_sql(numeric([0.5]), "t", database.name)
    alone = database.answer(query, "t", {"x": "BIGINT"}, [(3,)])
    types = {"log_odds": "BIGINT", "prediction": "VARCHAR", "x": "BIGINT"}
    rows = [(-1000 if alone["log_odds"][0] > 0 else 1000, "old", 3)]
    if database.name == "postgresql":
        with pytest.raises(RuntimeError, match="ambiguous"):
            database.answer(query, "t", types, rows)
        return
    found = database.answer(query, "t", types, rows)
    assert {name: found[name] for name in alone} == alone


def test_case_counts_where_a_column_ignores_it(database: Database) -> None:
    if database.name == "postgresql":
        pytest.skip("its collations that ignore case are for one cluster to make")
    for categories in (["a", "b"], ["a", "b "]):
        model = categorical(categories)
        types = {"x": "VARCHAR COLLATE NOCASE"}
        query = to_sql(model, "t", database.name)
        found = database.answer(query, "t", types, [("A",), ("a",)])["log_odds"]
        assert found == in_python(model, ["A", "a"])


def test_names_that_a_database_would_mistake_are_refused() -> None:
    capitals = small.model(features=[small.numeric("Age", []), small.numeric("age", [])])
    for dialect, title in (("sqlite", "SQLite"), ("duckdb", "DuckDB"), ("bigquery", "BigQuery")):
        with pytest.raises(DpreproError, match=rf"'Age' and 'age' are one to {title}.*--to python"):
            to_sql(capitals, "t", dialect)
    with pytest.raises(DpreproError, match=r"a feature has an empty name.*--to python"):
        to_sql(small.model(features=[small.numeric("", [])]), "t", "duckdb")
    with pytest.raises(DpreproError, match="no name of a table of new rows: name it with --table"):
        to_sql(small.model(), "", "duckdb")
    with pytest.raises(DpreproError, match=r"BigQuery has no column that is called 'a\.b'"):
        to_sql(small.model(features=[small.numeric("a.b", [])]), "t", "bigquery")


CONTENT = """id,answer,flag,code,size,mark
1,Yes,TRUE,1,3,\ta
2,No,FALSE,2,3.5,a
3,No,TRUE,,1e1,b\u00a0
4,Yes,FALSE,1,,
"""


@pytest.mark.parametrize("table", ["new.csv", "read"])
def test_duckdb_reads_a_csv_as_predict_does(tmp_path: Path, table: str) -> None:
    """DuckDB gives Booleans for Yes and TRUE, and integers for codes."""
    duckdb = pytest.importorskip("duckdb")
    named = {
        "answer": ["Yes", "No"], "flag": ["TRUE", "FALSE"], "code": ["1", "2"], "mark": ["a", "b"]
    }  # fmt: skip
    features = [
        small.categorical(name, [0, 1], ["p", "q", "(missing)", "(other)"], 2)
        | {"categories": each}
        for name, each in named.items()
    ]
    model = small.model(features=[*features, small.numeric("size", [3.0, 3.5], own_bin=True)])
    path = tmp_path / "new.csv"
    path.write_text(CONTENT, encoding="utf-8")
    ((X, _),) = NewRows(path, model).chunks()
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW read AS SELECT * FROM read_csv('{path}')")
        query = to_sql(model, str(path) if table == "new.csv" else table, "duckdb")
        found = connection.execute(query).df()
    np.testing.assert_allclose(found["log_odds"], model.decision_function(X), rtol=0, atol=1e-12)


def test_a_server_of_other_texts_has_fewer_blanks() -> None:
    with postgresql("SQL_ASCII") as server:
        model = categorical(["a", "é"])
        values = [" a\t", "a\u2003", "é", "\u00a0é"]
        found = said(server, model, "text", values)
        assert found == in_python(model, ["a", "other", "é", "other"])


def test_without_a_server_the_tests_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.additive.export.databases._programs", lambda: None)
    for value, outcome in (("true", pytest.fail.Exception), ("", pytest.skip.Exception)):
        monkeypatch.setenv("CI", value)
        with pytest.raises(outcome, match="install both"), postgresql():
            pass
