"""Results of tuned parameters are marked wherever they show, those without privacy above all."""

import csv
import io
import json
import math

import pytest

from tests.cli.test_unverified import run
from tests.report.journals import records, spread, write
from tests.report.page.pages import whole

CHOSEN = "parameters were chosen by `dprepro tune` on rows of this dataset"


@pytest.fixture
def folder(tmp_path):
    """Journals in which the parameters of one method of two are tuned, and it has no privacy."""
    lines = [
        *records(spread(0.89, 0.005), epsilon=1.0),
        *records(spread(0.96, 0.005), label="ebm", epsilon=math.inf, tuned=True),
    ]
    write(tmp_path, "one", lines)
    return tmp_path


@pytest.mark.parametrize(
    ("format", "entry", "legend"),
    [
        ("rich", "0.960 ± 0.005 [tuned]", f"[tuned]: {CHOSEN}."),
        (
            "markdown",
            r"| 0.960 ± 0.005 \[tuned\] |",
            rf"- \[tuned\]: {CHOSEN}.".replace("`", r"\`"),
        ),
    ],
)
def test_tables_mark_and_explain_it(folder, format, entry, legend):
    shown = run("table", "--results", folder, "--format", format)
    assert shown.count("tuned]") + shown.count(r"tuned\]") == 2
    assert entry in shown
    assert legend in shown


def test_rows_have_a_field_of_it(folder):
    rows = json.loads(run("table", "--results", folder, "--format", "json"))
    assert {row["method"]: row["tuned"] for row in rows} == {"dp-ebm-gdp-2021": False, "ebm": True}
    found = csv.DictReader(io.StringIO(run("table", "--results", folder, "--format", "csv")))
    assert {row["method"]: row["tuned"] for row in found} == {
        "dp-ebm-gdp-2021": "False",
        "ebm": "True",
    }


def test_tables_without_such_a_result_say_nothing_of_it(tmp_path):
    write(tmp_path, "one", records(spread(0.89, 0.005), epsilon=1.0))
    assert "tuned" not in run("table", "--results", tmp_path, "--format", "markdown")


def test_check_names_the_cells(folder):
    command = ("check", "--details", "--results", folder, "--paper", "dp-ebm-2021")
    shown = " ".join(run(*command, code=1).split())
    assert f"Tuned ({CHOSEN}): " in shown
    found = json.loads(run(*command, "--format", "json", code=1))
    assert len(found["tuned"]) == 1
    assert "ebm" in found["tuned"][0]


def test_the_page_says_so_beside_the_cell(folder):
    output = folder / "page.html"
    run("report", "--results", folder, "--output", output)
    assert f"Tuned: {CHOSEN}." in whole(output.read_text(encoding="utf-8"))
