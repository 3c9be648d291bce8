"""Tables are read in chunks of any size, in one order, in bounded memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from dprepro.rows.readers import TableError
from dprepro.rows.table import CHUNK_CELLS, CHUNK_ROWS, Table, is_table
from tests.rows.tables import parquet_with_false_counts


def read(source: Any, kinds: dict[str, Any], chunk_rows: int | None = None) -> pd.DataFrame:
    return pd.concat(Table.open(source).chunks(kinds, chunk_rows), ignore_index=True)


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.table(columns), path, **options)
    return path


def test_names_are_known_without_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(' b ,"a, too"\n1,2\n')
    assert Table.open(tmp_path / "t.csv").names == ["b", "a, too"]
    table = Table.open(write(tmp_path / "t.parquet", {"b": [1], "a.x": [2], "a": [3]}))
    assert table.names == ["b", "a.x", "a"]
    assert next(table.chunks({"a": "numeric", "a.x": "numeric"})).to_numpy().tolist() == [[3, 2]]
    assert Table.open(table) is table


def test_files_of_a_folder_come_by_their_paths_and_partitions_are_columns(tmp_path: Path) -> None:
    for year, month in ((2024, "b"), (2023, "b"), (2023, "a")):
        write(tmp_path / f"year={year}" / f"{month}.parquet", {"x": [f"{year}{month}"]})
    (tmp_path / "_metadata.parquet").write_text("not a table")
    (tmp_path / "year=2024" / "notes.txt").write_text("nor this")
    for source in (tmp_path, pa.dataset.dataset(
        sorted(map(str, tmp_path.glob("year=*/*.parquet")), reverse=True), format="parquet",
        partitioning="hive",
    )):  # fmt: skip
        found = read(source, {"x": "text", "year": "numeric"})
        assert found["x"].tolist() == ["2023a", "2023b", "2024b"]
        assert found["year"].tolist() == [2023, 2023, 2024]


def test_a_part_of_a_dataset_can_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", {"x": np.arange(10)}, row_group_size=2)
    fragment = next(iter(pa.dataset.dataset(path).get_fragments())).subset(row_group_ids=[1, 4])
    part = pa.dataset.FileSystemDataset(
        [fragment], fragment.physical_schema, fragment.format, fragment.filesystem
    )
    assert read(part, {"x": "numeric"}, 3)["x"].tolist() == [2, 3, 8, 9]


@pytest.mark.parametrize("data", parquet_with_false_counts())
def test_a_parquet_file_whose_counts_do_not_agree_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(data)
    with pytest.raises(TableError, match=r"^t.parquet: .* \(its counts of rows do not agree\)"):
        list(Table.open(tmp_path).chunks({"x": "numeric"}))


@pytest.mark.parametrize("data", parquet_with_false_counts()[:2])
def test_counts_that_do_not_agree_are_no_identity(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(data)
    with pytest.raises(TableError, match=r"^t.parquet: .* \(its counts of rows do not agree\)"):
        Table.open(tmp_path).identity()


def test_files_may_differ_in_how_numbers_are_stored(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", {"x": pa.array([1, None], pa.int8())})
    write(tmp_path / "2.parquet", {"x": pa.array([0.5])})
    np.testing.assert_array_equal(read(tmp_path, {"x": "numeric"})["x"], [1, np.nan, 0.5])
    write(tmp_path / "3.parquet", {"x": pa.array(["secret"])})
    with pytest.raises(
        TableError, match=r"3.parquet: column 'x' is of type string, which does not"
    ):
        read(tmp_path, {"x": "numeric"})
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(bytes(4) + b"\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    write(tmp_path / "3.parquet", {"x": text})
    with pytest.raises(TableError, match=r"3.parquet: column 'x' has text that is not UTF-8"):
        list(Table.open(tmp_path / "3.parquet").chunks({"x": "text"}, 5))
    write(tmp_path / "3.parquet", {"x": pa.DictionaryArray.from_arrays(pa.array([0]), text)})
    with pytest.raises(TableError, match=r"3.parquet: not a whole .* \(Invalid UTF8 payload\)"):
        list(Table.open(tmp_path / "3.parquet").chunks({"x": "text"}, 5))
    write(tmp_path / "3.parquet", {"other": [1]})
    with pytest.raises(TableError, match=r"3.parquet: the file has no column 'x'"):
        read(tmp_path, {"x": "numeric"})


@pytest.mark.parametrize(
    ("first", "then", "kind", "is_kept"),
    [
        (pa.array([1], pa.int32()), pa.array([2], pa.int64()), "label", True),
        (pa.array([1], pa.int32()), pa.array([2.0]), "label", True),
        (pa.array([1], pa.int32()), pa.array([2.5]), "label", False),
        (pa.array([1], pa.int8()), pa.array([300]), "label", False),
        (pa.array([1], pa.int64()), pa.array([True]), "label", True),
        (pa.array([0.5], pa.float32()), pa.array([0.25, None, np.nan]), "label", True),
        (pa.array([0.5], pa.float32()), pa.array([0.1]), "label", False),
        (pa.array([0.5], pa.float32()), pa.array([2**24 + 1]), "label", False),
        (pa.array([0.5]), pa.array(["0.5"]), "numeric", False),
        (pa.array([1]), pa.array(["1"]), "text", False),
        (pa.array(["1"]), pa.array([1]), "text", False),
        (pa.array(["true"]), pa.array([True]), "text", False),
        (pa.array(["a"]), pa.array([None], pa.null()), "text", True),
        (pa.array(["a"]), pa.array(["b"]).dictionary_encode(), "text", True),
        (pa.array([1]), pa.array([1], pa.timestamp("s")), "text", False),
        (pa.array([None], pa.null()), pa.array([1.5]), "text", False),
    ],
)
def test_a_file_of_another_type_is_read_only_if_every_value_stays(
    tmp_path: Path, first: pa.Array, then: pa.Array, kind: str, is_kept: bool
) -> None:
    write(tmp_path / "1.parquet", {"x": first})
    write(tmp_path / "2.parquet", {"x": then})
    if is_kept:
        found = read(tmp_path, {"x": kind}, 1)["x"].astype(object)[1:]
        stored = then.to_pandas().astype(object)
        assert found.isna().tolist() == stored.isna().tolist()
        assert found.dropna().tolist() == stored.dropna().tolist()
    else:
        with pytest.raises(TableError, match=r"2.parquet: column 'x' is of type .*, which does"):
            read(tmp_path, {"x": kind})


@pytest.mark.parametrize("how", ["soft", "hard", "twice"])
def test_no_file_is_read_twice(tmp_path: Path, how: str) -> None:
    path = write(tmp_path / "year=1" / "a.parquet", {"x": [1, 2]})
    write(tmp_path / "year=1" / "c.parquet", {"x": [1, 2]})  # the same rows in another file
    assert len(read(tmp_path, {"x": "numeric"})) == 4
    other = tmp_path / "year=2" / "b.parquet"
    other.parent.mkdir()
    source: Any = tmp_path
    if how == "soft":
        other.symlink_to(path)
    elif how == "hard":
        other.hardlink_to(path)
    else:
        source = pa.dataset.dataset([str(path)] * 2, format="parquet")
    with pytest.raises(TableError, match=r"a\.parquet and .* are the same file, so that every row"):
        Table.open(source)


def test_parts_of_one_file_are_not_the_same_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", {"x": np.arange(10)}, row_group_size=2)
    (whole,) = pa.dataset.dataset(path).get_fragments()
    for groups, is_refused in (([[0, 1], [4]], False), ([[0, 1], [1]], True)):
        parts = [whole.subset(row_group_ids=group) for group in groups]
        dataset = pa.dataset.FileSystemDataset(
            parts, whole.physical_schema, whole.format, whole.filesystem
        )
        if is_refused:
            with pytest.raises(TableError, match="the same file"):
                Table.open(dataset)
        else:
            assert read(dataset, {"x": "numeric"})["x"].tolist() == [0, 1, 2, 3, 8, 9]


def test_a_file_that_is_gone_or_damaged_is_named(tmp_path: Path) -> None:
    csv = tmp_path / "t.csv"
    csv.write_text("x\n1\n")
    for name in ("1.parquet", "2.parquet"):
        write(tmp_path / "folder" / name, {"x": [1]})
    opened = [Table.open(csv), Table.open(tmp_path / "folder")]
    damaged = Table.open(tmp_path / "folder")
    csv.unlink()
    (tmp_path / "folder" / "2.parquet").unlink()
    for table, name in zip(opened, ("t.csv", "2.parquet"), strict=True):
        with pytest.raises(TableError, match=f"{name}: the file cannot be opened .FileNotFound"):
            table.identity()
    (tmp_path / "folder" / "2.parquet").write_bytes(b"secret" * 99)
    for ask in (damaged.identity, lambda: damaged.known_rows):
        with pytest.raises(TableError, match=r"2.parquet: not a whole parquet file"):
            ask()


def test_numbers_become_the_nearest_float64(tmp_path: Path) -> None:
    import decimal

    exact = [decimal.Decimal("45.73"), decimal.Decimal("-0.10"), None]
    large = [2**63 - 1, 2**53 + 1, 0]
    path = write(tmp_path / "t.parquet", {"d": exact, "i": large, "b": [True, None, False]})
    found = read(path, {"d": "numeric", "i": "numeric", "b": "numeric"})
    np.testing.assert_array_equal(found["d"], [45.73, -0.1, np.nan])
    np.testing.assert_array_equal(found["i"], [2.0**63, 2.0**53, 0])
    np.testing.assert_array_equal(found["b"], [1, np.nan, 0])


def test_categories_keep_what_is_stored(tmp_path: Path) -> None:
    large = [2**53 + 1, 2**53, None]  # as float64 they would be equal
    path = write(tmp_path / "t.parquet", {"i": large, "f": [0.0, -0.0, np.nan], "n": [None] * 3})
    found = read(path, {"i": "text", "f": "text", "n": "text"}).astype(object)
    assert found["i"].tolist()[:2] == large[:2]
    assert found["f"].tolist()[:2] == [0, 0]
    assert found.isna().to_numpy()[2].all()
    assert found["n"].isna().all()


def test_chunks_of_wide_tables_have_fewer_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CHUNK_CELLS == 32 * CHUNK_ROWS
    monkeypatch.setattr("dprepro.rows.table.CHUNK_CELLS", 40)
    names = [f"x{k}" for k in range(10)]
    table = Table.open(write(tmp_path / "t.parquet", dict.fromkeys(names, np.zeros(30))))
    assert len(next(table.chunks(dict.fromkeys(names, "numeric")))) == 4
    assert len(next(table.chunks({"x0": "numeric"}))) == 30


def test_a_csv_value_is_read_as_asked_wherever_it_stands(tmp_path: Path) -> None:
    """A reader that infers types would take the first megabytes of both columns for integers."""
    n = 600_000
    lines = [f"{k % 7},0{k % 2}" for k in range(n)]
    lines[-1] = "0.5,x"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b", *lines]) + "\n")
    found = read(path, {"a": "numeric", "b": "text"}, 250_000)
    assert len(found) == n
    assert found["a"].iloc[-1] == 0.5
    assert set(found["b"].iloc[:10]) == {"00", "01"}
    assert found["b"].iloc[-1] == "x"


def test_gzip_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(b"a\n1\n2\n"))
    assert read(path, {"a": "numeric"})["a"].tolist() == [1, 2]
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 10**6)[:-100])
    with pytest.raises(TableError, match=r"t\.csv: ") as caught:
        read(path, {"a": "numeric"})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"a,b\n1,secret\n", "column 'b' is to hold numbers, .*first in line 2"),
        ("t.csv", b"a,b\n1,2\nsecret\n", "t.csv: line 3: Expected 2 columns, got 1"),
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"a,a \n1,2\n", "column names repeat"),
        ("t.csv", b"a,c\n1,2\n", "the table has no column 'b'"),
        ("t.csv", b"a,b\n\xff,1\n", "not text in the expected encoding"),
        ("t.csv", b"a,b\n1," + b"7" * 9 * 10**6, "column 'b' has infinite values"),
        ("t.parquet", b"secret" * 99, "t.parquet: not a whole parquet file"),
        ("t.parquet", b"", "t.parquet: not a whole parquet file"),
        ("t.xlsx", b"", "cannot tell the format of .* by its suffix. Allowed: .parquet"),
    ],
)
def test_faults_are_named_and_quote_no_value(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message) as caught:
        read(tmp_path / name, {"a": "text", "b": "numeric"})
    assert "secret" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="there is no such file or folder"):
        Table.open(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="has no parquet file"):
        Table.open(tmp_path)
    path = write(tmp_path / "t.parquet", {"x": [1, 2]})
    with pytest.raises(TableError, match="filters or computes columns"):
        Table.open(pa.dataset.dataset(path).filter(pa.dataset.field("x") > 1))
    with pytest.raises(TableError, match="must consist of parquet files"):
        Table.open(pa.dataset.dataset(pa.table({"x": [1]})))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match="not a whole parquet file"):
        Table.open(path)
    assert is_table(path)
    assert not is_table(pd.DataFrame({"x": [1]}))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "folder"])
def test_identity_changes_with_the_files_alone(tmp_path: Path, name: str) -> None:
    import json

    path = tmp_path / name
    file = path / "1.parquet" if name == "folder" else path
    if name == "t.csv":
        file.write_text("x\n1\n")
    else:
        write(file, {"x": [1]})
    first = Table.open(path).identity()
    assert json.loads(json.dumps(first)) == first
    assert first["files"][0]["path"] == str(file.resolve())
    assert first["files"][0]["size"] == file.stat().st_size
    assert Table.open(os.path.relpath(path)).identity() == first
    os.utime(file, ns=(1, 1))
    touched = Table.open(path).identity()
    assert touched != first
    assert touched["files"][0]["mtime_ns"] == 1


PEAK = """
import re, sys
from pathlib import Path
from dprepro.rows.table import Table
names = [f"x{k}" for k in range(int(sys.argv[2]))]
rows = total = 0
for chunk in Table.open(sys.argv[1]).chunks(dict.fromkeys(names, "numeric")):
    rows, total = rows + len(chunk), total + float(chunk["x0"].sum())
# Not ru_maxrss, which counts the process that started this one, too.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(rows, total, int(peak[1]) / 1024)
"""


def peak_of(path: Path, columns: int) -> tuple[float, ...]:
    """Return rows, the sum of x0, and the largest memory of a process that reads, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, path, str(columns)], capture_output=True, text=True, check=True
    )
    return tuple(map(float, done.stdout.split()))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_is_bounded_whatever_the_size_of_row_groups(tmp_path: Path) -> None:
    """720 MB of numbers, 240 MB a row group."""
    path = tmp_path / "large.parquet"
    values = np.random.default_rng(0).random((4, 10**6))
    schema = pa.schema([(f"x{k}", pa.float64()) for k in range(30)])
    with pa.parquet.ParquetWriter(path, schema) as writer:
        for part in range(3):
            columns = {f"x{k}": values[(k + part) % 4] for k in range(30)}
            writer.write_table(pa.table(columns), row_group_size=10**6)
    try:
        assert path.stat().st_size > 600e6
        rows, total, peak = peak_of(path, 30)
    finally:
        path.unlink()
    assert rows == 3e6
    assert total == pytest.approx(values[:3].sum())
    assert peak < 450


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_is_bounded_for_a_csv(tmp_path: Path) -> None:
    """400 MB of text, of which 6 columns of 30 are wanted."""
    path = tmp_path / "large.csv"
    line = ",".join(["0.125"] * 30) + "\n"
    with path.open("w") as file:
        file.write(",".join(f"x{k}" for k in range(30)) + "\n")
        for _ in range(220):
            file.write(line * 10**4)
    try:
        assert path.stat().st_size > 390e6
        rows, total, peak = peak_of(path, 6)
    finally:
        path.unlink()
    assert rows == 2.2e6
    assert total == 0.125 * rows
    assert peak < 280
