"""Every row that is loaded of Parquet is the one that Arrow finds there, whatever pandas stored."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.additive.file import load_model, save_model
from dprepro.data.card import Card
from dprepro.data.cleaning import public_domain
from dprepro.data.dataset import load_by
from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.release.predicting import NewRows
from dprepro.rows.card_table import CardTable
from dprepro.runtime.errors import DpreproError
from tests.data.written import column

often = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
CITIES = ["Bonn", "Lyon", "Oslo"]
LABELS = ["no", "yes"]

numbers = {
    "int64": (pa.int64(), st.none() | st.integers(-99, 99)),
    "uint8": (pa.uint8(), st.none() | st.integers(0, 99)),
    "float64": (pa.float64(), st.none() | st.floats(-99, 99)),
    "float32": (pa.float32(), st.none() | st.floats(-99, 99, width=32)),
    "decimal": (pa.decimal128(7, 2), st.none() | st.decimals(-99, 99, places=2)),
    "bool": (pa.bool_(), st.none() | st.booleans()),
}
texts = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]


def indexed(frame: pd.DataFrame, kind: str, order: list[int]) -> pd.DataFrame:
    """Return the rows with an index that labels them otherwise than by their positions."""
    n = len(frame)
    shuffled = frame.set_axis(pd.Index(order)[:n])
    if kind == "filtered":
        return frame.set_axis(range(0, 3 * n, 3)).iloc[::-1]
    if kind == "repeated":
        return frame.set_axis([k % 2 for k in range(n)])
    if kind == "step":
        return frame.set_axis(pd.RangeIndex(5 * n, 0, -5))
    if kind == "named":
        return shuffled.rename_axis("id")
    if kind == "named like a feature":
        return shuffled.rename_axis("number")
    if kind == "of texts":
        return frame.set_axis([f"r{k}" for k in order[:n]]).rename_axis("who")
    if kind == "of two levels":
        return frame.set_axis(pd.MultiIndex.from_arrays([order[:n], range(n)], names=["i", "j"]))
    return shuffled


INDEXES = ["shuffled", "filtered", "repeated", "step", "named", "named like a feature",
           "of texts", "of two levels"]  # fmt: skip


@st.composite
def tables(draw: st.DrawFn, rows: int | None = None, kind: str | None = None) -> pa.Table:
    """Return a table of Arrow as pandas hands it on, with what it says of its index."""
    n = draw(st.integers(1, 9)) if rows is None else rows
    stored, values = numbers[kind or draw(st.sampled_from(sorted(numbers)))]
    frame = pd.DataFrame({"number": range(n), "city": "", "note": "", "target": ""})
    order = draw(st.permutations(range(n)))
    table = pa.Table.from_pandas(indexed(frame, draw(st.sampled_from(INDEXES)), list(order)))

    def drawn(values: Any, stored: pa.DataType) -> pa.Array:
        return pa.array([draw(values) for _ in range(n)], stored)

    columns = {
        "number": drawn(values, stored),
        "city": drawn(st.none() | st.sampled_from(CITIES), draw(st.sampled_from(texts))),
        "note": drawn(st.none() | st.text(max_size=3), pa.string()),
        "target": drawn(st.sampled_from(LABELS), draw(st.sampled_from(texts))),
    }
    for name, values_of in columns.items():
        table = table.set_column(table.column_names.index(name), name, values_of)
    return table


def card_of(folder: Path, source: dict[str, Any]) -> Card:
    card = Card(
        name="t", task="binary", labels=LABELS, positive="yes", target="target", sources=[source],
        drop=["note"],
        features={
            "number": {"numeric": [-99, 99], "missing": True},
            "city": {"categories": CITIES, "missing": True},
        },
    )  # fmt: skip
    card._folder = folder
    return card


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    """Return number, city and target of all rows, batch by batch, as the file has them."""
    batches = pa.parquet.ParquetFile(path).iter_batches(2)
    return [
        (None if row["number"] is None else float(row["number"]), row["city"], row["target"])
        for batch in batches
        for row in batch.to_pylist()
    ]


def loaded(card: Card) -> list[tuple[Any, ...]]:
    data = load_by(card, online=False)
    labels = [LABELS[code] for code in data.y]
    return list(zip(column(data.X["number"]), column(data.X["city"]), labels, strict=True))


@often
@given(table=tables(), group=st.integers(1, 9), rows=st.integers(1, 9) | st.none())
def test_every_way_in_reads_the_rows_of_the_file(
    table: pa.Table, group: int, rows: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        pa.parquet.write_table(table, path, row_group_size=group)
        wanted = rows_of(path)
        card = card_of(path.parent, {"file": path.name})
        assert loaded(card) == wanted
        carded = CardTable(path, card)
        parts = carded.chunks(dict.fromkeys(carded.names, "text"), rows)
        found = pd.concat(part.astype(object) for part in parts)
        labels = [LABELS[code] for code in found["target"]]
        columns = (column(found[name]) for name in ("number", "city"))
        assert list(zip(*columns, labels, strict=True)) == wanted
        domain = public_domain(card)
        assert domain is not None
        model: Any = SimpleNamespace(bins_=[SimpleNamespace(feature=f) for f in domain.features])
        new = list(NewRows(path, model, ["target", "note"], card).chunks(rows))
        assert [
            row
            for X, kept in new
            for row in zip(
                column(X["number"]),
                column(X["city"].astype(object)),
                kept["target"].to_pylist(),
                strict=True,
            )
        ] == wanted
        notes = [note for _, kept in new for note in kept["note"].to_pylist()]
        assert notes == table["note"].to_pylist()


@often
@given(data=st.data(), kind=st.sampled_from(sorted(numbers)), n=st.integers(1, 6))
def test_files_side_by_side_are_joined_by_position(data: Any, kind: str, n: int) -> None:
    one, other = (data.draw(tables(rows=n, kind=kind)) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{k}.parquet") for k in range(2)]
        pa.parquet.write_table(without(one, "number", "note"), paths[0])
        pa.parquet.write_table(without(other, "city", "target"), paths[1])
        join = [{"file": path.name} for path in paths]
        left = pa.parquet.ParquetFile(paths[0]).read().to_pylist()
        right = pa.parquet.ParquetFile(paths[1]).read().to_pylist()
        wanted = [
            (None if b["number"] is None else float(b["number"]), a["city"], a["target"])
            for a, b in zip(left, right, strict=True)
        ]
        assert loaded(card_of(Path(folder), {"join": join})) == wanted


@often
@given(parts=st.lists(tables(), min_size=2, max_size=3))
def test_files_one_below_the_other_are_pooled_in_order(parts: list[pa.Table]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{k}.parquet") for k in range(len(parts))]
        for path, part in zip(paths, parts, strict=True):
            pa.parquet.write_table(part, path)
        card = card_of(Path(folder), {"pool": [{"file": path.name} for path in paths]})
        assert loaded(card) == [row for path in paths for row in rows_of(path)]


def without(table: pa.Table, *names: str) -> pa.Table:
    """Return a table without columns, also where pandas remembers one as its index."""
    return table.select([name for name in table.column_names if name not in names])


def test_files_of_other_lengths_are_not_joined(tmp_path: Path) -> None:
    for name, n in (("a", 2), ("b", 3)):
        frame = pd.DataFrame({name: range(n)}).set_axis([0] * n)
        frame.to_parquet(tmp_path / f"{name}.parquet")
    source = {"join": [{"file": "a.parquet"}, {"file": "b.parquet"}]}
    with pytest.raises(DpreproError, match="another number of rows"):
        loaded(card_of(tmp_path, source))


def instants(*texts: str, zone: str | None = None) -> pa.Array:
    return pa.array([pd.Timestamp(t, tz=zone) for t in texts])


TEXTS: dict[str, list[str]] = {
    "booleans": ["TRUE", "FALSE"], "lower": ["true", "false"], "mixed": ["TRUE", "True"],
    "words": ["yes", "no"], "dates": ["2020-01-02", "2021-03-04"], "times": ["10:30", "11:45"],
    "German": ["02.01.2020", "3.4.2021"], "stamps": ["2020-01-02 10:00:00", "2020-01-02T11:00"],
    "zones": ["2020-01-02T10:00:00+02:00", "2020-01-02T10:00:00Z"], "decimals": ["1.50", "2.25"],
    "zeros": ["007", "08"], "one": ["1.0", "1"], "one and text": ["1.0", "1", "one"],
    "codes": ["01", "A1"], "exponents": ["1e3", "1000"], "hex": ["0x1A", "0x1B"],
    "blanks": [" a", "a", "b "], "missing": ["", "NA", "x"], "nan": ["nan(1)", "2"],
    "none": ["", ""], "infinite": ["inf", "finite"], "big": ["9007199254740993", "1"],
    "case": ["yes", "Yes"], "quotes": ['"', "a,b", "a\nb"],
}  # fmt: skip
ARRAYS: dict[str, pa.Array] = {
    "bool": pa.array([True, False, None]), "date32": pa.array([1, 2], pa.date32()),
    "date64": pa.array([86_400_000, 0], pa.date64()),
    "time32": pa.array([37_800, 0], pa.time32("s")), "time64": pa.array([1, 2], pa.time64("us")),
    "timestamp": instants("2020-01-02", "2020-01-02 10:30"),
    "nanoseconds": pa.array([1, 2], pa.timestamp("ns")),
    "zoned": instants("2020-01-02", "2020-07-02", zone="Europe/Berlin"),
    "utc": instants("2020-01-02", "2020-07-02", zone="UTC"),
    "decimal": pa.array([Decimal("1.50"), Decimal("2.25"), None]),
    "dictionary": pa.array(["b", "a", None]).dictionary_encode(),
    "numbers in a dictionary": pa.array([3, 5, None]).dictionary_encode(),
    "fractions in a dictionary": pa.array([1.0, 2.5]).dictionary_encode(),
    "texts like numbers": pa.array(["1.0", "1", "x"]), "all numbers": pa.array(["1.0", "01"]),
    "int": pa.array([1, 2, None]), "float": pa.array([1.0, 2.5, None]),
    "float16": pa.array(np.array([1, 2.5], np.float16)),
    "large": pa.array(["a", "b"], pa.large_string()),
    "nothing": pa.nulls(2),
    "duration": pa.array([1, 2], pa.duration("s")),
}  # fmt: skip


@pytest.mark.parametrize("kind", [*(f"csv {k}" for k in TEXTS), *(f"parquet {k}" for k in ARRAYS)])
def test_a_saved_model_reads_its_own_rows_as_the_fit_did(kind: str, tmp_path: Path) -> None:
    suffix, _, name = kind.partition(" ")
    path = tmp_path / f"t.{suffix}"
    values = pa.array(TEXTS[name]) if suffix == "csv" else ARRAYS[name]
    n = 24
    table = pa.table(
        {
            "column": values.take(pa.array([k % len(values) for k in range(n)])),
            "age": pa.array(range(n)),
            "target": pa.array([LABELS[k % len(values) == 0] for k in range(n)]),
        }
    )
    write = pa.csv.write_csv if suffix == "csv" else pa.parquet.write_table
    write(table, path)
    card = Card(name="t", task="binary", target="target", positive="yes", file=path.name)
    card._folder = tmp_path
    data = load_by(card, online=False)
    domain = Domain.observe(data.X, data.y, "binary")
    model = DPEBMClassifier(50, domain=domain, n_epochs=8, random_state=1).fit(data.X, data.y)
    save_model(model, tmp_path / "m.json")
    saved = load_model(tmp_path / "m.json")
    wanted = model.predict_proba(data.X)
    for new in (NewRows(path, saved, card=card), NewRows(path, saved)):
        for rows in (1, 5, None):
            found = np.concatenate([saved.predict_proba(X) for X, _ in new.chunks(rows)])
            np.testing.assert_array_equal(found, wanted)
            categories = [
                v for X, _ in new.chunks(rows) for v in column(X["column"].astype(object))
            ]
            assert categories == column(data.X["column"].astype(object))
