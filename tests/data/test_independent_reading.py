"""Every row that is loaded is the row that Python's `csv` finds in the file, by every way in."""

from __future__ import annotations

import csv
import functools
import io
import math
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.data import delimited, formats
from dprepro.data.cell_values import Marks, NotNumericError, Spelling, number_of, read_numbers
from dprepro.data.cleaning import public_domain
from dprepro.data.dataset import load_by
from dprepro.data.decoding import BadRecordError
from dprepro.data.formats import dialect_of
from dprepro.release.predicting import NewRows
from dprepro.rows import readers as rows_csv
from dprepro.rows.card_table import CardTable
from dprepro.rows.readers import CsvSettings
from dprepro.rows.table import Table
from dprepro.runtime.errors import DpreproError
from tests.data.written import (
    CATEGORIES,
    LABELS,
    MISSING,
    Written,
    as_name,
    column,
    number_in,
    plain,
    read_again,
    written,
    written_line,
)

often = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


@contextmanager
def in_blocks(size: int, whole: int | None = None) -> Iterator[None]:
    """Let files be read in blocks of so many bytes, or parsed in parts of `whole` ones."""
    with pytest.MonkeyPatch.context() as patch:
        records = functools.partial(delimited.Records, block_bytes=size)
        patch.setattr(rows_csv, "Records", records)
        patch.setattr(formats, "_LOAD_BYTES", whole or size)
        patch.setattr(delimited, "BLOCK_BYTES", max(size, 16))
        yield


@contextmanager
def filed(table: Written) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield table.write(Path(folder))


sizes = st.sampled_from([1, 3, 17, 64]) | st.just(2**20)
chunks = st.integers(1, 9) | st.none()


@often
@given(table=written(), size=sizes, rows=chunks, with_unit=st.booleans())
def test_every_way_in_reads_the_rows_of_the_file(
    table: Written, size: int, rows: int | None, with_unit: bool
) -> None:
    with filed(table) as path, in_blocks(size):
        check_load(table, path, with_unit)
        check_card_table(table, path, rows)
        check_table(table, path, rows)
        check_new_rows(table, path, rows)


def check_load(table: Written, path: Path, with_unit: bool) -> None:
    data = load_by(table.card(path, with_unit), online=False)
    number, city = (data.X[table.name(key)] for key in ("number", "city"))
    assert list(zip(column(number), column(city), data.y.tolist(), strict=True)) == table.rows
    if with_unit:
        assert data.units is not None
        assert data.units.tolist() == [record["who"].strip() for record in table.records]


def check_card_table(table: Written, path: Path, rows: int | None) -> None:
    carded = CardTable(path, table.card(path))
    found = list(carded.chunks(dict.fromkeys(carded.names, "text"), rows))
    check_lengths(found, rows, len(table.records))
    whole = pd.concat([chunk.astype(object) for chunk in found])
    columns = [column(whole[table.name(key)]) for key in ("number", "city", "target")]
    assert list(zip(*columns, strict=True)) == table.rows


def check_table(table: Written, path: Path, rows: int | None) -> None:
    given = table.card(path).format
    settings = CsvSettings(dialect_of(given), Spelling(given.decimal), tuple(MISSING))
    kinds: Any = {table.name(key): "text" for key in table.order}
    kinds[table.name("number")] = "numeric"
    found = list(Table.open(path, settings).chunks(kinds, rows))
    check_lengths(found, rows, len(table.records))
    whole = pd.concat([chunk.astype(object) for chunk in found])
    for key in table.order:
        wanted: list[Any] = [record[key].strip() for record in table.records]
        if key == "number":
            wanted = [plain(number_in(cell, given.decimal)) for cell in wanted]
        assert column(whole[table.name(key)]) == wanted


def check_new_rows(table: Written, path: Path, rows: int | None) -> None:
    """Check also that columns to keep stand as they do in the file, blanks included."""
    card = table.card(path)
    domain = public_domain(card)
    assert domain is not None
    model: Any = SimpleNamespace(bins_=[SimpleNamespace(feature=f) for f in domain.features])
    keep = [table.name("note"), table.name("number"), table.name("city")]
    found = list(NewRows(path, model, keep, card).chunks(rows))
    check_lengths([X for X, _ in found], rows, len(table.records))
    numbers = [v for X, _ in found for v in column(X[table.name("number")])]
    cities = [v for X, _ in found for v in column(X[table.name("city")].astype(object))]
    assert list(zip(numbers, cities, strict=True)) == [row[:2] for row in table.rows]
    for key, name in zip(("note", "number", "city"), keep, strict=True):
        kept = [v for _, part in found for v in part[name].to_pylist()]
        assert kept == [record[key] for record in table.records]


def check_lengths(chunks: list[pd.DataFrame], rows: int | None, count: int) -> None:
    """All chunks but the last are full, and together they are as many rows as there are records."""
    assert sum(map(len, chunks)) == count
    assert rows is None or all(len(chunk) == rows for chunk in chunks[:-1])


cells = st.lists(st.sampled_from(["a", "b", '"', ",", "\n", "\r\n", "é"]), max_size=5).map("".join)


@settings(often, max_examples=500)
@given(
    rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=5),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    fault=st.sampled_from(["delete", "insert", "truncate"]),
    size=st.sampled_from([1, 5, 64, 2**20]),
    data=st.data(),
)
def test_a_damaged_file_is_refused_or_read_as_a_strict_reader_does(
    rows: list[tuple[str, str]], line_end: str, quoting: Any, fault: str, size: int, data: Any
) -> None:
    # No blanks: this reader takes those around quotes for none, and Python's for text.
    text = "".join(written_line(row, ",", quoting, line_end) for row in [("x", "y"), *rows])
    quotes = [k for k, letter in enumerate(text) if letter == '"']
    if fault == "delete" and quotes:
        k = data.draw(st.sampled_from(quotes))
        text = text[:k] + text[k + 1 :]
    elif fault == "insert":
        k = data.draw(st.integers(0, len(text)))
        text = text[:k] + '"' + text[k:]
    else:
        text = text[: data.draw(st.integers(1, len(text)))]
    try:
        wanted: Any = read_again(text)
    except csv.Error:
        wanted = None
    with in_blocks(size):
        found = records_or_refusal(text)
    if isinstance(found, str):
        if "never closed" in found and fault == "truncate":
            assert found.startswith(f"line {opening_line(text)}:")
        assert re.match(r"line \d+( or a later one)?[: ]|the first line|the file is empty", found)
        assert wanted is None or len({len(row) for row in wanted}) > 1
    else:
        assert wanted is not None
        assert found == ([as_name(name) for name in wanted[0]], wanted[1:])


def records_or_refusal(text: str) -> tuple[list[str], list[list[str]]] | str:
    try:
        return records_of(text)
    except BadRecordError as error:
        return str(error)


def records_of(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the names and the records that are found as Arrow finds them."""
    records = delimited.Records(io.BytesIO(text.encode()), block_bytes=formats._LOAD_BYTES,
                                dialect=delimited.COMMAS)  # fmt: skip
    width = range(len(records.names))
    parts = [part.to_pydict() for part in records.tables(dict.fromkeys(width, delimited.FIELDS))]
    return records.names, [
        list(row) for part in parts for row in zip(*(part[str(k)] for k in width), strict=True)
    ]


def opening_line(text: str) -> int:
    """Return the line of the quote that is open at the end of a beginning of a valid file."""
    is_open, line, opened = False, 1, 0
    for before, letter in zip(" " + text, text, strict=False):
        if letter == '"':
            is_open = not is_open
            opened = line if is_open and before != '"' else opened
        line += letter == "\n"
    return opened


LONG = "".join(f'line {k}, "quoted"\r\nand a row-like 1,Bonn,x,me,yes\n' for k in range(50_000))


@pytest.fixture(scope="module")
def long_table() -> Written:
    """Some MiB, with a cell of 2.5 MiB that has line breaks and lines like rows in it."""
    names = ["number", "city", "note", "who", "target"]
    rows = [
        [str(k), CATEGORIES[k % 6], LONG[: k % 90].rstrip("\r"), f"w{k}", LABELS[k % 2]]
        for k in range(9000)
    ]
    rows[4000][2] = LONG
    text = "".join(written_line(row, ",", csv.QUOTE_MINIMAL, "\n") for row in [names, *rows])
    settings = {"separator": ",", "decimal": ".", "encoding": "utf-8", "comment": None}
    by_key = dict(zip(names, names, strict=True))
    return Written(by_key, names, text, text.encode(), settings, "binary", False)


def test_a_cell_of_many_lines_is_one_cell_at_any_size(long_table: Written) -> None:
    with filed(long_table) as path:
        check_load(long_table, path, True)
        check_card_table(long_table, path, 1000)
        check_table(long_table, path, None)
        check_new_rows(long_table, path, 3333)


def test_a_quote_that_is_never_closed_is_found_behind_some_mib(
    long_table: Written, tmp_path: Path
) -> None:
    text = long_table.text
    start = text.index("\n8000,") + 1
    line = 1 + text.count("\n", 0, start)
    path = tmp_path / "t.csv"
    path.write_bytes((text[:start] + '"' + text[start:]).encode())
    for read in (
        lambda: check_load(long_table, path, False),
        lambda: check_card_table(long_table, path, 1000),
        lambda: check_new_rows(long_table, path, 1000),
    ):
        with pytest.raises(DpreproError, match=rf"line {line}: "):
            read()


@pytest.mark.parametrize("cut", range(-2, 3))
@pytest.mark.parametrize("size", [64, 2**16, delimited.BLOCK_BYTES])
def test_a_line_break_in_quotes_is_whole_wherever_a_part_ends(size: int, cut: int) -> None:
    """Arrow takes an LF at the beginning of a part for the rest of a line end."""
    rows = "x,y\n" + "1,a\n" * (size // 4)
    text = f'{rows[: size - 8]}2,"{"a" * (8 + cut)}\r\nb"\n3,c\n'
    with in_blocks(size, whole=2**24):
        assert records_of(text)[1] == read_again(text)[1:]


@pytest.mark.parametrize("size", range(1, 40))
def test_an_empty_line_is_no_record_where_a_block_ends(size: int) -> None:
    text = 'x,y\n# a "comment\n1,"a"\n\n2,"b"\n  \n\r\n3,c\n\n'
    records = delimited.Records(
        io.BytesIO(text.encode()), delimited.Dialect(comment="#"), block_bytes=size
    )
    parts = records.tables({0: delimited.FIELDS, 1: delimited.TEXT})
    assert [v for part in parts for v in part["0"].to_pylist()] == ["1", "2", "3"]


@pytest.mark.parametrize("name", ["sep=a", "sep=;x", "SEP=é", "sep="])
def test_a_column_whose_name_begins_as_the_line_of_excel_does_stays(name: str) -> None:
    text = f"{name},x\n1,2\n"
    assert records_of(text) == ([name, "x"], [["1", "2"]])


@pytest.mark.parametrize("rows", [["nan(a)", "2"], ["nan(a)", " 2"], ["", "nan(a)"]])
def test_a_text_that_arrow_alone_takes_for_a_number_is_none(rows: list[str]) -> None:
    column = pa.chunked_array([rows], pa.string())
    with pytest.raises(NotNumericError):
        read_numbers(column, "x", Marks(MISSING))
    assert number_of("-inf") == -math.inf
