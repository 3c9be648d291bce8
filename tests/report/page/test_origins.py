"""Where the number of a cell comes from, and how it is packed into the page."""

import math
import shlex
from dataclasses import replace

import pytest

from dprepro.report.layout.tables import build_tables
from dprepro.report.page.cells import cell_sheet
from dprepro.report.page.content import pack
from dprepro.report.page.origins import Origins, origins_of, round_off, row_numbers
from dprepro.report.page.sheets import Cell, Head, Row, Sheet
from dprepro.results.folder import read_results
from dprepro.results.runs import Run
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
