from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.data.test_formats import problem, table, texts
from tests.rows.tables import parquet_with_false_counts


def test_parquet_round_trip(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", "y"], "c": np.array([0, 1], dtype="int8")})
    frame.to_parquet(tmp_path / "t.parquet")
    read = table((tmp_path / "t.parquet").read_bytes(), kind="parquet")
    np.testing.assert_array_equal(read["a"], frame["a"])
    assert texts(read["b"]) == ["x", "y"]
    np.testing.assert_array_equal(read["c"], [0, 1])


def parquet(**columns: pa.Array) -> bytes:
    written = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), written)
    return written.getvalue()


@pytest.mark.parametrize("stored", [pa.string(), pa.large_string(), "dictionary"])
def test_text_of_parquet_that_is_not_utf8_is_refused(stored: Any) -> None:
    wide = stored == pa.large_string()
    ends = np.array([0, 1, 2], "int64" if wide else "int32").tobytes()
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"a\xff")]
    kind = pa.string() if stored == "dictionary" else stored
    text = pa.Array.from_buffers(kind, 2, buffers)
    if stored == "dictionary":
        text = pa.DictionaryArray.from_arrays(pa.array([0, 1]), text)
    said = problem(parquet(x=pa.array([1, 2]), c=text), kind="parquet")
    place = "it" if stored == "dictionary" else "column 'c'"
    assert said == f"not valid parquet: {place} has text that is not UTF-8"


@pytest.mark.parametrize(("bits", "stored"), [("u4", "float32"), ("u8", "float64")])
def test_a_signalling_nan_of_parquet_is_missing_like_any_other(bits: str, stored: str) -> None:
    """NumPy warns where it meets one, and warnings are errors here."""
    sign = {"u4": 0x7F800001, "u8": 0x7FF0000000000001}[bits]
    values = np.full(3, sign, bits).view(stored)
    read = table(parquet(x=pa.array(values)), {"x": "numeric"}, kind="parquet")
    assert np.asarray(read["x"]).astype(float).view("u8").tolist() == [0x7FF8000000000000] * 3


@pytest.mark.parametrize("data", parquet_with_false_counts())
def test_counts_that_do_not_agree_are_refused(data: bytes) -> None:
    """Arrow asked for memory by them: 8.6 GB for a file of 328 bytes."""
    said = problem(data, kind="parquet")
    assert said == "not valid parquet: its counts of rows do not agree"


def test_a_torn_parquet_file_is_refused() -> None:
    assert "not valid parquet" in problem(b"PAR1 and then nothing", kind="parquet")


@pytest.mark.parametrize(
    "nested",
    [
        pa.array([["secret"], None]),
        pa.array([{"k": "secret"}, None]),
        pa.array([[("k", "secret")], None], pa.map_(pa.string(), pa.string())),
        pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float32(), 2)),
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 3), np.float32)),
        pa.array([None, None], pa.list_(pa.int8())),
    ],
)
@pytest.mark.parametrize("kinds", [{}, {"c": "text"}, {"c": "numeric"}])
def test_columns_of_lists_and_structs_are_refused(nested: pa.Array, kinds: dict[str, Any]) -> None:
    said = problem(parquet(x=pa.array([1, 2]), c=nested), kinds, kind="parquet")
    assert said.startswith("column 'c' holds lists or structs")
    assert "write each part to a column of its own" in said
    assert "`drop`" in said
    assert "secret" not in said


def test_a_nested_column_that_is_not_used_is_read_past() -> None:
    data = parquet(x=pa.array([1, 2]), c=pa.array([[1], [2, 3]]))
    read = table(data, {"c": "unused"}, kind="parquet")
    np.testing.assert_array_equal(read["x"], [1, 2])


def test_intervals_of_pandas_are_no_structs() -> None:
    written = io.BytesIO()
    pd.DataFrame({"c": pd.interval_range(0, 2)}).to_parquet(written)
    assert texts(table(written.getvalue(), kind="parquet")["c"]) == ["(0, 1]", "(1, 2]"]
