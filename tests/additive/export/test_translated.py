"""SQL for databases that no test can start: parsed in their dialects, and run in translation.

DuckDB answers what sqlglot translates. That shows the logic, and what is quoted how. It does not
show what BigQuery and Snowflake make of types and of numbers.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dprepro.additive.export.sql import to_sql
from dprepro.additive.model import AdditiveModel
from tests.additive import small
from tests.additive.export import odd
from tests.additive.export.databases import Duckdb, Said

sqlglot = pytest.importorskip("sqlglot")

QUOTED = {"bigquery": "quo te's: 日本", "snowflake": odd.QUOTED}
"""The name of a feature that is as odd as the database allows."""

DIALECTS = pytest.mark.parametrize("dialect", [*QUOTED])
IN_DUCKDB = {
    "bigquery": """CREATE MACRO CODE_POINTS_TO_STRING(codes) AS
        ARRAY_TO_STRING(LIST_TRANSFORM(codes, lambda code: CHR(code::INTEGER)), '')""",
    "snowflake": "CREATE MACRO AS_DOUBLE(v) AS TRY_CAST(v AS DOUBLE)",
}
"""Functions that DuckDB lacks."""


@cache
def model(task: str, dialect: str) -> AdditiveModel:
    return odd.fitted(task, QUOTED[dialect])


def translated(query: str, dialect: str) -> str:
    return sqlglot.transpile(query, read=dialect, write="duckdb")[0]


def in_duckdb(dialect: str) -> Duckdb:
    return Duckdb([IN_DUCKDB[dialect]])


def answer(query: str, dialect: str, rows: dict[str, list[str]]) -> Said:
    values = list(zip(*rows.values(), strict=True))
    types = dict.fromkeys(rows, "VARCHAR")
    return in_duckdb(dialect).answer(translated(query, dialect), "rows", types, values)


@pytest.mark.parametrize(("dialect", "task"), [("bigquery", "regression"), ("snowflake", "binary")])
def test_a_translation_predicts_and_notes_the_same(dialect: str, task: str, tmp_path: Path) -> None:
    rows = odd.random_rows(3, quoted=QUOTED[dialect])
    said = odd.predicted(model(task, dialect), rows, tmp_path)
    assert said is not None
    found = answer(to_sql(model(task, dialect), "rows", dialect), dialect, rows)
    for name in {"probability", "log_odds", "sum"} & {*said.columns}:
        np.testing.assert_allclose(found[name], said.numbers(name), rtol=0, atol=1e-12)
    assert found["notes"] == said.columns["notes"]


@DIALECTS
def test_a_translation_refuses_each_text_that_predict_refuses(dialect: str) -> None:
    query = to_sql(small.model(features=[small.numeric("x", [0.5], own_bin=True)]), "rows", dialect)
    found = answer(query, dialect, {"x": odd.REFUSED})
    assert found["log_odds"] == [None] * len(odd.REFUSED)
    assert {*found["notes"]} == {"x: not a number", "x: infinite"}


@DIALECTS
def test_names_and_texts_are_quoted_as_the_dialect_does(dialect: str) -> None:
    exp = sqlglot.exp
    known = model("binary", dialect)
    tree = sqlglot.parse_one(to_sql(known, "select", dialect), read=dialect)
    columns = {each.name for each in tree.find_all(exp.Column) if each.table == "t"}
    assert columns == {str(bins.feature.name) for bins in known.bins_} | {"*"}
    texts = {each.name for each in tree.find_all(exp.Literal) if each.is_string}
    assert {*odd.TOWNS, f"; {QUOTED[dialect]}: unknown category", " c"} <= texts
    assert "select" in {each.name for each in tree.find_all(exp.Table)}


FAULTS = [
    (" END", ""), ("(", ""), (")", ""), (" WHEN", ""), ("CASE", ""), (" AS l0", " l0 l0"),
    ("FROM (", "("), ("CROSS JOIN", "CROSS JOIN ON"), (",\n", "\n"), ("'O", "O"), (" IN (", " ("),
]  # fmt: skip
"""What is replaced once."""


@DIALECTS
def test_a_fault_does_not_parse(dialect: str) -> None:
    whole = to_sql(model("binary", dialect), "rows", dialect)
    head, query = re.split(r"\n(?=SELECT)", whole, maxsplit=1)
    assert all(line.startswith("-- ") for line in head.splitlines())
    assert translated(query, dialect)
    for part, instead in FAULTS:
        wrong = query.replace(part, instead, 1)
        assert wrong != query
        with pytest.raises(sqlglot.errors.SqlglotError):
            translated(wrong, dialect)


@DIALECTS
def test_the_quotes_of_another_database_are_noticed(dialect: str) -> None:
    """BigQuery treats "age" as a text."""
    exp = sqlglot.exp
    other = to_sql(model("binary", dialect), "rows", "duckdb")
    try:
        tree = sqlglot.parse_one(other, read=dialect)
    except sqlglot.errors.SqlglotError:
        return
    columns = {each.name for each in tree.find_all(exp.Column) if each.table == "t"}
    assert ("age" in columns) == (dialect == "snowflake")
