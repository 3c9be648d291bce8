"""One table in all the formats that are read in chunks, and its rows as they are in memory."""

from __future__ import annotations

import decimal
import io
import itertools
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from pandas.api.types import union_categoricals

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.rows.chunked import ChunkedRows

N = 211

FEATURES = (
    CategoricalFeature("town", ("Bonn", "Lyon", "NA"), missing=True),
    NumericFeature("score", -5, 5, missing=True),
    NumericFeature("count", 0, 100),
    NumericFeature("sometimes", 0, 100, missing=True),
    CategoricalFeature("flag", ("False", "True")),
    CategoricalFeature("grade", ("0", "1", "2", "3"), missing=True),
    CategoricalFeature("code", ("1", "01", "1.0")),
    CategoricalFeature("kind", ("a", "b", "never"), missing=True),
    NumericFeature("price", 0, 100),
    NumericFeature("small", 0, 1),
    NumericFeature("tiny", -128, 127),
    CategoricalFeature("day", ("2024-01-01", "2024-01-02")),
)
"""In another order than the columns of the table."""

NAMES = [feature.name for feature in FEATURES]
LABELS = Domain(FEATURES, ("no", "yes"))
RANGE = Domain(FEATURES, (-10.0, 10.0))


def frame(n: int = N) -> pd.DataFrame:
    """Return the table. Late rows alone lack a grade or a `sometimes`: first, all are whole."""
    rng = np.random.default_rng(3)
    late = np.arange(n) > n // 2
    score = rng.normal(size=n)
    texts = pd.Series(rng.choice(["Bonn", "Lyon", "NA"], n), dtype=object)
    return pd.DataFrame(
        {
            "unused": ["secret"] * n,
            "score": np.where(rng.random(n) < 0.1, np.nan, score),
            "count": rng.integers(0, 100, n),
            "sometimes": pd.Series(rng.integers(0, 100, n), dtype="Int64").mask(late, pd.NA),
            "flag": rng.random(n) < 0.5,
            "town": texts.mask(pd.Series(rng.random(n) < 0.1), None),
            "grade": pd.Series(rng.integers(0, 4, n), dtype="Int64").mask(late, pd.NA),
            "code": rng.choice(["1", "01", "1.0"], n),
            "kind": pd.Categorical(np.where(late, "b", "a")).remove_categories([]),
            "price": [
                decimal.Decimal(int(cents)).scaleb(-2) for cents in rng.integers(0, 10**4, n)
            ],
            "small": rng.random(n).astype(np.float32),
            "tiny": rng.integers(-128, 128, n).astype(np.int8),
            "day": rng.choice(["2024-01-01", "2024-01-02"], n),
            "y": np.where(score > 0, "yes", "no"),
            "z": score * 2,
        }
    )


def _file(table: pd.DataFrame, folder: Path) -> Path:
    # Row groups are longer than some chunks and shorter than others.
    table.to_parquet(folder / "table.parquet", row_group_size=20)
    return folder / "table.parquet"


def _csv(table: pd.DataFrame, folder: Path) -> Path:
    table.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def _zipped(table: pd.DataFrame, folder: Path) -> Path:
    table.to_csv(folder / "table.csv.gz", index=False)
    return folder / "table.csv.gz"


def _folder(table: pd.DataFrame, folder: Path) -> Path:
    parts = folder / "parts"
    parts.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), 4)):
        table.iloc[rows].to_parquet(parts / f"part-{number}.parquet", row_group_size=30)
    (parts / "_SUCCESS").touch()
    return parts


def _dataset(table: pd.DataFrame, folder: Path) -> pa.dataset.Dataset:
    return pa.dataset.dataset(_folder(table, folder), format="parquet")


FORMATS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "parquet": _file,
    "csv": _csv,
    "csv.gz": _zipped,
    "folder": _folder,
    "dataset": _dataset,
}


def in_memory(source: Any) -> pd.DataFrame:
    """Return the whole table as somebody reads it who knows what the columns are."""
    if isinstance(source, pa.dataset.Dataset):
        read = source.to_table().to_pandas()
    elif source.is_dir() or source.suffix == ".parquet":
        read = pd.read_parquet(source)
    else:
        texts = [f.name for f in FEATURES if isinstance(f, CategoricalFeature)]
        read = pd.read_csv(
            source, dtype=dict.fromkeys(texts, str), keep_default_na=False,
            na_values={name: [""] for name in [*NAMES, "y", "z"]},
        )  # fmt: skip
    return read.assign(price=read["price"].astype(float))


def joined(rows: ChunkedRows[Rows]) -> Rows:
    """Return all rows of a table in memory."""
    chunks = list(rows.chunks())
    columns = {name: [chunk.frame[name] for chunk in chunks] for name in rows.names}
    frame = {
        name: union_categoricals(parts)
        if isinstance(parts[0].dtype, pd.CategoricalDtype)
        else np.concatenate(parts)
        for name, parts in columns.items()
    }
    return Rows(pd.DataFrame(frame), np.concatenate([chunk.targets for chunk in chunks]))


def parquet_with_false_counts() -> list[bytes]:
    """Return files of 4,999 rows, in which one count of rows says 9,191, or both do."""
    written, true, false = io.BytesIO(), b"\x8e\x4e", b"\xce\x8f\x01"
    pa.parquet.write_table(pa.table({"x": [1] * 4999, "c": ["a"] * 4999}), written)
    data = written.getvalue()
    size = struct.unpack("<I", data[-8:-4])[0]
    pages, footer = data[: -8 - size], data[-8 - size : -8]
    places = [found.start() for found in re.finditer(true, footer)]
    files = {}
    for chosen in (*itertools.combinations(places, 1), *itertools.combinations(places, 2)):
        changed = bytearray(footer)
        for place in reversed(chosen):
            changed[place : place + len(true)] = false
        file = pages + bytes(changed) + struct.pack("<I", len(changed)) + b"PAR1"
        files.setdefault(_counts(file), file)  # the same bytes are elsewhere, too
    assert files.pop((4999, 4999))
    assert sorted(files) == [(4999, 9191), (9191, 4999), (9191, 9191)]
    return list(files.values())


def _counts(file: bytes) -> tuple[int, int]:
    found = pa.parquet.ParquetFile(io.BytesIO(file)).metadata
    return found.num_rows, found.row_group(0).num_rows
