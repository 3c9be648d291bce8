"""Where the number of a cell comes from, and how it is packed into the page.

Where journals come from: runs, machines, and the time that tasks took.
"""

import math
import shlex
from dataclasses import replace

import pytest

from dprepro.report.layout import build_tables
from dprepro.report.page.content import pack
from dprepro.report.page.origins import (
    Origins,
    origins_of,
    round_off,
    row_numbers,
    run_sheet,
    time_in_words,
    timing_sheet,
)
from dprepro.report.page.sheets import Cell, Head, Row, Sheet, cell_sheet
from dprepro.results.folder import read_results
from dprepro.results.runs import Run, Timing
from tests.report.journals import cell
from tests.report.page.pages import ENVIRONMENT, content_of, journals

ORIGINS = Origins({"test": ("M1", "M2"), "more": ("M2",)}, frozenset({"adult"}))


def facts_of(result, origins=ORIGINS):
    return dict(origins.of(result, "auc")["facts"])


def changed(result, journals=("test",), **task):
    return replace(result, task=replace(result.task, **task), journals=journals)


def test_the_facts_of_a_cell_are_those_of_its_task():
    result = changed(cell([0.5, 0.7]), ("test", "more"), params={"n_epochs": 3, "rate": 0.1})
    facts = facts_of(result)
    assert facts["Method"] == result.task.method
    assert facts["Parameters"] == "n_epochs = 3, rate = 0.1"
    assert facts["Config"] == "test, more"
    assert facts["Seed"] == "1"
    assert facts["Test rows"] == "random, 20 % of the rows"
    assert facts["\N{GREEK SMALL LETTER DELTA}"] == "1e-06"
    assert facts["Machines"] == "M1, M2"


def test_what_a_task_does_not_have_is_said_or_left_out():
    result = changed(
        cell([0.5]), ("elsewhere",), params={}, seed=None, delta=0.0, evaluation="folds"
    )
    facts = facts_of(result)
    assert facts["Parameters"] == "defaults"
    assert facts["Seed"] == "of the operating system"
    assert facts["Test rows"] == "folds"
    assert {"\N{GREEK SMALL LETTER DELTA}", "Machines"}.isdisjoint(facts)


def test_each_split_has_its_value_to_six_digits():
    found = ORIGINS.of(cell([0.123456789, 0.7]), "auc")
    assert [value for _, value in found["splits"]] == [0.123457, 0.7]
    assert found["metric"] == "AUROC"
    assert round_off(98_765_432.1) == 98_765_400


def test_without_a_finished_split_nothing_is_known():
    assert ORIGINS.of(None, "auc") is None
    assert ORIGINS.of(cell([0.5]), "rmse") is None


@pytest.mark.parametrize(
    ("journal", "config"), [("adult", "adult"), ("my own", "'my own.yaml'")], ids=str
)
def test_the_command_repeats_the_cell_into_another_folder(journal, config):
    result = changed(cell([0.5], epsilon=0.5), (journal,))
    label = shlex.quote(result.task.label)
    command = ORIGINS.of(result, "auc")["command"]
    assert command == f"dprepro run {config} --method {label} --epsilon 0.5 --results again"
    open_one = changed(cell([0.5], epsilon=math.inf), (journal,))
    assert "--epsilon" not in ORIGINS.of(open_one, "auc")["command"]


def test_machines_go_by_the_journals_of_their_runs():
    origins = origins_of([Run("one", ENVIRONMENT), Run("two", {**ENVIRONMENT, "cpu": "other"})])
    assert origins.machines == {"one": ["M1"], "two": ["M2"]}
    assert "adult" in origins.configs


def test_a_result_in_a_table_has_the_number_of_its_first_row(tmp_path):
    tables = build_tables(read_results(journals(tmp_path)), [], compare=False)
    rows = cell_sheet([], tables, {}).rows
    numbers = row_numbers(tables, [*rows, *rows])
    assert sorted(numbers.values()) == list(range(len(rows)))
    assert all(rows[number].metric == metric for (metric, _), number in numbers.items())
    strange = replace(rows[0], result=cell([0.5]))
    assert row_numbers(tables, [strange]) == {}
    first = next(e.result for t in tables for _, e in t.entries if e.result)
    looked = replace(rows[0], result=replace(first, looks=(2, 4)))
    assert (rows[0].metric, id(first)) in row_numbers(tables, [looked])


def test_rows_are_packed_with_their_runs_and_without_what_no_document_may_hold():
    row = Row((Cell("a\x00b", key="k", tone="worse", link="why"),), "p\ud800", "d", None, "v")
    measured = Row((Cell("c"),), None, "d", "m", None, cell([0.25]), "auc")
    packed = pack([Sheet("s", "S", (Head("h"),), (row, measured))], [], ORIGINS)
    assert packed == pack([Sheet("s", "S", (Head("h"),), (row, measured))], [], ORIGINS)
    content = content_of(f'<template id="packed">{packed}</template>')
    first, second = content["sheets"]["s"]
    (field,) = first["cells"]
    assert field[1:] == ["k", "worse", "why"]
    assert "\x00" not in field[0]
    assert "\ud800" not in first["filters"][0]
    assert first["filters"][1:] == ["d", None, "v"]
    assert first["runs"] is None
    assert second["runs"]["splits"][0][1] == 0.25
    assert content["figures"] == []


def texts(sheet):
    return [[cell.text for cell in row.cells] for row in sheet.rows]


def test_a_run_names_its_journal_time_version_commit_and_jobs():
    clean = {**ENVIRONMENT, "git": {"commit": "fedcba9876543210", "dirty": False}}
    runs = [Run("one", ENVIRONMENT), Run("two", {**clean, "taken_from": "one"}), Run("old", {})]
    found = texts(run_sheet(runs))
    when = "2025-01-02 03:04:05 UTC"
    assert found[0][:5] == ["one", when, "1.2.3", "0123456789 with changes", "2"]
    assert found[1][:5] == ["two, taken from one", when, "1.2.3", "fedcba9876", "2"]
    assert found[2][:5] == ["old", "", "", "", ""]
    assert found[0][5] == found[1][5] != found[2][5]


def test_times_are_those_of_finished_tasks():
    timings = [
        Timing("adult", "ebm", 1200, 0, 3, 0.12345, 9.876, 150.0),
        Timing("pol", "ebm", 0, 2, 0, 0.0, 0.0, 0.0),
    ]
    assert texts(timing_sheet(timings)) == [
        ["adult", "ebm", "1,200", "", "3", "0.123", "9.88", "2.5"],
        ["pol", "ebm", "0", "2", "", "", "", "0.0"],
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (119.9, "119.9 seconds"),
        (120, "2.0 minutes"),
        (7199, "120.0 minutes"),
        (7200, "2.0 hours"),
        (360_000_000, "100,000.0 hours"),
    ],
)
def test_a_unit_changes_at_two_of_the_next(seconds, words):
    assert time_in_words(seconds) == words
