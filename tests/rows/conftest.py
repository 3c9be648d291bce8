"""A folder for the rows of a fit, and a fit that uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.rows import table
from tests.rows.killing import Fit, rows

collect_ignore = ["warmed.py"]  # it fits; only the server of forks is to import it


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def fit(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> Fit:
    monkeypatch.setattr(table, "CHUNK_ROWS", 300)
    rows().to_parquet(tmp_path / "table.parquet")
    return Fit("labels", path, tmp_path / "table.parquet")
