from __future__ import annotations

import pyarrow as pa
import pytest

from dprepro.release.columns import CONVENTIONS, Form, convention, form_of


def form(*texts: str, name: str = "x", rows: int | None = None) -> Form:
    return form_of(name, pa.array(texts), len(texts) if rows is None else rows)


@pytest.mark.parametrize(
    ("texts", "fits"),
    [
        (["1", "-20"], set(CONVENTIONS)),
        (["1.5", "2e-3"], {(".", ""), (".", ","), (".", " "), (".", "'")}),
        (["1.234", "2e5"], {(".", ""), (".", ","), (".", " "), (".", "'"), (",", ".")}),
        (["2e5"], set(CONVENTIONS)),
        (["1,5", ",5"], {(",", ""), (",", "."), (",", " "), (",", "'")}),
        (["1,234"], {(".", ","), (",", ""), (",", "."), (",", " "), (",", "'")}),
        (["1,234.5"], {(".", ",")}),
        (["1.234,5", "7"], {(",", ".")}),
        (["1 234 567,5"], {(",", " ")}),
        (["1'234.5"], {(".", "'")}),
        (["1,234,567"], {(".", ",")}),
        (["12,34,5"], set()),
        (["1.5", "x"], set()),
        (["1.5", "1,5"], set()),
    ],
)
def test_ways_of_writing_numbers(texts: list[str], fits: set[tuple[str, str]]) -> None:
    found = form(*texts)
    assert set(found.numbers) == fits
    assert found.kind == ("numeric" if fits else "text")


@pytest.mark.parametrize(
    ("columns", "separator", "given", "way"),
    [
        ([["1.5"], ["1"]], ",", (None, None), (".", "")),
        ([["1,5"], ["1"]], ";", (None, None), (",", "")),
        ([["1,5"], ["1.234"]], ";", (None, None), (",", ".")),
        ([["1,234"]], ";", (None, None), (",", "")),
        ([["1,234"]], ",", (None, None), (".", ",")),
        ([["1,234"]], ",", (",", None), (",", "")),
        ([["1,234"]], ";", (None, ","), (".", ",")),
        ([["1.5"], ["2.5"], ["1,5"]], ";", (None, None), (".", "")),  # most columns
        ([], ";", (None, None), (".", "")),
    ],
)
def test_the_way_that_fits_most_columns_is_taken(
    columns: list[list[str]],
    separator: str,
    given: tuple[str | None, str | None],
    way: tuple[str, str],
) -> None:
    assert convention([form(*texts) for texts in columns], separator, *given) == way


@pytest.mark.parametrize(
    ("texts", "listed"),
    [
        (["0", "1"], "zero-one"),
        (["1"], "zero-one"),
        (["yes", "no"], "no-yes"),
        (["Yes"], "No-Yes"),
        (["M", "F"], "F-M"),
        (["ja", "nein"], "nein-ja"),
        (["0", "1", "-99"], "zero-one"),
        (["ja", "nein", "-9"], "nein-ja"),
        (["0", "1", "2"], ""),
        (["yes", "no", "maybe"], ""),
        (["yes", "Yes"], ""),
        ([], ""),
    ],
)
def test_lists_that_everybody_knows(texts: list[str], listed: str) -> None:
    assert form(*texts).listed == listed


@pytest.mark.parametrize(
    ("texts", "codes"),
    [
        (["20", "70", "-99"], ("-99",)),
        (["-9", "-99", "1", "5"], ("-9", "-99")),
        (["-7", "-8", "-9", "50", "70"], ("-7", "-8", "-9")),
        (["-1.9", "44.6", "-200"], ("-200",)),
        (["-99.0", "0.5", "7.25"], ("-99.0",)),
        (["-99,0", "0,5", "7,25"], ("-99,0",)),
        (["0", "5", "-9"], ("-9",)),
        (["50", "60", "99"], ("99",)),
        (["1", "5", "999"], ("999",)),
        (["20", "99", "70"], ()),  # an age
        (["18", "88", "-99", "75"], ("-99",)),  # 88 is an age, -99 is not
        (["-120", "-99", "40"], ()),
        (["5", "-99"], ()),  # nothing to be far from
        (["1", "2", "-4"], ()),  # not a number that everybody knows
        (["a", "b", "-99"], ()),
        (["1.1.2020", "2.1.2020", "-99"], ("-99",)),
    ],
)
def test_codes_of_missing_values(texts: list[str], codes: tuple[str, ...]) -> None:
    assert form(*texts).codes == codes


@pytest.mark.parametrize(
    ("texts", "dates"),
    [
        (["31.12.2014", "1.2.2015"], ("%d.%m.%Y",)),
        (["2014-12-31"], ("%Y-%m-%d",)),
        (["12/31/2014"], ("%m/%d/%Y",)),
        (["12/31/2014", "01/02/2014"], ("%m/%d/%Y",)),
        (["01/02/2014"], ("%d/%m/%Y", "%m/%d/%Y")),
        (["2014-12-31T23:59:00"], ("%Y-%m-%dT%H:%M:%S",)),
        (["18:45"], ("%H:%M",)),
        (["31.02.2014"], ()),
        (["31.12.2014", "x"], ()),
        (["2014"], ()),
        (["2:1"], ()),
    ],
)
def test_dates(texts: list[str], dates: tuple[str, ...]) -> None:
    assert form(*texts).dates == dates


@pytest.mark.parametrize(
    ("texts", "sign"),
    [
        (["$1,234.50", "$2"], "a currency sign"),
        (["1.234 €"], "a currency sign"),
        (["-5 EUR", "6 EUR"], "a currency sign"),
        (["12 %", "3.5%"], "a percent sign"),
        (["$1", "x"], ""),
        (["12", "3"], ""),
    ],
)
def test_signs_beside_numbers(texts: list[str], sign: str) -> None:
    found = form(*texts)
    assert found.sign == sign
    assert (found.kind == "numeric") == (texts[-1] != "x")


def test_columns_that_say_which_row_it_is() -> None:
    def of(values: range | list[str], name: str = "x", rows: int = 30) -> str:
        return form(*map(str, values), name=name, rows=rows).identifier

    assert of(range(30)) == of(range(1, 31)) == "a running number"
    assert of([f"p{k}" for k in range(30)]) == "all its values differ"
    for name in ("id", "case_id", "PatientID", "case no", "record"):
        assert "name is that of an identifier" in of(range(5, 35), name)
    for name in ("income", "width", "idle", "valid"):
        assert of(range(5, 35), name) == ""
    assert of(range(30), rows=31) == ""  # a value is there twice
    assert of(range(10), rows=10) == ""  # few rows differ by chance
    assert of([f"{k}.5" for k in range(30)], "id") == ""
    assert of([f"{k + 1:02}.01.2014" for k in range(30)]) == ""


def test_no_value_of_a_row_is_in_a_form() -> None:
    secret = form("Xaver", "Yvonne", "4711.25")
    assert secret == Form("text", ())
    assert "4711" not in repr(form("4711.25", "0.5"))
