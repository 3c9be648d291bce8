from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from dprepro.release.columns import Columns, Form, read_columns
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
