"""What commands print on terminals of any width: no line is longer, and no number is cut."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app

RESULTS = Path(__file__).resolve().parents[2] / "results"
WIDE = 1000
NUMBER = re.compile(r"\d[\d.,]*\d|\d")
# A path, an address, a checksum or a command stays whole, so that it can be copied.
LONG_WORD = 40

COMMANDS = [
    "table --config adult",
    "table --config adult --compare",
    "table --config lazybb-adult --true-epsilon --sd",
    "check --config adult --paper dp-ebm",
    "compare dp-ebm-gdp dp-ebm-classic --config adult",
    "methods",
    "methods --verbose",
    "methods dp-llm",
    "configs",
    "data",
    "data describe breast-cancer",
    "documents",
    "run quickstart --dry-run",
]


@cache
def shown(command: str, width: int, **environment: str) -> str:
    words = command.split()
    if words[0] in ("table", "check", "compare", "run"):
        # A plan reads all journals of its folder for tasks that have run.
        words += ["--results", str(RESULTS / "none" if words[0] == "run" else RESULTS)]
    found = CliRunner().invoke(app, words, env={"COLUMNS": str(width), **environment})
    assert found.exit_code in (0, 1), (found.output, found.exception)
    return found.stdout


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(text))


def with_all(command: str) -> str:
    """Return a command that shows standard deviations wherever it can."""
    return f"{command} --sd" if command.startswith("table") and "--sd" not in command else command


SIZES = [
    *((command, 60) for command in COMMANDS),
    *((command, width) for command in COMMANDS[:3] for width in (80, 132, 200)),
]


@pytest.mark.parametrize(("command", "width"), SIZES)
def test_no_line_is_longer_than_the_terminal_and_no_number_is_cut(command: str, width: int) -> None:
    text, whole = shown(command, width), shown(with_all(command), WIDE)
    longer = [line for line in text.splitlines() if len(line) > width]
    assert all(max(map(len, line.split())) > LONG_WORD for line in longer), longer
    assert numbers(text) <= numbers(whole)
    if command.startswith("table") and "--sd" not in command:
        whole = re.sub(r" ± [\d.]+", "", whole)
    assert numbers(whole) <= numbers(text)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"FORCE_COLOR": "1"}])
def test_the_best_and_the_verdicts_are_seen_without_colour(environment: dict[str, str]) -> None:
    command = "table --config adult --compare"
    found = CliRunner().invoke(
        app, [*command.split(), "--results", str(RESULTS)], env={"COLUMNS": "80", **environment}
    )
    plain = re.sub(r"\x1b\[[\d;]*m", "", found.stdout)
    assert plain == shown(command, 80)
    assert ("\x1b[" in found.stdout) == ("FORCE_COLOR" in environment)
    assert re.search(r"\d\* ", plain)
    assert re.search(r"\d[* ]≈", plain)
