"""Hypotheses in terminals, as Markdown and as JSON."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from dprepro.judge.forensics import Column, Distance, Trial
from dprepro.papers.cells import PublishedCell
from dprepro.papers.hypotheses import Hypothesis, Question
from dprepro.report.write.forensics import json_columns, markdown_columns, render_columns

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
