from __future__ import annotations

import encodings.aliases
import gzip
import io
import tarfile
import zipfile
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.data.card_parts import Format
from dprepro.data.cell_values import Marks, NotNumericError, holds, read_numbers
from dprepro.data.files import extract_member
from dprepro.data.formats import read_table
from dprepro.runtime.errors import NUMBERS_LOOK, DpreproError

MISSING = ["", "?", "NA"]


def table(data: bytes, kinds: dict[str, Any] | None = None, **settings: Any) -> pd.DataFrame:
    """Return what a file holds: numbers of columns that are, else what each cell says."""
    settings = {"kind": "csv", **settings}
    read = read_table(data, Format(**settings), kinds or {})
    marks = Marks(MISSING)

    def of(name: str) -> Any:
        column, kind = read[name], (kinds or {}).get(name)
        if kind == "numeric" or (kind is None and holds(column.type) == "text"):
            with suppress(NotNumericError if kind is None else ()):
                return read_numbers(column, name, marks)
        return column.to_pandas()

    return pd.DataFrame({name: of(name) for name in read.column_names})


def texts(column: pd.Series) -> list[str]:
    return [str(value) for value in column]


def problem(data: bytes, kinds: dict[str, Any] | None = None, **settings: Any) -> str:
    with pytest.raises(DpreproError) as caught:
        table(data, kinds, **settings)
    return str(caught.value)


def test_csv_types_are_inferred() -> None:
    read = table(b"n,f,s\n1,0.5,a\n2,NA,b\n")
    assert list(read.columns) == ["n", "f", "s"]
    np.testing.assert_array_equal(read["n"], [1, 2])
    np.testing.assert_array_equal(read["f"], [0.5, np.nan])
    assert texts(read["s"]) == ["a", "b"]


def test_known_kinds_win_over_what_the_text_looks_like() -> None:
    read = table(b"code,n\n01,1\n02,2\n", {"code": "text", "n": "numeric"})
    assert texts(read["code"]) == ["01", "02"]
    assert read["n"].dtype == np.float64


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators(separator: str) -> None:
    data = "a,b\n1,x\n2,y\n".replace(",", separator).encode()
    read = table(data, separator=separator)
    np.testing.assert_array_equal(read["a"], [1, 2])
    assert texts(read["b"]) == ["x", "y"]


def test_without_a_header_the_format_names_the_columns() -> None:
    read = table(b"1, x\n2, y\n", {"a": "numeric"}, header=False, columns=["a", "b"])
    assert read.shape == (2, 2)
    assert read["a"].sum() == 3


def test_comments_and_blank_lines_are_skipped() -> None:
    read = table(b"|a comment\na,b\n1,x|y\n|another, one\n\n2,z\n\n", comment="|")
    np.testing.assert_array_equal(read["a"], [1, 2])
    assert texts(read["b"]) == ["x|y", "z"]


@pytest.mark.parametrize("gap", [b"", b" "])
def test_missing_numbers_with_or_without_a_blank(gap: bytes) -> None:
    data = b"a,b\nx,1\n" + b"".join(b"x," + gap + token + b"\n" for token in (b"", b"?", b"NA"))
    np.testing.assert_array_equal(table(data, {"b": "numeric"})["b"], [1] + [np.nan] * 3)


def test_quotes_a_byte_order_mark_and_crlf() -> None:
    read = table(b'\xef\xbb\xbf"a b",c\r\n"x, y",1\r\n')
    assert list(read.columns) == ["a b", "c"]
    assert texts(read["a b"]) == ["x, y"]


def test_other_encodings() -> None:
    data = "a,b\nné,1\n".encode("latin-1")
    assert texts(table(data, encoding="latin-1")["a"]) == ["né"]
    assert "not valid csv" in problem(data, {"a": "text"})


@pytest.mark.parametrize("data", [b"a,b\nn\xe9,1\n", b"n\xe9,b\nn,1\n"])
def test_bytes_that_do_not_fit_the_encoding_are_refused(data: bytes) -> None:
    """This decoder of Python raises UnicodeError, and not UnicodeDecodeError."""
    assert "not text in the expected encoding" in problem(data, {"b": "text"}, encoding="utf-16")


@pytest.mark.parametrize("name", sorted({*encodings.aliases.aliases.values(), "utf-8-sig"}))
def test_every_encoding_that_a_card_may_name_can_be_read(name: str) -> None:
    try:
        settings = Format(header=False, columns=["a"], encoding=name)
    except ValueError:
        pytest.skip("a card may not name it")
    data = "Ab9\n".encode(name)
    read = read_table(data, settings.model_copy(update={"kind": "csv"}), {"a": "text"})
    assert read["a"].to_pylist() == ["Ab9"]


@pytest.mark.parametrize("kinds", [{}, {"city": "text"}])
def test_text_in_another_encoding_is_refused_with_the_remedy(kinds: dict[str, Any]) -> None:
    said = problem("age,city\n1,Köln\n".encode("latin-1"), kinds)
    assert "save the file as UTF-8" in said
    assert "line 2: " in said
    assert "`format: {encoding: latin-1}`" in said
    assert "iconv -f latin1 -t utf8" in said


def test_every_float_is_read_to_the_last_bit() -> None:
    values = np.random.default_rng(0).standard_normal(500) * 10.0 ** np.arange(-250, 250)
    data = ("a\n" + "\n".join(map(repr, values.tolist()))).encode()
    np.testing.assert_array_equal(table(data, {"a": "numeric"})["a"], values)


@pytest.mark.parametrize(
    ("data", "kinds", "says"),
    [
        (
            b"a,b\n1,2\nten,3\n",
            {"a": "numeric"},
            "list it on the card under `missing`. " + NUMBERS_LOOK,
        ),
        (b"a,b\n1,2\n3\n", {}, "line 3: Expected 2 columns, got 1"),
        (b"", {}, "the file is empty: its first line should name the columns"),
    ],
)
def test_csv_that_does_not_fit(data: bytes, kinds: dict[str, Any], says: str) -> None:
    assert says in problem(data, kinds)


ARFF_HEADER = b"""% a comment
@RELATION 'toy'
@attribute 'the age' REAL
@attribute colour {red, 'dark blue', green}
@attribute note STRING
@DATA
"""


def test_arff_with_quotes_comments_and_missing_values() -> None:
    data = ARFF_HEADER + b"1.5,red,'a, b'\r\n% no row\r\n?,'dark blue',?\r\n2,green,'it\\'s'\r\n"
    read = table(data, kind="arff")
    assert list(read.columns) == ["the age", "colour", "note"]
    np.testing.assert_array_equal(read["the age"], [1.5, np.nan, 2])
    assert texts(read["colour"]) == ["red", "dark blue", "green"]
    assert read["note"].tolist()[::2] == ["a, b", "it's"]
    assert read["note"].isna().tolist() == [False, True, False]


def test_the_quick_and_the_thorough_arff_reader_agree() -> None:
    quick = ARFF_HEADER + b"1,red,n\n2,'dark blue',m\n"
    thorough = ARFF_HEADER + b"1, red, n\n2, 'dark blue', \"m\"\n"
    assert thorough.count(b'"') == 2  # what sends it to the thorough reader
    a, b = table(quick, kind="arff"), table(thorough, kind="arff")
    for name in a.columns:
        assert texts(a[name]) == texts(b[name])


def test_sparse_arff() -> None:
    data = b"@relation t\n@attribute a REAL\n@attribute b REAL\n@data\n{0 3}\n{1 4}\n"
    read = table(data, kind="arff")
    np.testing.assert_array_equal(read[["a", "b"]].to_numpy(dtype=float), [[3, 0], [0, 4]])


def test_the_card_decides_over_the_arff_header() -> None:
    data = b"@relation t\n@attribute a {1,2}\n@attribute b REAL\n@data\n1,0\n2,1\n"
    read = table(data, {"a": "numeric", "b": "text"}, kind="arff")
    np.testing.assert_array_equal(read["a"], [1.0, 2.0])
    assert texts(read["b"]) == ["0", "1"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"@relation t\n@attribute a REAL\n", "no @data line"),
        (b"@relation t\n@attribute a WRONG\n@data\n1\n", "line 2: the type of 'a' is 'wrong'"),
        (b"@relation t\n@attribute a REAL\n@data\n1,2\n", "not valid arff: line 4: Expected 1"),
        (b"@relation t\n@attribute a {x, 'y\n@data\nx\n", "line 2: a list of values begins"),
        (b"@relation t\nnonsense\n@data\n1\n", "line 2 is neither @relation"),
        (b"@relation t\n@attribute a\n@data\n1\n", "line 2: an attribute has a name and a type"),
        (b"@relation t\n@attribute a string\n@data\n'x\ny\n", "line 4: a quote (') opens"),
        (b"@relation t\n@attribute a REAL\n@data\n{0 1}\n{5 1}\n", "line 5: a sparse row is"),
    ],
)
def test_arff_that_does_not_fit(data: bytes, says: str) -> None:
    assert says in problem(data, kind="arff")


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_a_member_of_a_zip_file() -> None:
    assert extract_member(zipped(one=b"1", two=b"2"), "two") == b"2"


def tarred(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        archive.addfile(_folder("folder"))
    return buffer.getvalue()


def _folder(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE
    return entry


def test_a_member_of_a_tar_file() -> None:
    data = tarred(**{"folder/one": b"1", "folder/two": b"2"})
    assert extract_member(data, "folder/two") == b"2"
    with pytest.raises(DpreproError, match=r"no member 'folder/tow'; did you mean 'folder/two'"):
        extract_member(data, "folder/tow")
    with pytest.raises(DpreproError, match="is no file"):
        extract_member(data, "folder")


@pytest.mark.parametrize("length", [5, 60])
def test_half_a_tar_file_is_refused(length: int) -> None:
    whole = tarred(one=np.random.default_rng(0).bytes(500))
    with pytest.raises(DpreproError, match="not a whole gzipped tar file"):
        extract_member(whole[:length], "one")


def test_a_member_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(DpreproError, match=r"no member 'adult.dat'; did you mean 'adult.data'\?"):
        extract_member(zipped(**{"adult.data": b"1", "other": b"2"}), "adult.dat")


# Named here, since a zip holds the time: its bytes as a test's name differ between workers.
@pytest.mark.parametrize(
    "data", [b"", b"no zip", zipped(one=b"1" * 100)[:60]], ids=["empty", "text", "half"]
)
def test_half_a_zip_file_is_refused(data: bytes) -> None:
    with pytest.raises(DpreproError, match="not a whole zip file"):
        extract_member(data, "one")


SVMLIGHT = {"kind": "svmlight", "header": False, "columns": ["label", "a", "b", "c"]}


def test_svmlight_fills_what_is_left_out_with_zeros() -> None:
    read = table(b"-1 1:-7.5 3:2\n+1 2:0.25\n", **SVMLIGHT)
    assert list(read.columns) == ["label", "a", "b", "c"]
    np.testing.assert_array_equal(read, [[-1, -7.5, 0, 2], [1, 0, 0.25, 0]])


def test_svmlight_with_more_features_than_names_or_none_is_refused() -> None:
    assert "with 3 features" in problem(b"1 4:1\n", **SVMLIGHT)
    assert "not valid svmlight" in problem(b"no such thing\n", **SVMLIGHT)
    assert "columns: [label" in problem(b"1 1:1\n", kind="svmlight")


NPZ = {"kind": "npz", "header": False, "columns": ["label", "a", "b"]}


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def test_npz_has_the_label_first() -> None:
    read = table(npz(X=np.array([[1, 2], [3, 4]], np.int16), y=np.array([0, 1])), **NPZ)
    assert list(read.columns) == ["label", "a", "b"]
    np.testing.assert_array_equal(read, [[0, 1, 2], [1, 3, 4]])


def test_npz_of_the_other_byte_order_is_read() -> None:
    read = table(npz(X=np.array([[1.5, 2], [3, 4]], ">f8"), y=np.array([0, 1], ">i4")), **NPZ)
    np.testing.assert_array_equal(read, [[0, 1.5, 2], [1, 3, 4]])
    assert all(column.isnative for column in map(np.dtype, read.dtypes))


def test_npz_of_other_arrays_is_refused() -> None:
    X, y = np.zeros((2, 2)), np.zeros(2)
    assert "columns: [label" in problem(npz(X=X, y=y), kind="npz")
    assert "with 2 features" in problem(npz(X=X[:, :1], y=y), **NPZ)
    assert "with 2 features" in problem(npz(X=X, y=y[:1]), **NPZ)
    assert "with 2 features" in problem(npz(X=np.zeros((4, 2)), y=X), **NPZ)  # y of 2 by 2
    assert "with 2 features" in problem(npz(X=X[:1], y=np.array(1.0)), **NPZ)
    assert "arrays of numbers X and y" in problem(npz(X=X), **NPZ)
    assert "arrays of numbers X and y" in problem(b"PK no archive", **NPZ)
    assert "arrays of numbers X and y" in problem(npz(X=X * 1j, y=y), **NPZ)
    # Objects would be unpickled, which can run code.
    assert "arrays of numbers X and y" in problem(npz(X=X, y=np.array([None, {}])), **NPZ)


def idx(*shape: int) -> bytes:
    head = bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape)
    return head + bytes(range(int(np.prod(shape))))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_images_and_labels(pack: Any) -> None:
    images = table(pack(idx(3, 2, 2)), kind="idx")
    assert list(images.columns) == ["pixel1", "pixel2", "pixel3", "pixel4"]
    assert set(images.dtypes) == {np.dtype(np.uint8)}
    np.testing.assert_array_equal(images, np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(table(pack(idx(3)), kind="idx")["class"], [0, 1, 2])


@pytest.mark.parametrize("data", [b"", idx(3, 2)[:-1], idx(2) + b"x", b"\0\0\x0d" + idx(2)[3:]])
def test_idx_must_be_whole_and_of_bytes(data: bytes) -> None:
    assert "not valid idx" in problem(data, kind="idx")


def test_a_torn_gzip_file_is_said_to_be_torn() -> None:
    assert "not a whole gzip file" in problem(gzip.compress(idx(3))[:-9], kind="idx")
