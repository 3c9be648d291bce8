"""Delimited text is parted into records by RFC 4180, or the line that is wrong is named."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprepro.data import delimited
from dprepro.data.decoding import BadRecordError
from dprepro.data.delimited import FIELDS, Dialect, Records, line_of

ARFF: dict[str, Any] = {
    "names": ("a", "b", "c"), "quotes": "'\"", "escape": "\\", "missing": "?", "comment": "%",
}  # fmt: skip


def read(data: bytes, block: int = 64, **how: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    records = Records(io.BytesIO(data), Dialect(**how), block_bytes=block)
    rows: list[tuple[Any, ...]] = []
    for table in records.tables(dict.fromkeys(range(len(records.names)), FIELDS)):
        rows += zip(*(column.to_pylist() for column in table.columns), strict=True)
    return records.names, rows


def problem(data: bytes, **how: Any) -> str:
    with pytest.raises(BadRecordError) as caught:
        read(data, **how)
    assert "secret" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "how", "names", "rows"),
    [
        (b'a,b\n1, "x, y" \n2,"z"\n', {}, ["a", "b"], [("1", "x, y"), ("2", "z")]),
        (b'a,b\n5" pipe,2\n', {}, ["a", "b"], [('5" pipe', "2")]),
        (b'a,b\n"say ""hi""",\n', {}, ["a", "b"], [('say "hi"', "")]),
        (b'"a\n(b)",c\r\n1,2\r\n', {}, ["a (b)", "c"], [("1", "2")]),
        (b'a,b\r1,2\r3,"x\ry"\r', {}, ["a", "b"], [("1", "2"), ("3", "x\ry")]),
        (b"sep=;\na;b\n1;2\n", {}, ["a", "b"], [("1", "2")]),
        (b"sep=?\n1\n", {}, ["sep=?"], [("1",)]),
        (b"\n\na,b\n\n1,2\n  \n\n", {}, ["a", "b"], [("1", "2")]),
        (b"a,b\n1,2\n\x1a", {}, ["a", "b"], [("1", "2")]),
        (b"\xef\xbb\xbf#x\na,b\n1,2\n", {"comment": "#"}, ["a", "b"], [("1", "2")]),
        (b'#x\n#"\na,b\n1,"2"\n#z\n3,4\n', {"comment": "#"}, ["a", "b"], [("1", "2"), ("3", "4")]),
        (b"a,a,\n1,2,3\n", {}, ["a", "a", ""], [("1", "2", "3")]),
        (b"a,b", {}, ["a", "b"], []),
        (b"a,b\n1,2", {"names": ("x", "y"), "replaces_names": True}, ["x", "y"], [("1", "2")]),
        ("a,b\né,2\n".encode("utf-16"), {}, ["a", "b"], [("é", "2")]),
        ("a,b\n§x\n1,2\n".encode("utf-16"), {"comment": "§"}, ["a", "b"], [("1", "2")]),
        (
            "a,b\n§x\n1,2\n".encode("latin-1"),
            {"comment": "§", "encoding": "latin-1"},
            ["a", "b"],
            [("1", "2")],
        ),
        ("a,b\né,2\n".encode("cp1252"), {"encoding": "cp1252"}, ["a", "b"], [("é", "2")]),
        (b'a\n"1"\n""\n2\n\n', {}, ["a"], [("1",), ("",), ("2",)]),
        (b"1,'it\\'s',?\n", ARFF, ["a", "b", "c"], [("1", "it's", None)]),
        (b"2,\"a 'b'\",'?'\n% no\n", ARFF, ["a", "b", "c"], [("2", "a 'b'", "?")]),
        (b" ?\t, x ,'\\n'\n", ARFF, ["a", "b", "c"], [(None, "x", "\n")]),
        (b"1,'a, b',?\n2,'',4\n", ARFF, ["a", "b", "c"], [("1", "a, b", None), ("2", "", "4")]),
    ],
)
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_what_people_meet_in_files_is_read(
    data: bytes, how: dict[str, Any], names: list[str], rows: Any, block: int
) -> None:
    assert read(data, block, **how) == (names, rows)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'a,b\n1,x\n2,"secret\n3,y\n', 'line 3: a quote (") opens a field here and is never'),
        (b'a,b\n1,"secret"y\n', 'line 2: text stands after the closing quote (")'),
        (b'a,b\n1,"se\ncret"\n2\n', "line 4: Expected 2 columns, got 1"),
        (b"a,b\n1,2,secret\n", "line 2: Expected 2 columns, got 3"),
        (b"a,b\n1,2,secret\n", "put a name before the first one in line 1, such as `row,`"),
        (b"a\n1\n\n2\n", "line 3 is empty, and the table has one column"),
        (b"", "the file is empty: its first line should name the columns"),
        (b"a,b\n1,\xe9secret\n", "line 2: its bytes are not text in the expected encoding, utf8"),
        (b"a,b\n1,\0secret\n", "line 2: a NUL byte is no text. If the file was saved as UTF-16"),
        (b'"a,b\n1,2\n', "line 1: a quote"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(data: bytes, said: str) -> None:
    assert said in problem(data)


def test_names_that_replace_others_must_be_as_many() -> None:
    said = problem(b"a,b\n1,2\n", names=("x",), replaces_names=True)
    assert said.startswith("line 1: it has 2 names, and `columns` names 1")


def test_a_record_that_fills_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MOST_RECORD_BYTES", 1000)
    assert "line 2: a record that begins here is longer than" in problem(
        b'a,b\n1,"' + b"x" * 5000 + b'"\n'
    )


def test_rows_before_what_is_no_text_are_there() -> None:
    records = Records(io.BytesIO(b"a,b\n1,2\n3,4\n\xff,5\n"), Dialect())
    tables = records.tables({0: FIELDS})
    assert next(tables)["0"].to_pylist() == ["1", "3"]
    with pytest.raises(BadRecordError, match="line 4: its bytes"):
        next(tables)


def test_the_line_of_a_record_counts_lines_within_cells_and_comments() -> None:
    data = b'#x\na,b\n1,"x\ny"\n\n#z\n2,"\r\n"\n3,4\n'
    how = Dialect(comment="#")
    assert [line_of(io.BytesIO(data), how, k) for k in range(3)] == [3, 7, 9]


ENDS = ["\n", "\r\n", "\r"]
CELL = st.text(st.sampled_from('ab1 ,"\n\r;é\t'), max_size=8)
ROWS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=12)
)


@settings(max_examples=300, deadline=None)
@given(
    ROWS, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.integers(1, 80), st.booleans()
)
def test_any_table_reads_as_by_another_reader_whatever_the_blocks(
    rows: list[list[str]], end: str, quoted: bool, block: int, is_cut: bool
) -> None:
    width = len(rows[0]) if rows else 2
    quoted = quoted or width == 1
    if not quoted:  # Python writes a lone CR or LF without quotes where lines end otherwise
        rows = [[cell.replace("\r", "").replace("\n", "") for cell in row] for row in rows]
    text = io.StringIO(newline="")
    how = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(text, lineterminator=end, quoting=how).writerows(
        [[f"h{k}" for k in range(width)], *rows]
    )
    data = text.getvalue()
    data = data.removesuffix(end) if is_cut else data
    expected = [row for row in csv.reader(io.StringIO(data, newline="")) if row][1:]
    found = read(data.encode(), block)[1]
    strip = [[cell.strip(" \t") for cell in row] for row in found]
    assert strip == [[cell.strip(" \t") for cell in row] for row in expected]


def test_the_line_of_a_record_is_found_behind_lines_of_blanks() -> None:
    data = b"a,b\n1,2\n   \n3,4\n5,6\n"
    assert [line_of(io.BytesIO(data), Dialect(), k) for k in range(2)] == [2, 4]
    with pytest.raises(ValueError, match="no such record"):
        line_of(io.BytesIO(data), Dialect(), 9)
