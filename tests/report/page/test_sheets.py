import math

from dprepro.judge.verdicts import Verdict
from dprepro.report.page.cells import level_cell, verdict_cell
from dprepro.report.page.sheets import Cell, Head, Row, Sheet, tone


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
