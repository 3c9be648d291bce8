"""What a cell says is the same for every kind of column and of file."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dprepro.data.cell_values import (
    Categories,
    CellError,
    Marks,
    NotNumericError,
    Spelling,
    number_of,
    read_categories,
    read_numbers,
)
from dprepro.data.domain import date_as_number, is_date_format

MARKS = Marks(["", "?", "NA", "-200", "99"])
NAN = float("nan")


def column(values: list[Any], kind: Any = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_bytes_are_refused_with_what_to_do(kind: pa.DataType) -> None:
    for read in (
        lambda found: read_categories(found, "x", ["secret"], MARKS),
        lambda found: read_categories(found, "x", None, MARKS),
        lambda found: read_numbers(found, "x", MARKS),
        lambda found: read_numbers(found, "x", MARKS, date_format="%Y"),
    ):
        with pytest.raises(CellError, match="column 'x' holds bytes") as caught:
            read(column([b"secret", None], kind))
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [pa.null(), pa.dictionary(pa.int32(), pa.null())])
def test_a_column_of_nothing_is_missing_however_it_is_read(kind: pa.DataType) -> None:
    nothing = pa.chunked_array([pa.nulls(2), pa.nulls(1)]).cast(kind)
    assert read_categories(nothing, "x", ["a", "b"], MARKS).isna().tolist() == [True] * 3
    assert read_categories(nothing, "x", None, MARKS).isna().tolist() == [True] * 3
    assert np.isnan(read_numbers(nothing, "x", MARKS)).tolist() == [True] * 3
    assert np.isnan(read_numbers(nothing, "x", MARKS, date_format="%Y")).tolist() == [True] * 3


@pytest.mark.parametrize(
    "values",
    [
        ["-200", "1", "-200.0", "099", "2.5", " NA", "?\u00a0", "\t", "nan"],
        [-200.0, 1.0, -200.0, 99.0, 2.5, None, NAN, None, None],
        [Decimal("-200.0"), Decimal(1), Decimal(-200), Decimal(99), Decimal("2.5"), *[None] * 4],
    ],
)
def test_codes_for_missing_values_are_values(values: list[Any]) -> None:
    expected = [NAN, 1, NAN, NAN, 2.5, NAN, NAN, NAN, NAN]
    np.testing.assert_array_equal(read_numbers(column(values), "x", MARKS), expected)
    if isinstance(values[0], str):
        stored = column(values).dictionary_encode()
        np.testing.assert_array_equal(read_numbers(stored, "x", MARKS), expected)


def test_a_code_is_a_category_where_the_card_lists_it() -> None:
    values = column(["99", "-200.0", "a ", None, "\u2003?"])
    found = read_categories(values, "x", ["a", "99"], MARKS)
    assert found.codes.tolist() == [1, -1, 0, -1, -1]
    assert read_categories(column(["099", "a"]), "x", ["a"], MARKS).codes.tolist() == [-1, 0]
    whole = read_categories(column([99, 1, -200]), "x", ["1", "99"], MARKS)
    assert whole.codes.tolist() == [1, 0, -1]


def test_other_texts_are_refused_with_their_row() -> None:
    with pytest.raises(NotNumericError, match="column 'x' is to hold numbers") as caught:
        read_numbers(column(["1", "", "secret", "x"]), "x", MARKS)
    assert caught.value.row == 2
    assert "secret" not in str(caught.value)
    with pytest.raises(NotNumericError) as odd:  # which Arrow takes for a number
        read_numbers(column(["1", "nan", None, "nan(1)"]), "x", MARKS)
    assert odd.value.row == 3
    with pytest.raises(CellError, match="not among the card's categories") as unknown:
        read_categories(column(["a", "secret"]), "x", ["a"], MARKS)
    assert unknown.value.row == 1
    with pytest.raises(CellError, match="infinite") as infinite:
        read_numbers(column(["1", "inf"]), "x", MARKS)
    assert infinite.value.row == 1


@pytest.mark.parametrize(
    ("text", "spelling", "number"),
    [
        ("1.234,5", Spelling(",", "."), 1234.5),
        ("-,5", Spelling(","), -0.5),
        ("1 234", Spelling(".", " "), 1234.0),
        ("1'234'567.5e1", Spelling(".", "'"), 12345675.0),
        ("+7", Spelling(), 7.0),
        ("1.5", Spelling(","), None),
        ("1.23,5", Spelling(",", "."), None),
        ("1_000", Spelling(), None),
        ("٣", Spelling(), None),
        ("0x10", Spelling(), None),
    ],
)
def test_a_number_is_what_its_spelling_says(
    text: str, spelling: Spelling, number: float | None
) -> None:
    assert number_of(text, spelling) == number
    marks = Marks([""], spelling)
    if number is None:
        with pytest.raises(NotNumericError):
            read_numbers(column(["", text]), "x", marks, spelling)
    else:
        found = read_numbers(column(["", f" {text}\u00a0"]), "x", marks, spelling)
        np.testing.assert_array_equal(found, [NAN, number])


def test_a_number_is_the_nearest_float_however_it_is_stored() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal(300) * 10.0 ** rng.integers(-300, 300, 300)
    texts = [f" +{v!r}" if v > 0 else f"{v!r} " for v in values.tolist()]
    np.testing.assert_array_equal(read_numbers(column(texts), "x", MARKS), values)


def test_dates_become_years_and_times_hours() -> None:
    assert date_as_number("02.07.2014", "%d.%m.%Y") == pytest.approx(2014.4986, abs=1e-4)
    found = read_numbers(column(["31.12.1999", "?", None]), "d", MARKS, date_format="%d.%m.%Y")
    np.testing.assert_array_equal(found, [1999 + 364 / 365, NAN, NAN])
    typed = column([datetime.date(2016, 1, 1), datetime.date(2015, 12, 31)])
    found = read_numbers(typed, "d", MARKS, date_format="%Y-%m-%d")
    np.testing.assert_array_equal(found, [2016.0, 2015 + 364 / 365])
    np.testing.assert_array_equal(
        read_numbers(column(["06:30"]), "t", MARKS, date_format="%H:%M"), [6.5]
    )
    with pytest.raises(CellError, match="no date as '%Y' writes it") as caught:
        read_numbers(column(["2000", "secret"]), "d", MARKS, date_format="%Y")
    assert caught.value.row == 1
    assert [is_date_format(f) for f in ("%d.%m", "%d.%d.%Y", "%Y", "%H", "x")] == [
        False, False, True, True, False,
    ]  # fmt: skip


def test_texts_that_a_card_maps_are_the_category() -> None:
    find = Categories(["low", "high"], MARKS, {"1": "low", "2": "high"})
    assert [find.code_of(v) for v in ("1", 1, 2.0, "low", "?", "3")] == [0, 0, 1, 0, -1, None]


def test_whole_numbers_that_are_one_float_are_different_categories() -> None:
    names = [str(2**53 + 1), str(2**53)]
    stored = column([2**53, 2**53 + 1, 2**53 + 2])
    find = Categories(names, MARKS)
    assert [find.code_of(v.as_py()) for v in stored] == [1, 0, None]
