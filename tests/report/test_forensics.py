"""Hypotheses in terminals, as Markdown and as JSON.

Judgements on held-out cells in terminals, as Markdown and as JSON.
"""

from __future__ import annotations

import io
import json
import math

import pytest
from rich.console import Console

from dprepro.judge.forensics import Column, Distance, Judgement, Trial
from dprepro.judge.omnibus import Omnibus
from dprepro.papers.hypotheses import Hypothesis, Question
from dprepro.papers.published_cell import PublishedCell
from dprepro.report.forensics import (
    json_columns,
    json_held_out,
    markdown_columns,
    markdown_held_out,
    render_columns,
    render_held_out,
)

NEAR = Hypothesis(label="near [a]", says="a setting")
ELSEWHERE = Hypothesis(label="rows", says="other rows", dataset="wine-white")


@pytest.fixture
def column() -> Column:
    """A question with two cells: one hypothesis was run on both, the other on one."""
    question = Question(
        paper="paper", table="2", method="m", datasets=["wine"], question="which rows [x]?",
        tried=[NEAR, ELSEWHERE], finding="unknown", says="nobody knows [y]",
    )  # fmt: skip
    cells = tuple(
        PublishedCell("paper", "2", "wine", "m", epsilon, "rmse", 0.7, 0.01)
        for epsilon in (0.5, math.inf)
    )
    one, other = (
        Distance(cell, 0.71, 0.02, splits, z)
        for cell, splits, z in zip(cells, (25, 10), (1.25, -2.0), strict=True)
    )
    trials = (Trial(NEAR, "wine", (one, other)), Trial(ELSEWHERE, "wine", (one, None)))
    return Column(question, "wine", cells, trials)


def test_a_terminal_shows_question_trials_and_finding(column: Column) -> None:
    console = Console(file=io.StringIO(), width=100, _environ={})
    console.print(render_columns([column, column]))
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    said = [line for line in lines if line]
    of_each = [
        "paper, Table 2: m on wine which rows [x]?",
        "unknown: nobody knows [y]",
        "hypothesis z at 0.5 z at Non-Private sum of z^2 splits",
        "near [a] +1.2 -2.0 5.6 10 to 25",
        "rows (wine-white) +1.2 - - 25",
    ]
    overview = said[: -2 * len(of_each)]
    assert overview[0] == "Unstated settings of 2 printed columns: 2 unknown"
    assert overview.count("m unknown wine") == 1
    assert said[len(overview) :] == 2 * of_each


def test_markdown_is_a_table_below_a_heading(column: Column) -> None:
    text = (
        "### paper, Table 2: m on wine\n\n"
        "| hypothesis | z at 0.5 | z at Non-Private | sum of z^2 | splits |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| near \\[a\\] | +1.2 | -2.0 | 5.6 | 10 to 25 |\n"
        "| rows (wine-white) | +1.2 | - | - | 25 |\n"
    )
    assert markdown_columns([column, column]) == f"{text}\n{text}"


def test_json_has_every_cell_with_what_was_measured(column: Column) -> None:
    (found,) = json_columns([column])
    near, rows = found.pop("tried")
    assert found == {
        "paper": "paper", "table": "2", "method": "m", "dataset": "wine", "finding": "unknown",
        "question": "which rows [x]?", "says": "nobody knows [y]",
    }  # fmt: skip
    printed = {"printed": 0.7, "printed_sd": 0.01}
    first = {"epsilon": 0.5, **printed, "mean": 0.71, "sd": 0.02, "splits": 25, "z": 1.25}
    assert near == {
        "label": "near [a]", "says": "a setting", "dataset": "wine", "sum_of_squares": 5.5625,
        "cells": [
            first,
            {"epsilon": None, **printed, "mean": 0.71, "sd": 0.02, "splits": 10, "z": -2.0},
        ],
    }  # fmt: skip
    assert (rows["dataset"], rows["sum_of_squares"]) == ("wine-white", None)
    assert rows["cells"] == [
        first,
        {"epsilon": None, **printed, "mean": None, "sd": None, "splits": 0, "z": None},
    ]


FAILS = Judgement(
    ("paper", "3", "pol", "m"), "setting [a]", 7, "2", ("adult", "telco"), None, 12.34,
    Omnibus((2.0, 2.1), 0, 0.004), (10, 25),
)  # fmt: skip
HOLDS = Judgement(
    ("paper", "2", "adult", "m"), "m", 7, "", (), 2, 1.0, Omnibus((1.0,), 0, 0.3), (25, 25)
)


def shown_judgements(*judgements: Judgement, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, _environ={}).print(render_held_out(judgements))
    return stream.getvalue()


def test_a_terminal_shows_both_kinds_apart_and_how_settings_were_chosen() -> None:
    lines = [" ".join(line.split()) for line in shown_judgements(FAILS, HOLDS).splitlines()]
    first = lines.index("Chosen on other cells, judged once")
    second = lines.index("The settings of the column, on splits of another seed")
    assert "m 3 pol 10 to 25 12.3 2 0.004 fails" in lines[first:second]
    assert "m on pol: setting [a] (of 7, on Table 2: adult, telco)" in lines[first:second]
    assert "m 2 adult 2 25 1.0 1 0.3 not refuted" in lines[second:]


def test_a_kind_without_judgements_has_no_table() -> None:
    assert "another seed" not in shown_judgements(FAILS)
    assert "judged once" not in shown_judgements(HOLDS)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, shown_judgements(FAILS, HOLDS, width=width).splitlines())) <= width


def test_settings_with_one_choice_are_named_once() -> None:
    other = Judgement(("paper", "3", "elevators", "m"), *_rest(FAILS))
    assert (
        " ".join(shown_judgements(FAILS, other).split()).count("m on pol, elevators: setting [a]")
        == 1
    )


def _rest(found: Judgement) -> tuple:
    return tuple(getattr(found, name) for name in list(Judgement.__dataclass_fields__)[1:])


def test_markdown_has_a_table_of_each_kind() -> None:
    lines = markdown_held_out([FAILS, HOLDS]).splitlines()
    assert lines[0] == "### Chosen on other cells, judged once"
    assert lines[3] == "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |"
    assert r"| setting \[a\] (of 7, on Table 2: adult, telco) |" in lines[4]
    assert lines[-1] == "| m | 2 | adult | 2 | 25 | 1.0 | 1 | 0.3 | not refuted |"


def test_json_has_plain_values() -> None:
    first, second = json.loads(json.dumps(json_held_out([FAILS, HOLDS])))
    assert (first["dataset"], first["fails"], first["splits"]) == ("pol", True, [10, 25])
    assert (second["chosen_in"], second["chosen_on"], second["seed"]) == (None, [], 2)
