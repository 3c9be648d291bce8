"""Names are completed from files: the right ones, and without a library."""

from __future__ import annotations

import os
import subprocess
import sys
import typing
from pathlib import Path
from typing import Annotated, Optional, get_origin

import pytest
import typer
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.cli import completion as names
from dprepro.data.card import card_names
from dprepro.experiment.config import config_names
from dprepro.methods.registry import PLUGIN_VARIABLE, all_methods
from dprepro.papers.document import load_documents

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "numpy",
    "pandas",
    "sklearn",
    "scipy",
    "numba",
    "yaml",
    "matplotlib",
    "dprepro.experiment.config",
}


def completed(*words: str) -> list[str]:
    """Return what bash is told for the last of the words."""
    asked = {
        "_DPREPRO_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("dprepro", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return CliRunner().invoke(app, [], env=asked, prog_name="dprepro").stdout.split()


def test_names_are_those_that_commands_know() -> None:
    assert names.config_names() == config_names()
    assert names.dataset_names() == card_names()
    assert names.document_names() == sorted(load_documents())
    assert names.method_names() == sorted(all_methods())


def test_methods_of_ones_own_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text("METHODS = [make('mine'), Method(name='also-mine'), other]")
    (tmp_path / "torn.py").write_text("METHODS = [")
    monkeypatch.setenv(PLUGIN_VARIABLE, str(tmp_path))
    assert {"mine", "also-mine"} <= set(names.method_names())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "adult"), ["adult", "adult-monotone", "adult-shapes"]),
        (("run", "adult", "quick"), ["quickstart"]),
        (("methods", "dp-ebm-g"), ["dp-ebm-gdp", "dp-ebm-gdp-2021", "dp-ebm-gdp-indicators"]),
        (("ledger", "adult", "--method", "dp-ll"), ["dp-llm"]),
        (("check", "--paper", "lazy"), ["lazybb-2022", "lazybb-2022-authors"]),
        (("table", "--methods", "dp-ebm-p"), ["dp-ebm-plus"]),
        (("table", "--dataset", "wine-"), ["wine-5297", "wine-distinct", "wine-white"]),
        (("compare", "dp-ebm-plus", "dp-bag-"), ["dp-bag-sound"]),
        (("data", "describe", "cod"), ["cod-rna"]),
        (("release", "x.yaml", "--method", "dp-ebm-p"), ["dp-ebm-plus"]),
        (("plot", "filters", "fashion-f"), ["fashion-filters"]),
        (("run", "nothing-like-it"), []),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_shells_complete_names(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_every_parameter_keeps_what_is_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.10's `get_type_hints` wraps it in Optional, and an argument becomes an option."""

    def older(function: object, **options: bool) -> dict[str, object]:
        hints = typing.get_type_hints(function, **options)
        return {name: Optional[hint] for name, hint in hints.items()}  # noqa: UP045

    def show(names: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        """Show something."""

    monkeypatch.setattr(names, "get_type_hints", older, raising=False)
    commands = typer.Typer()
    commands.command("show")(show)
    names.complete_names(commands)
    assert get_origin(show.__annotations__["names"]) is Annotated


def test_an_answer_loads_no_library() -> None:
    """So that it takes a fraction of a second: .3 s of one core."""
    asked = {"_DPREPRO_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    code = (
        "import sys; sys.argv = ['dprepro']\n"
        "from dprepro.cli import main\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **asked, "COMP_WORDS": "dprepro methods dp-ebm-gd"},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert "dp-ebm-gdp" in done.stdout.split()
    assert not HEAVY & set(done.stderr.split())
