"""Codes for missing values mean what a few lines of Python say, in files of every kind."""

from __future__ import annotations

import math
import re
import tempfile
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.data.card import Card
from dprepro.data.cleaning import public_domain
from dprepro.data.dataset import load_by
from dprepro.release.predicting import NewRows
from dprepro.rows.card_table import CardTable
from dprepro.runtime.errors import DpreproError
from tests.data.written import column, written_line

often = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
MISSING = ["", "-200", "99", "?", "n/a"]
CODES = (-200.0, 99.0)
CATEGORIES = ["a", "b", "7", "99.5", "-20"]
NUMBERS = ["-200", "-200.0", "-2e2", "099", "99.", "+99", "9.9e1", "-0200.00", "99", "-200.5", "98",
           "0", "-99", "1e2", "007", "?", "", "n/a"]  # fmt: skip
NAMES = ["a", "b", "7", "99.5", "-20", "99", "099", "99.0", "-200.0", "-2e2", "?", "", "n/a"]
BLANKS = ["", "", " ", "\t", "\xa0", "  ", "\u2003", "\n"]


def said(text: str) -> float | None:
    """Return the number that a cell says; None for a text that is none."""
    return float(text) if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e\d+)?", text) else None


def number_of(cell: str) -> float | None:
    cell = cell.strip()
    return None if cell in MISSING or said(cell) in CODES else float(cell)


def category_of(cell: str) -> str | None:
    cell = cell.strip()
    if cell in CATEGORIES:
        return cell
    assert cell in MISSING or said(cell) in CODES
    return None


def padded(texts: list[str], blanks: list[str] = BLANKS) -> st.SearchStrategy[str]:
    blank = st.sampled_from(blanks)
    return st.tuples(blank, st.sampled_from(texts), blank).map("".join)


def card_of(path: Path) -> Card:
    card = Card(
        name="t", task="binary", labels=["no", "yes"], positive="yes", target="target",
        file=path.name, missing=MISSING,
        features={
            "number": {"numeric": [-999, 999], "missing": True},
            "city": {"categories": CATEGORIES, "missing": True},
        },
    )  # fmt: skip
    card._folder = path.parent
    return card


def check(path: Path, wanted: list[tuple[Any, ...]], rows: int | None = None) -> None:
    """Check all ways in; only load reads ARFF."""
    card = card_of(path)
    data = load_by(card, online=False)
    assert list(zip(column(data.X["number"]), column(data.X["city"]), strict=True)) == wanted
    if path.suffix == ".arff":
        return
    carded = CardTable(path, card).chunks({"number": "numeric", "city": "text"}, rows)
    parts = [(column(c["number"]), column(c["city"].astype(object))) for c in carded]
    assert [row for part in parts for row in zip(*part, strict=True)] == wanted
    domain = public_domain(card)
    assert domain is not None
    model: Any = SimpleNamespace(bins_=[SimpleNamespace(feature=f) for f in domain.features])
    new = NewRows(path, model, card=card).chunks(rows)
    parts = [(column(X["number"]), column(X["city"].astype(object))) for X, _ in new]
    assert [row for part in parts for row in zip(*part, strict=True)] == wanted


lines = st.lists(st.tuples(padded(NUMBERS), padded(NAMES)), min_size=1, max_size=9)


@often
@given(cells=lines, rows=st.integers(1, 9) | st.none(), quoting=st.sampled_from([0, 1]))
def test_in_text(cells: list[tuple[str, str]], rows: int | None, quoting: Any) -> None:
    table = [("number", "city", "target"), *((n, c, "yes") for n, c in cells)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        text = "".join(written_line(row, ",", quoting, "\n") for row in table)
        path.write_bytes(text.encode())
        check(path, [(number_of(n), category_of(c)) for n, c in cells], rows)


plain_blanks = ["", " ", "\t", "  "]


@often
@given(
    cells=st.lists(
        st.tuples(padded(NUMBERS, plain_blanks), padded(NAMES, plain_blanks)), min_size=1
    ),
    quote=st.sampled_from(["", "'", '"']),
)
def test_in_arff(cells: list[tuple[str, str]], quote: str) -> None:
    header = (
        "@relation t\n@attribute number numeric\n@attribute city string\n@attribute target {no,yes}"
    )
    body = "".join(f"{n},{quote}{c}{quote},yes\n" for n, c in cells)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.arff")
        path.write_text(f"{header}\n@data\n{body}")
        check(path, [(number_of(n), category_of(c)) for n, c in cells])


STORED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [-200, 99, 98, 7, 0, None]),
    "int8": (pa.int8(), [99, 98, 7, None]),
    "float": (pa.float64(), [-200.0, 99.0, 99.5, 7.0, -0.0, None, math.nan]),
    "float32": (pa.float32(), [-200.0, 99.0, 99.5, 7.0, None]),
    "decimal": (pa.decimal128(6, 2), [Decimal("99"), Decimal("99.50"), Decimal("-200.00"), None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.int64()), [99, 7, -200, 5, None]),
    "text": (pa.string(), [*NUMBERS, " 99", "-2e2\t", None]),
    "texts in a dictionary": (pa.dictionary(pa.int8(), pa.string()), [*NUMBERS, None]),
}
OF_CITY: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [-200, 99, 7, -20, None]),
    "float": (pa.float64(), [-200.0, 99.0, 99.5, 7.0, -20.0, None, math.nan]),
    "decimal": (pa.decimal128(6, 2), [Decimal("99"), Decimal("99.50"), Decimal("7"), None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.int64()), [99, 7, -200, -20, None]),
    "text": (pa.string(), [*NAMES, " 99", "-2e2\t", "\xa07", None]),
    "texts in a dictionary": (pa.dictionary(pa.int8(), pa.string()), [*NAMES, "a ", None]),
}


def stored_number(value: Any) -> float | None:
    if isinstance(value, str):
        return number_of(value)
    return None if value is None or value != value or float(value) in CODES else float(value)


def stored_category(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else category_of(value)
    if value != value or float(value) in CODES:
        return None
    return next(name for name in CATEGORIES if said(name) == float(value))


@often
@given(data=st.data(), group=st.integers(1, 5), rows=st.integers(1, 9) | st.none())
def test_in_parquet(data: Any, group: int, rows: int | None) -> None:
    kind, values = STORED[data.draw(st.sampled_from(sorted(STORED)))]
    city, names = OF_CITY[data.draw(st.sampled_from(sorted(OF_CITY)))]
    drawn = st.tuples(st.sampled_from(values), st.sampled_from(names))
    cells = data.draw(st.lists(drawn, min_size=1, max_size=9))
    table = pa.table(
        {
            "number": pa.array([n for n, _ in cells], kind),
            "city": pa.array([c for _, c in cells], city),
            "target": ["yes"] * len(cells),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        pa.parquet.write_table(table, path, row_group_size=group)
        check(path, [(stored_number(n), stored_category(c)) for n, c in cells], rows)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize(
    "code", ["-200", "-200.0", '" 099 "', "-2e2", "\xa099.", "\t-200", "?", '""']
)
def test_a_target_that_is_missing_is_refused_with_its_line(
    tmp_path: Path, task: str, code: str
) -> None:
    labels = ["1", "2"]
    about: Any = {"target_bounds": [-999, 999]} if task == "regression" else {"labels": labels}
    about |= {"positive": "2"} if task == "binary" else {}
    path = tmp_path / "t.csv"
    path.write_text(f"x,y\n1,1\n2,2\n3,{code}\n")
    card = Card(name="t", task=task, target="y", file="t.csv", missing=MISSING, **about,
                features={"x": {"numeric": [0, 9]}})  # fmt: skip
    card._folder = tmp_path
    with pytest.raises(DpreproError, match=r"target 'y' is missing in some rows.*line 4"):
        load_by(card, online=False)
    with pytest.raises(DpreproError, match=r"target 'y' is missing in some rows.*line 4"):
        list(CardTable(path, card).chunks({"y": "label"}))


def test_a_unit_that_is_missing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,who,y\n1,u,1\n2,099.0,2\n")
    card = Card(name="t", task="regression", target="y", file="t.csv", missing=MISSING, unit="who",
                rows_per_unit=1)  # fmt: skip
    card._folder = tmp_path
    with pytest.raises(DpreproError, match=r"'who' is missing in some rows.*line 3"):
        load_by(card, online=False)
