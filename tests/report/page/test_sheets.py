import math

from dprepro.report.judge.verdicts import Verdict
from dprepro.report.page.cells import level_cell, verdict_cell
from dprepro.report.page.sheets import tone


def test_a_tone_is_a_css_class_name():
    assert tone("not run") == "not-run"
    assert tone("Does not hold") == "does-not-hold"


def test_levels_sort_by_their_number_and_verdicts_by_their_name():
    assert (level_cell(0.5).text, level_cell(0.5).key) == ("0.5", "0.5")
    assert (level_cell(math.inf).text, level_cell(math.inf).key) == ("Non-Private", "inf")
    found = verdict_cell(Verdict.NOT_RUN)
    assert (found.text, found.key, found.tone) == ("· not run", "not run", "not-run")
