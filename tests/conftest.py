"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real datasets (`DPREPRO_DATA`); without it tests skip, but fail in CI."""
    folder = os.environ.get("DPREPRO_DATA")
    if folder and (Path(folder) / "adult" / "adult.data").is_file():
        return Path(folder).resolve()
    message = f"DPREPRO_DATA is {folder!r}: no adult/adult.data there"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
