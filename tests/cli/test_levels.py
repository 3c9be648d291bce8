"""What is said of a privacy level that is none: in our words, with what to do."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dprepro.cli import app

SEVERAL = "Give the option for each level: --epsilon 1 --epsilon 4"
ONE = "This command takes one level at a time: --epsilon 1"


def said(command: str) -> str:
    outcome = CliRunner().invoke(app, command.split())
    assert outcome.exit_code == 2
    return " ".join(outcome.output.replace("│", " ").split())


@pytest.mark.parametrize("command", ["run a", "compare a b", "ledger a", "tune a", "plot shapes a"])
def test_commands_that_take_several_levels_say_how(command: str) -> None:
    assert SEVERAL in said(f"{command} --epsilon 1,4")


@pytest.mark.parametrize("command", ["fit a", "votes a", "release a", "plot margins a"])
def test_commands_that_take_one_level_say_so(command: str) -> None:
    assert ONE in said(f"{command} --epsilon 1;4")


def test_what_is_no_number_is_named_with_what_is_allowed() -> None:
    assert "'one' is not a number. Allowed are numbers above 0" in said("run a --epsilon one")
    assert "'0,5' is not a number. A fraction has a point: 0.5." in said("fit a --epsilon 0,5")


@pytest.mark.parametrize("command", ["fit", "ledger", "plot shapes", "run"])
def test_a_level_of_a_method_without_privacy_is_refused(command: str) -> None:
    output = " --output model.json" if command == "fit" else ""
    outcome = CliRunner().invoke(
        app, f"{command} quickstart --method ebm --epsilon 1{output}".split()
    )
    assert "ebm has no privacy budget, so --epsilon 1 cannot be kept" in str(outcome.exception)


def test_a_method_without_privacy_has_no_ledger() -> None:
    outcome = CliRunner().invoke(app, ["ledger", "quickstart", "--method", "ebm"])
    assert "nothing is spent without a privacy budget" in str(outcome.exception)
