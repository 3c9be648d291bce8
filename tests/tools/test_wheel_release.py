"""What `make wheel-test` does with a release: steps that do otherwise than they must are shown."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import pytest

from dprepro.data.card import load_card
from dprepro.rows.card_table import CardTable
from tools.wheel_release import PATIENTS, STEPS, Step, draw, left_behind, tried


@pytest.fixture
def here(tmp_path: Path) -> Path:
    draw(tmp_path)
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$1" said\nexit 2\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("step", "passes"),
    [
        (Step("word", "word said", 2), True),
        (Step("word", "word said", 0), False),
        (Step("word", "another", 2), False),
        (Step("w" * 90, "said", 2), True),
        (Step("budget" + "w" * 90, "said", 2), False),
    ],
)
def test_a_step_passes_by_exit_code_words_and_width(here: Path, step: Step, passes: bool) -> None:
    fault = tried(step, str(here / "program"), here, dict(os.environ))
    assert (fault == "") is passes
    assert passes or f"exit code 2, expected {step.code}" in fault


def test_the_card_describes_the_drawn_table(here: Path) -> None:
    card = load_card(str(here / "filled.yaml"))
    table = CardTable(here / "stays.csv", card)
    kinds = {"age": "numeric", "sex": "text", "ward": "text", "back": "label"}
    (rows,) = table.chunks(kinds)  # type: ignore[arg-type]
    assert len(rows) == 2 * PATIENTS
    assert rows["age"].between(0, 120).all()
    assert {"release", "verify", "predict", "export"} <= {step.command.split()[0] for step in STEPS}


def test_files_that_lack_or_are_too_many_are_told(here: Path) -> None:
    (here / "release").mkdir()
    (here / "release" / "model.json").touch()
    (here / "second").mkdir()
    rows = [{"prediction": "no"}] * 2 * PATIENTS
    with (here / "read.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["prediction"])
        writer.writeheader()
        writer.writerows(rows)
    (here / "model.py").write_text("print(open('read.csv').read().replace('no', 'yes', 1))\n")
    wrong = left_behind(here, sys.executable, dict(os.environ))
    expected = ["release holds ['model.json']", "second was written", "model.py predicts otherwise"]
    assert wrong == expected
