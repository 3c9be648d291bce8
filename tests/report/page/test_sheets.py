"""The sheet of all cells: its order, its columns, and what stands in a row."""

import math

import pytest

from dprepro.judge.check import check_documents
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import load_documents
from dprepro.report.layout import build_tables
from dprepro.report.page.sheets import (
    UNPRINTED,
    Cell,
    Head,
    Row,
    Sheet,
    cell_sheet,
    level_cell,
    tone,
    verdict_cell,
)
from dprepro.results.folder import read_results
from dprepro.results.margins import margins
from tests.report.page.pages import journals


def test_a_tone_is_a_css_class_name():
    assert tone("not run") == "not-run"
    assert tone("Does not hold") == "does-not-hold"


def test_levels_sort_by_their_number_and_verdicts_by_their_name():
    assert (level_cell(0.5).text, level_cell(0.5).key) == ("0.5", "0.5")
    assert (level_cell(math.inf).text, level_cell(math.inf).key) == ("Non-Private", "inf")
    found = verdict_cell(Verdict.NOT_RUN)
    assert (found.text, found.key, found.tone) == ("· not run", "not run", "not-run")


def test_a_column_stays_where_any_row_says_something():
    heads = (Head("a"), Head("b"), Head("c"), Head("d"))
    rows = (
        Row((Cell("1"), Cell(""), Cell("none"), Cell(""))),
        Row((Cell("2"), Cell("x"), Cell("none"), Cell("none"))),
    )
    sheet = Sheet("s", "S", heads, rows)
    kept = sheet.without_blank_columns("none")
    assert [head.title for head in kept.heads] == ["a", "b"]
    assert [[cell.text for cell in row.cells] for row in kept.rows] == [["1", ""], ["2", "x"]]
    assert [head.title for head in sheet.without_blank_columns().heads] == ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return read_results(journals(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def tables(results):
    return build_tables(results, [load_documents()["dp-ebm-2021"]], compare=True)


@pytest.fixture(scope="module")
def verdicts(results):
    return check_documents([load_documents()["dp-ebm-2021"]], results, [], margins()).verdicts


def test_cells_that_differ_come_first_then_the_printed_then_what_we_measured_alone(
    verdicts, tables
):
    sheet = cell_sheet(verdicts, tables, {})
    differs = {cell.verdict.value: cell.verdict.is_deviation for cell in verdicts}
    ranks = [3 if r.verdict == UNPRINTED else 2 - differs[r.verdict] for r in sheet.rows]
    assert ranks == sorted(ranks)
    assert set(ranks) == {1, 2, 3}
    assert sheet.caption == "Printed cells, then what only we measured"


def test_without_printed_cells_there_are_no_verdicts_to_show(tables):
    sheet = cell_sheet([], tables, {})
    assert sheet.caption == "Measured cells"
    assert {row.verdict for row in sheet.rows} == {UNPRINTED}
    assert {"Verdict", "Published", "z"}.isdisjoint(head.title for head in sheet.heads)


def test_a_deviation_is_linked_to_its_reason_and_others_have_their_note(verdicts, tables):
    (first, *_) = [cell for cell in verdicts if cell.verdict.is_deviation]
    sheet = cell_sheet(verdicts, tables, {first.published: "why-1"})
    last = [row.cells[-1] for row in sheet.rows]
    linked = [cell for cell in last if cell.link]
    assert [(cell.text, cell.link) for cell in linked] == [("why", "why-1")]
    notes = {cell.note for cell in verdicts if cell.note}
    assert notes <= {cell.text for cell in last}


def test_what_was_measured_alone_has_a_digit_more_than_its_group_and_stands_there_once(tables):
    doubled = [*tables, *tables]
    alone = [row for row in cell_sheet([], doubled, {}).rows if row.dataset == "prices"]
    assert len(alone) == 1
    texts = [cell.text for cell in alone[0].cells]
    assert any(text.startswith(("4321.", "4,321.")) for text in texts), texts


def test_levels_sort_by_their_number():
    assert (level_cell(0.5).key, level_cell(float("inf")).key) == ("0.5", "inf")
