"""Where journals come from: runs, machines, and the time that tasks took."""

import pytest

from dprepro.report.page.origins import run_sheet, time_in_words, timing_sheet
from dprepro.results.runs import Run, Timing
from tests.report.page.pages import ENVIRONMENT


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
