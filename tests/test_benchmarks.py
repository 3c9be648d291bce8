"""`benchmarks/commands.py` times what a user starts, and makes journals that are read."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from dprepro.experiment.journal import JournalTable
from dprepro.results.folder import read_results
from tests.benchmark import program

commands = program("commands")
IMPORTING = "import sys, dprepro.part; sys.exit(3)"
WORKING = "print(sum(range(10**6)), len(bytearray(2**25)))"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "dprepro"
    package.mkdir()
    for name, text in {"__init__": "", "part": "", "__main__": IMPORTING}.items():
        (package / f"{name}.py").write_text(text)
    return tmp_path


def test_byte_code_is_kept_as_for_a_user(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    commands.cost(checkout, [], checkout / "cache", code=3)
    assert list(checkout.glob("dprepro/__pycache__/part.*.pyc"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count in other units")
def test_peak_memory_and_seconds_are_those_of_the_command(checkout: Path) -> None:
    (checkout / "dprepro" / "__main__.py").write_text(WORKING)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = commands.cost(checkout, [], checkout / "cache")
    assert 32 < spent.memory < min(64, own)
    assert 0 < spent.processor < spent.wall + 0.1


def test_an_unforeseen_exit_code_ends_the_program(checkout: Path) -> None:
    with pytest.raises(SystemExit, match=r"\['table'\]: 3"):
        commands.cost(checkout, ["table"], checkout / "cache")


@pytest.mark.parametrize(("most", "labels"), [(10_000, 1), (10, 2)])
def test_synthetic_results_have_as_many_records_as_asked_and_can_be_read(
    most: int, labels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "MOST_SPLITS", most)
    path = tmp_path / "new" / "wine-white.parquet"
    commands.synthetic(path, 1000)
    (given,) = read_results(commands.HERE / "results", ["wine-white"]).held
    (found,) = read_results(path.parent).held
    assert len(found.rows) == len(found.table) >= 1000
    assert len(found.parts) == labels * len(given.parts)
    assert JournalTable(path).plan.splits == found.plan.splits == len(found.parts[0].rows) <= most


@pytest.mark.parametrize(
    "path", sorted(commands.HERE.glob("benchmarks/*.py")), ids=lambda p: p.stem
)
def test_every_program_can_be_started(path: Path) -> None:
    assert program(path.stem).__doc__, "its first lines say how it is called"
