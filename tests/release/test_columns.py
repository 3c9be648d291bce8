"""What a new card takes from a file of each kind that people have.

One table of 60 people is written as each kind. What is fitted is fitted to what `load` makes of it,
and a model reads its own training file as its fit did.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dprepro import DPEBMClassifier
from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.data.card import load_card
from dprepro.data.dataset import load
from dprepro.release.columns import CONVENTIONS, Columns, Form, convention, form_of, read_columns
from dprepro.release.predicting import predict_table
from dprepro.release.rows import observed_entry
from dprepro.runtime.errors import DpreproError


def kinds(columns: Columns) -> dict[str, str]:
    return {name: form.kind for name, form in columns.forms.items()}


def test_names_and_types_of_a_csv_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age, city ,score,code\n39,Bonn,1.5,?\n,Lyon,NA,7\n")
    found = read_columns(path)
    assert kinds(found) == {"age": "numeric", "city": "text", "score": "numeric", "code": "numeric"}
    assert found.format == {}
    assert [form.lacks for form in found.forms.values()] == [True, False, True, True]
    assert found.rows is None


@pytest.mark.parametrize(("name", "value"), [("Bonn", " bonn"), ("True", "true")])
def test_a_name_that_is_a_value_of_its_column_is_doubtful(
    tmp_path: Path, name: str, value: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"age,{name}\n39,{value}\n40,{value}\n")
    assert read_columns(path).doubtful == (name,)
    path.write_text(f"{name},city\n39,{value}\n40,{value}\n")
    assert read_columns(path).doubtful == ()


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_separator_is_found(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"age{separator}city\n39{separator}Bonn, Germany\n")
    assert read_columns(path).format == {"separator": separator}
    path.write_text(f"city, age{separator}n\nBonn, 39{separator}1\nLyon{separator}2\n")
    assert read_columns(path).format == {"separator": separator}  # commas, but not in all lines


def test_types_of_parquet_are_declared_and_its_dictionaries_are_not_public(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({
        "age": [39.0], "city": pd.Categorical(["Bonn"], ["Bonn", "Lyon"]), "ok": [True],
        "flag": [1], "part": [[1, 2]], "number": ["12"],
    }).to_parquet(path)  # fmt: skip
    found = read_columns(path)
    assert kinds(found) == {
        "age": "numeric", "city": "text", "ok": "text", "flag": "numeric", "part": "text",
        "number": "text",
    }  # fmt: skip
    assert found.declared == "schema"
    assert (found.forms["ok"].categories, found.forms["city"].categories) == (
        ("False", "True"),
        (),
    )
    assert found.forms["flag"].listed == "zero-one"
    assert found.rows is None


@pytest.mark.parametrize("first", ["39,Bonn", "age,age", "age,", ""])
def test_a_file_without_names_is_refused_and_not_quoted(tmp_path: Path, first: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{first}\n40,Lyon\n")
    with pytest.raises(DpreproError) as caught:
        read_columns(path)
    assert "Bonn" not in str(caught.value)
    assert "Lyon" not in str(caught.value)


@pytest.mark.parametrize(
    ("first", "said"),
    [("age,ward,age", "columns 1 and 3 have the same"), ("a,,b", "column 2 has no name"),
     (",,a", "column 2 has no name"), ("a,2019,b", "that of column 2 is a number"),
     (",NA,b", "that of column 2 is a number, or stands for a missing value"),
     ('""', "it names no column")],
)  # fmt: skip
def test_what_is_wrong_with_names_is_said_by_position(
    tmp_path: Path, first: str, said: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{first}\n{first.replace('2019', '7')}\n")
    with pytest.raises(DpreproError, match=f"a different name for each column: {said}"):
        read_columns(path)


def test_lines_of_comment_are_named_where_lines_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for text in ("# made by a logger\n{}", "{}# restarted\n3,4\n", '{}# an "inch\n# a "x" y\n'):
        path.write_text(text.format("a,b\n1,2\n"))
        with pytest.raises(DpreproError, match="lines that begin with #: if they are comments"):
            read_columns(path)
    path.write_text("a,b\n1\n")
    with pytest.raises(DpreproError) as caught:
        read_columns(path)
    assert "comments" not in str(caught.value)


def test_an_index_of_no_name_is_the_only_one_without(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pd.DataFrame({"age": [39, 40]}).to_csv(path)
    found = read_columns(path)
    assert (list(found.forms), found.index) == (["", "age"], "")
    path.write_text("Unnamed: 0,age\n0,39\n")
    assert read_columns(path).index == "Unnamed: 0"
    path.write_text("index,age\n0,39\n")
    assert read_columns(path).index is None
    for wrong in ('""\n1\n', ",,age\n1,2,3\n"):
        path.write_text(wrong)
        with pytest.raises(DpreproError, match="a different name for each column"):
            read_columns(path)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf8", {}), ("utf-8-sig", {}), ("cp1252", {"encoding": "cp1252"}),
     ("utf-16", {"encoding": "utf-16"}), ("utf-16-le", {"encoding": "utf-16-le"}),
     ("utf-16-be", {"encoding": "utf-16-be"})],
)  # fmt: skip
def test_the_encoding_is_found(tmp_path: Path, encoding: str, said: dict[str, str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("Straße,Ort\r\n1,Köln\r\n".encode(encoding))
    found = read_columns(path)
    assert (list(found.forms), found.format) == (["Straße", "Ort"], said)


def test_an_encoding_that_is_given_is_used(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("Ort,n\nКиев,1\n".encode("cp1251"))
    assert read_columns(path, encoding="cp1251").format == {"encoding": "cp1251"}
    path.write_bytes(b"a\x81,b\n1,\xff\n")
    with pytest.raises(DpreproError, match="not text in utf8 or cp1252; say what it is with --enc"):
        read_columns(path)
    with pytest.raises(DpreproError, match="not text in utf8; "):
        read_columns(path, encoding="utf8")


def test_a_gzipped_file_and_a_line_for_spreadsheets_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a;b\n1;2\n"))
    assert read_columns(path).format == {"separator": ";"}
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DpreproError, match="not a whole gzip file"):
        read_columns(path)
    path = tmp_path / "rows.csv"
    path.write_text("sep=\t\na\tb\n1\t2\n")
    assert read_columns(path).format == {"separator": "\t"}
    path.write_text("sep=?\n1\n")  # a name
    assert (list(read_columns(path).forms), read_columns(path).format) == (["sep=?"], {})
    path.write_text("sep=;\na;b\n", encoding="utf-16")
    assert read_columns(path).format == {"encoding": "utf-16", "separator": ";"}
    path.write_text("sep=;\na;b\n1;2,5\n")
    found = read_columns(path)
    assert found.format == {"separator": ";"}
    assert kinds(found) == {"a": "numeric", "b": "numeric"}


ARFF = """\
% made by hand
@relation people
@attribute 'the age' integer [16, 90]
@ATTRIBUTE ward {a, 'b c', "d"}
@attribute dose real
@attribute name string
@attribute y {no,yes}
@data
17, a, 1, Ann, no
"""


def test_of_arff_only_the_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.arff"
    path.write_text(ARFF.replace('"d"', "d"))
    found = read_columns(path)
    assert found.declared == "header"
    assert found.forms == {
        "the age": Form("numeric", bounds=(16, 90)),
        "ward": Form("text", categories=("a", "b c", "d")),
        "dose": Form("numeric"),
        "name": Form("text"),
        "y": Form("text", categories=("no", "yes")),
    }
    path.write_text(ARFF.replace("'b c', \"d\"", "b") + "no row\n")
    assert read_columns(path).forms["ward"].categories == ("a", "b")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("@data", "@dat", "it has no @data line"),
        ("{no,yes}", "{no,yes", "line 7: a list of values begins with {, ends with }"),
        ("[16, 90]", "[16, ninety]", "line 3: the range of 'the age' is not of two numbers"),
        ("dose real", "dose", "line 5: an attribute has a name and a type"),
        ("dose real", "y real", "a different name for each attribute"),
    ],
)
def test_a_wrong_header_of_arff_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "rows.arff"
    path.write_text(ARFF.replace(old, new))
    with pytest.raises(DpreproError, match=r"rows\.arff: ") as caught:
        read_columns(path)
    assert said in str(caught.value)


def test_names_of_rows_without_a_name_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age;ward\nr1;2;secret\nr2;3;b\n")
    with pytest.raises(
        DpreproError, match="the first field is a name of the row, as R writes"
    ) as got:
        read_columns(path)
    assert "such as `row;`" in str(got.value)
    assert "secret" not in str(got.value)


def test_a_whole_number_may_be_stored_as_a_float(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"flag": [1.0, 0.0, None], "x": [0.5, 1, None]}).to_parquet(path)
    found = read_columns(path).forms
    assert found["flag"] == Form("numeric", listed="zero-one", lacks=True)
    assert found["x"] == Form("numeric", lacks=True)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_whole_numbers_beyond_int64_are_numbers(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"x": [1e20, 3e25, 2.0**63, None]}, dtype=kind).to_parquet(path)
    found = read_columns(path, observed=True)
    assert found.forms["x"] == Form("numeric", lacks=True)
    assert found.rows is not None
    entry = observed_entry(found.rows["x"], found.forms["x"], (".", ""), ())
    assert (entry.kind, entry.lower, entry.upper) == ("numeric", 0, pytest.approx(3e25))


def test_missing_values_of_every_type_are_seen(tmp_path: Path) -> None:
    table = pd.DataFrame({"ok": pd.array([True, None], "boolean"), "none": [None, None]})
    table.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("none,x\n,1\nNA,2\n")
    typed = read_columns(tmp_path / "rows.parquet").forms
    assert (typed["ok"].lacks, typed["none"].lacks) == (True, True)
    assert read_columns(tmp_path / "rows.csv").forms["none"].lacks


def test_more_columns_than_a_card_can_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(",".join(f"c{k}" for k in range(20_001)) + "\n")
    with pytest.raises(DpreproError, match="20,001 columns, and a card can have 20,000 features"):
        read_columns(path)


def test_values_are_kept_only_if_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age\n 39\n")
    found = read_columns(path, observed=True)
    assert found.rows is not None
    assert found.rows.to_pydict() == {"age": ["39"]}
    assert "39" not in repr(found)


def test_a_file_of_another_kind_or_of_broken_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"ends in \.csv or \.parquet"):
        read_columns(tmp_path / "rows.xlsx")
    with pytest.raises(DpreproError, match="cannot be read"):
        read_columns(tmp_path / "missing.csv")
    path = tmp_path / "rows.csv"
    path.write_text("age,city\n39,secret,more\n40,b\n")
    with pytest.raises(DpreproError, match="Expected 2 columns") as caught:
        read_columns(path)
    assert "secret" not in str(caught.value)


def test_rows_of_arff_are_read_if_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rows.arff"
    header = "@relation r\n@attribute age real\n@attribute name string\n@data\n"
    path.write_text(header + "17,'a, b'\n% a comment\n\n90,?\n")
    found = read_columns(path, observed=True).rows
    assert found is not None
    assert found.to_pydict() == {"age": ["17", "90"], "name": ["a, b", None]}
    path.write_text(header + "{0 17}\n")
    sparse = read_columns(path, observed=True).rows
    assert sparse is not None
    assert sparse.to_pydict() == {"age": ["17"], "name": ["0"]}
    assert list(read_columns(path).forms) == ["age", "name"]


def test_names_of_parquet_are_looked_at_as_well(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame([[1, 2]], columns=["12", "b"]).to_parquet(path)
    with pytest.raises(DpreproError, match="a different name for each column") as caught:
        read_columns(path)
    assert "line" not in str(caught.value).removeprefix(str(path))


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


CARD = """\
name: people
task: binary
file: {file}
target: left
positive: "yes"
labels: ["no", "yes"]
missing: ["", "?", "NA", "-200", "-99"]
{more}
features:
  age: {{numeric: [16, 90], missing: true}}
  overtime: {{categories: ["No", "Yes"], missing: true}}
  site: {{categories: [Nord, "Süd, West", "O'Brien \\"H\\""], missing: true}}
  code: {{categories: ["1", "2"], missing: true}}
"""


def people() -> list[dict[str, Any]]:
    draw = random.Random(1)
    rows = [
        {
            "age": draw.choice([None, *np.arange(16, 90, 0.5).tolist()]),
            "overtime": draw.choice(["Yes", "No", None]),
            "site": draw.choice(["Nord", "Süd, West", 'O\'Brien "H"', None]),
            "code": draw.choice(["1", "2", None]),
            "note": draw.choice(["", 'said "no"', "a\r\n34,Yes,Nord,1,x,yes", "x;y,z"]),
        }
        for _ in range(60)
    ]
    return [{**row, "left": draw.choice(["no", "yes"])} for row in rows]


def text(rows: list[dict[str, Any]], missing: str = "", end: str = "\r\n", **how: Any) -> str:
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=end, **how)
    writer.writerow(rows[0])
    writer.writerows([missing if v is None else v for v in row.values()] for row in rows)
    return written.getvalue()


def german_survey(folder: Path) -> tuple[str, str]:
    rows = [
        {**r, "age": "-99" if r["age"] is None else f"{r['age']:.2f}".replace(".", ",")}
        for r in people()
    ]
    (folder / "t.csv").write_bytes(text(rows, delimiter=";").encode("cp1252"))
    return "t.csv", 'format: {separator: ";", decimal: ",", encoding: cp1252}\ndrop: [note]'


def instrument_log(folder: Path) -> tuple[str, str]:
    rows = [{**r, "age": -200.0 if r["age"] is None else r["age"]} for r in people()]
    body = text(rows, missing="\t?", end="\n")
    (folder / "t.csv").write_text("sep=,\n#made by hand\n" + body + "\n\x1a", encoding="utf-8-sig")
    return "t.csv", 'format: {comment: "#"}\ndrop: [note]'


def weka(folder: Path) -> tuple[str, str]:
    def quoted(value: Any) -> str:
        if value is None:
            return "?"
        escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
        escaped = escaped.replace("\r", "\\r").replace("\n", "\\n")
        return f"'{escaped}'"

    head = (
        "% made by hand\n@relation people\n@attribute age numeric [16,90] % years\n"
        "@attribute overtime {No,Yes}\n@attribute site {Nord,'Süd, West','O\\'Brien \"H\"'}\n"
        "@attribute code {1,2}\n@attribute note string\n@attribute left {no,yes}\n@data\n"
    )
    lines = [", ".join(map(quoted, row.values())) for row in people()]
    (folder / "t.arff").write_text(head + "\n% rows\n".join(lines), encoding="utf8")
    return "t.arff", "drop: [note]"


def filtered_parquet(folder: Path) -> tuple[str, str]:
    frame = pd.DataFrame(people()).astype({"code": "Float64", "overtime": "category"})
    pd.concat([frame.iloc[::2], frame.iloc[1::2]]).to_parquet(folder / "t.parquet")
    return "t.parquet", "drop: [note]"


def by_r(folder: Path) -> tuple[str, str]:
    rows = [{"": str(k), **row} for k, row in enumerate(people(), start=1)]
    (folder / "t.csv").write_text(text(rows, "NA", "\n", quoting=csv.QUOTE_NONNUMERIC), "utf8")
    return "t.csv", 'drop: ["", note]'


def by_excel(folder: Path) -> tuple[str, str]:
    (folder / "t.txt").write_bytes(text(people(), delimiter="\t").encode("utf-16"))
    return "t.txt", 'format: {separator: "\\t", encoding: utf-16}\ndrop: [note]'


def of_an_hr_department(folder: Path) -> tuple[str, str]:
    codes = {None: None, "1": "1.0", "2": "2.0"}
    rows = [{k: v for k, v in row.items() if k != "note"} for row in people()]
    frame = pd.DataFrame([{**r, "code": codes[r["code"]]} for r in rows])
    frame.astype({"code": float}).to_parquet(folder / "t.parquet", index=False)
    return "t.parquet", ""


def odd_headings(folder: Path) -> tuple[str, str]:
    content = text(people()).replace("age,", '" age ",', 1).replace("note,", "note,note,", 1)
    first, _, rest = content.partition("\r\n")
    body = list(csv.reader(io.StringIO(rest, newline="")))
    written = io.StringIO(newline="")
    csv.writer(written).writerows([*row[:5], "again", row[5]] for row in body)
    (folder / "t.csv").write_text("\n" + first + "\r\n" + written.getvalue(), "utf-8-sig")
    return "t.csv", "drop: [note]"


def gzipped(folder: Path) -> tuple[str, str]:
    (folder / "t.csv.gz").write_bytes(gzip.compress(text(people()).encode()))
    return "t.csv.gz", "drop: [note]"


def long_texts(folder: Path) -> tuple[str, str]:
    rows = [{**row, "note": row["note"] * 4000} for row in people()]
    (folder / "t.csv").write_text(text(rows), "utf8")
    assert (folder / "t.csv").stat().st_size > 2**20
    return "t.csv", "drop: [note]"


def codes_of_a_form(folder: Path) -> tuple[str, str]:
    rows = [{**row, "code": {None: "9", "1": "one", "2": "8"}[row["code"]]} for row in people()]
    (folder / "t.csv").write_text(text(rows), "utf8")
    return "t.csv", "drop: [note]"


KINDS: list[Callable[[Path], tuple[str, str]]] = [
    german_survey, instrument_log, weka, filtered_parquet, by_r, by_excel, of_an_hr_department,
    odd_headings, gzipped, long_texts, codes_of_a_form,
]  # fmt: skip
IN_DUCKDB = (filtered_parquet, by_r, of_an_hr_department, gzipped, long_texts)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_model_reads_its_own_training_file_as_the_fit_did(
    tmp_path: Path, kind: Callable[[Path], tuple[str, str]]
) -> None:
    file, more = kind(tmp_path)
    card = CARD.format(file=file, more=more)
    if kind is codes_of_a_form:
        said = "missing: true, relabel: {one: '1'}, groups: {'2': ['8']}}"
        card = card.replace(
            'categories: ["1", "2"], missing: true}', f'categories: ["1", "2"], {said}'
        )
        card = card.replace('"-99"]', '"-99", "9"]')
    (tmp_path / "card.yaml").write_text(card, "utf8")
    dataset = load(tmp_path / "card.yaml")

    expected = people()
    if kind is filtered_parquet:
        expected = expected[::2] + expected[1::2]
    found = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in dataset.X.astype(object).to_dict("records")
    ]
    names = ["age", "overtime", "site", "code"]
    assert found == [{name: row[name] for name in names} for row in expected]
    assert [("no", "yes")[code] for code in dataset.y] == [row["left"] for row in expected]

    labels = np.array(["no", "yes"], dtype=object)[dataset.y]
    model = DPEBMClassifier(epsilon=20, delta=1e-3, domain=dataset.domain, random_state=1)
    model.fit(dataset.X, labels)
    probabilities = model.predict_proba(dataset.X)[:, 1]
    assert len(set(probabilities.round(6))) > 20
    if kind is weka:
        return  # `predict` takes CSV and Parquet
    out = tmp_path / "out.csv"
    predict_table(model, tmp_path / file, out, card=load_card(tmp_path / "card.yaml"))
    np.testing.assert_allclose(pd.read_csv(out)["probability"], probabilities, rtol=1e-12)
    if kind in IN_DUCKDB:
        con = duckdb.connect()
        con.sql(f"create table new_rows as select * from '{tmp_path / file}'")
        marks = ("", "?", "NA", "-200", "-99")
        said = con.sql(to_sql(model, "new_rows", "duckdb", marks)).df()["probability"]
        np.testing.assert_allclose(said, probabilities, rtol=1e-9)
    if kind in (by_r, long_texts):
        (tmp_path / "m.py").write_text(to_python(model), "utf8")
        command = [sys.executable, tmp_path / "m.py", tmp_path / file]
        done = subprocess.run(command, capture_output=True, check=True)
        said = pd.read_csv(io.BytesIO(done.stdout))["probability"]
        np.testing.assert_allclose(said, probabilities, rtol=1e-12)
