"""Exports of a release of the hospital table of the tutorial say what `dprepro predict` says."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.export.dialects import DIALECTS, TESTED_DIALECTS
from dprepro.additive.file import load_model
from tests.additive.export import odd
from tests.additive.export.databases import Database, Said
from tests.commands import dprepro

CODEBOOK = Path(__file__).parents[3] / "docs" / "examples" / "diabetes-codebook.csv"
ROWS, NEW = 6_000, 400


@pytest.fixture(scope="module")
def folder(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a release, new rows, and its exports."""
    made = tmp_path_factory.mktemp("hospital")
    with zipfile.ZipFile(data_dir / "diabetes130" / "dataset_diabetes.zip") as packed:
        name = next(name for name in packed.namelist() if name.endswith("diabetic_data.csv"))
        with packed.open(name) as file:
            lines = [next(file) for _ in range(1 + ROWS + NEW)]
    (made / "stays.csv").write_bytes(b"".join(lines[: 1 + ROWS]))
    card = made / "hospital.yaml"
    dprepro("new", "dataset", made / "stays.csv", "--codebook", CODEBOOK, "--output", card)
    settings = ("--epsilon", 1, "--delta", "1e-6", "--clip", "--yes")
    dprepro("release", card, *settings, "--output", made / "release")
    rows = pd.read_csv(io.BytesIO(lines[0] + b"".join(lines[-NEW:])), dtype=str, na_filter=False)
    rows = with_odd_values(rows)
    rows["id"] = [str(k) for k in range(NEW)]
    odd.write(made / "rows.csv", {name: list(rows[name]) for name in rows})
    for dialect in DIALECTS:
        export(made, "sql", f"{dialect}.sql", "--dialect", dialect, "--table", "stays")
    export(made, "python", "model.py")
    export(made, "onnx", "model.onnx")
    return made


def with_odd_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows in which every fifth value of each feature is none that a hospital writes."""
    rng = np.random.default_rng(0)
    planted = {
        "time_in_hospital": ["0", "15", "", " 3", "1e1", "14.5", "-0"],
        "num_medications": ["101", "?", "7.", "NaN"],
        "gender": ["female", "", "Male ", "Unknown"],
        "insulin": ["no", "NA", "Steady", "Up!"],
        "age": ["[100-110)", "[70-80)", "70-80", "null"],
    }
    for name, texts in planted.items():
        where = rng.random(len(rows)) < 0.2
        rows.loc[where, name] = rng.choice(np.array(texts, dtype=object), int(where.sum()))
    return rows


def export(folder: Path, form: str, name: str, *more: str) -> None:
    given = ("--to", form, "--output", folder / name, *more)
    dprepro("export", folder / "release", *given)


@pytest.fixture(scope="module")
def said(folder: Path) -> odd.Said:
    """Return what `dprepro predict` says of the new rows."""
    model = load_model(folder / "release" / "model.json")
    rows = odd.read((folder / "rows.csv").read_text(encoding="utf-8"))
    found = odd.predicted(model, rows, folder)
    assert found is not None
    whats = {what.split(": ")[1] for what in found.counts}
    assert whats >= {"missing", "unknown category", "below its bounds", "above its bounds"}
    return found


def assert_same(probabilities: Sequence, notes: Sequence[str], said: odd.Said, atol: float) -> None:
    found = np.array([float(value) for value in probabilities])
    np.testing.assert_allclose(found, said.numbers("probability"), rtol=0, atol=atol)
    assert list(notes) == said.columns["notes"]
    assert odd.counted(notes) == said.counts


def test_python(folder: Path, said: odd.Said) -> None:
    command = [sys.executable, "-I", "-S", "model.py", "rows.csv"]
    found = odd.read(subprocess.check_output(command, cwd=folder, encoding="utf-8"))
    assert_same(found["probability"], found["notes"], said, 1e-12)


def test_sql(database: Database, folder: Path, said: odd.Said) -> None:
    found = ask(database, (folder / f"{database.name}.sql").read_text(encoding="utf-8"), folder)
    assert_same(found["probability"], found["notes"], said, 1e-12)


@pytest.mark.parametrize("dialect", sorted({*DIALECTS} - {*TESTED_DIALECTS}))
def test_sql_that_is_translated(dialect: str, folder: Path, said: odd.Said) -> None:
    from tests.additive.export.test_translated import in_duckdb, translated

    query = translated((folder / f"{dialect}.sql").read_text(encoding="utf-8"), dialect)
    found = ask(in_duckdb(dialect), query, folder)
    assert_same(found["probability"], found["notes"], said, 1e-12)


def ask(database: Database, query: str, folder: Path) -> Said:
    rows = odd.read((folder / "rows.csv").read_text(encoding="utf-8"))
    values = list(zip(*rows.values(), strict=True))
    query = f"SELECT probability, notes FROM (\n{query}) AS said ORDER BY CAST(id AS INTEGER)"
    return database.answer(query, "stays", dict.fromkeys(rows, "VARCHAR"), values)


def test_onnx(folder: Path, said: odd.Said) -> None:
    from tests.additive.export.test_onnx import run_graph

    model = load_model(folder / "release" / "model.json")
    X = odd.as_read(model, folder / "rows.csv")
    found = run_graph((folder / "model.onnx").read_bytes(), X)
    assert_same(found["probability"], found["notes"], said, 1e-6)
