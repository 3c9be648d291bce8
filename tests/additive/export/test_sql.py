"""SQL says what the model says, in two databases, whatever the names are."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.export.sql import to_sql
from dprepro.additive.model import AdditiveClassifier, AdditiveModel
from dprepro.runtime.errors import DpreproError
from tests.additive import small

Answer = Callable[[str, pd.DataFrame, str], pd.DataFrame]


def in_sqlite(query: str, X: pd.DataFrame, table: str) -> pd.DataFrame:
    connection = sqlite3.connect(":memory:")
    connection.create_function("EXP", 1, math.exp)  # some builds of SQLite have none
    X.to_sql(table, connection, index=False)
    return pd.read_sql(query, connection)


def in_duckdb(query: str, X: pd.DataFrame, table: str) -> pd.DataFrame:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register(table, X)
        return connection.execute(query).df()


DATABASES = pytest.mark.parametrize("answer", [in_sqlite, in_duckdb])
IN = {in_sqlite: "sqlite", in_duckdb: "duckdb"}


def assert_same(model: AdditiveModel, said: pd.DataFrame, X: pd.DataFrame) -> None:
    if isinstance(model, AdditiveClassifier):
        np.testing.assert_allclose(said["log_odds"], model.decision_function(X), rtol=0, atol=1e-12)
        expected = model.predict_proba(X)[:, 1]
        np.testing.assert_allclose(said["probability"], expected, rtol=0, atol=1e-12)
        names = np.array(model.class_names)
        assert said["prediction"].tolist() == names[model.predict(X)].tolist()
        assert said["prediction"].nunique() == 2
    else:
        np.testing.assert_allclose(said["prediction"], model.predict(X), rtol=0, atol=1e-12)
        if model.range_ is not None:
            assert {*model.range_} <= {*said["prediction"]}


@DATABASES
@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("binary", {}), ("regression", {}), ("regression", {"range": None}),
        ("binary", small.PAIRS), ("regression", small.PAIRS),
    ],
)  # fmt: skip
def test_databases_predict_as_the_model(answer: Answer, task: str, changes: dict) -> None:
    model, X = small.model(task, **changes), small.rows()
    assert_same(model, answer(to_sql(model, "new rows", IN[answer]), X, "new rows"), X)


@DATABASES
def test_numbers_and_missing_values_can_be_text(answer: Answer) -> None:
    """As a CSV without types gives them."""
    model, X = small.model(**small.PAIRS), small.rows()
    texts = X.map(lambda value: f" {value} " if isinstance(value, str) else f" {value!r}")
    texts = texts.mask(X.isna(), " ?").astype(object)
    assert_same(model, answer(to_sql(model, "t", IN[answer]), texts, "t"), X)


@DATABASES
def test_other_texts_can_stand_for_missing_values(answer: Answer) -> None:
    model, X = small.model(), small.rows()
    texts = X.map(lambda value: value if isinstance(value, str) else repr(value))
    texts = texts.mask(X.isna(), "-").astype(object)
    assert_same(model, answer(to_sql(model, "t", IN[answer], missing=["-"]), texts, "t"), X)


HOSTILE = '"; DROP TABLE t; --'
QUOTED = "'); DELETE FROM t; --"


@DATABASES
def test_names_that_try_to_end_a_quote_stay_names(answer: Answer) -> None:
    features = [
        small.numeric(HOSTILE, [1.0, 50.0], own_bin=True),
        small.numeric("log_odds", [2.0]),
        small.categorical("it''s", [0, 1], ["a", "b"], None) | {"categories": [QUOTED, "x"]},
    ]
    model = small.model(features=features, labels=["no", QUOTED])
    X = pd.DataFrame(
        {HOSTILE: [0.5, 60.0, np.nan], "log_odds": [1, 2, 3], "it''s": [QUOTED, "x", None]}
    )
    said = answer(to_sql(model, HOSTILE, IN[answer]), X, HOSTILE)
    np.testing.assert_allclose(said["log_odds_"], model.decision_function(X), rtol=0, atol=1e-12)
    assert said[list(X)].shape == X.shape
    assert {*said["prediction"]} <= {"no", QUOTED}


@DATABASES
def test_a_column_that_is_not_there_is_an_error(answer: Answer) -> None:
    """SQLite takes a quoted name of no column for a text, if nothing says whose column it is."""
    query = to_sql(small.model(), "t", IN[answer])
    with pytest.raises(Exception, match="age"):
        answer(query, small.rows().drop(columns="age"), "t")


def test_a_model_may_have_as_many_features_as_a_table_has_columns() -> None:
    """SQLite takes no expression that is 1000 operators deep, and no more than 2000 columns."""
    model = small.model(features=[small.numeric(f"x{k}", [1.0]) for k in range(800)])
    X = pd.DataFrame({f"x{k}": [k % 3] for k in range(800)})
    assert_close(in_sqlite(to_sql(model, "t", "sqlite"), X, "t")["log_odds"], model, X)


def assert_close(found: pd.Series, model: AdditiveModel, X: pd.DataFrame) -> None:
    np.testing.assert_allclose(found, model.decision_function(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("label", ["a\\", "a\x00", "a\n--"])
def test_a_name_that_a_database_could_misread_is_refused(label: str) -> None:
    with pytest.raises(DpreproError, match="cannot be written as SQL"):
        to_sql(small.model(labels=["no", label]), "t", "sqlite")


def test_categories_that_are_one_double_are_refused() -> None:
    codes = {**small.categorical("code", [0, 1], ["a", "b"], None)}
    codes["categories"] = [str(2**53), str(2**53 + 1)]
    with pytest.raises(DpreproError, match="are one number of double precision"):
        to_sql(small.model(features=[codes]), "t", "sqlite")
    codes["categories"] = [str(2**53 - 1), str(2**53 - 2)]
    assert to_sql(small.model(features=[codes]), "t", "sqlite")
