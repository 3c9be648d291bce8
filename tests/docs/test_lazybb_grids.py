"""The tables of results/trials/README.md are those of the packed journals beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

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


@pytest.fixture(scope="module")
def found(grids: ModuleType) -> dict[str, Any]:
    """The accuracies of both journals."""
    return {grid: grids.read(grid) for grid in grids.GRIDS}


def test_the_tables_are_those_of_the_journals(grids: ModuleType, found: dict[str, Any]) -> None:
    text = (ROOT / "results" / "trials" / "README.md").read_text(encoding="utf-8")
    shown = [line for line in text.splitlines() if line.startswith("|")]
    assert shown == [line for table in grids.tables(found) for line in table]
    assert len(shown) == 2 * 2 + 3 * 13 + 13


def test_the_sentences_about_a_delta_are_true(grids: ModuleType, found: dict[str, Any]) -> None:
    higher = {float(row[0]): float(row[3]) for row in grids.figure3(found)}
    above = [difference for epsilon, difference in higher.items() if epsilon >= 0.4]
    assert len(above) == 6
    assert min(above) > 0
    assert max(above) == pytest.approx(0.0045)
    below = {epsilon: difference for epsilon, difference in higher.items() if epsilon < 0.4}
    assert min(below.values()) < 0 < max(below.values())
    for epsilon, difference in below.items():
        errors = [
            grids.best_of(settings).error
            for cells in found.values()
            for (method, at), settings in cells.items()
            if at == epsilon and method != "lazybb-topdown"
        ]
        assert len(errors) == 2
        assert abs(difference) < sum(errors)
