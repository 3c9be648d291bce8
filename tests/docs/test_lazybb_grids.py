"""The tables of results/trials/README.md are those of the packed journals beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def grids() -> ModuleType:
    """What `benchmarks/lazybb_grids.py` defines."""
    path = ROOT / "benchmarks" / "lazybb_grids.py"
    spec = importlib.util.spec_from_file_location("lazybb_grids", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_journals(grids: ModuleType) -> None:
    text = (ROOT / "results" / "trials" / "README.md").read_text()
    shown = [line for line in text.splitlines() if line.startswith("|")]
    assert shown == [line for table in grids.tables() for line in table]
    assert len(shown) == 2 * 2 + 3 * 13 + 13


def test_the_sentence_about_a_delta_is_true(grids: ModuleType) -> None:
    found = {grid: grids.read(grid) for grid in grids.GRIDS}
    higher = {float(row[0]): float(row[3]) for row in grids.figure3(found)}
    above = [difference for epsilon, difference in higher.items() if epsilon >= 0.4]
    assert len(above) == 6
    assert min(above) > 0
    assert max(above) == pytest.approx(0.0045)
    below = [difference for epsilon, difference in higher.items() if epsilon < 0.4]
    assert min(below) < 0 < max(below)
