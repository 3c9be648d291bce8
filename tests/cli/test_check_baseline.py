"""`dprepro check --baseline` in every format, and the baseline that `--record-baseline` keeps."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from dprepro.runtime.errors import DpreproError
from tests.cli.test_check import check
from tests.report.journals import records, write

OLD = np.linspace(0.84, 0.86, 10)


@pytest.fixture
def folders(tmp_path):
    """Return the options of a check in which a cell is better, one worse and one the same."""
    sides = {"now": {"a": 0.03, "b": -0.03, "c": 0.0}, "before": dict.fromkeys("abc", 0.0)}
    for side, cells in sides.items():
        lines = [r for label, more in cells.items() for r in records(OLD + more, label=label)]
        write(tmp_path / side, "mine", lines)
    return "--results", tmp_path / "now", "--baseline", tmp_path / "before"


def test_a_screen_names_what_is_worse_first(folders):
    code, text = check(*folders)
    assert code == 1
    assert "3 cells compared: 1 equivalent, 1 better, 1 worse (1 with the same scores)" in text
    assert "better: adult, a, epsilon 0.5" in text
    assert "worse: adult, b, epsilon 0.5: AUROC" in text
    assert len(text.splitlines()) <= 25


def test_details_have_a_table_of_all(folders):
    code, text = check(*folders, "--details")
    assert code == 1
    assert all(f" {label} " in text for label in "abc")
    assert "two one-sided t tests" in text


def test_each_format_says_the_same(folders):
    code, text = check(*folders, "--format", "json")
    found = json.loads(text)
    assert (code, found["passes"]) == (1, False)
    assert [cell["verdict"] for cell in found["cells"]] == ["better", "worse", "equivalent"]
    root = ElementTree.fromstring(check(*folders, "--format", "junit")[1])
    assert (root.get("tests"), root.get("failures")) == ("3", "1")
    lines = check(*folders, "--format", "github")[1].splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::error"]
    text = check(*folders, "--format", "markdown", "--details")[1]
    assert text.startswith("## dprepro check: failed")
    assert "| adult | b |" in text


def test_a_part_of_the_cells(folders):
    code, text = check(*folders, "--method", "c", "--quiet")
    assert (code, text.count("\n")) == (0, 1)
    code, text = check(*folders, "--method", "b", "--margin", "auc=0.1", "--quiet")
    assert (code, text.count("\n")) == (0, 1)


def test_a_recorded_baseline_holds_the_same_scores(folders, tmp_path):
    kept = tmp_path / "kept"
    assert check(*folders[:2], "--record-baseline", kept) == (0, "")
    assert [path.name for path in kept.iterdir()] == ["mine.parquet"]
    code, text = check(*folders[:2], "--baseline", kept)
    assert code == 0
    assert "3 equivalent (3 with the same scores)" in text


def test_what_does_not_go_together_is_refused(folders, tmp_path):
    for more in (["--fast"], ["--record"], ["--paper", "dp-ebm"], ["--require-all"]):
        with pytest.raises(DpreproError, match="leave out the other options"):
            check(*folders, *more)
    with pytest.raises(DpreproError, match="the folder of the results itself"):
        check(*folders[:2], "--record-baseline", folders[1])
    write(tmp_path / "other", "another", records(OLD))
    with pytest.raises(DpreproError, match="has no journal of mine"):
        check(*folders[:2], "--baseline", tmp_path / "other")


def test_a_config_whose_results_are_gone_fails_unless_another_is_asked_for(folders):
    lines = [r for k in range(6) for r in records(OLD, label=f"m{k}")]
    write(folders[3], "other", [*lines, *records(OLD)])
    code, text = check(*folders, "--method", "c", "--method", "m0")
    assert (code, "no result now: adult, m0, epsilon 0.5: " in text) == (1, True)
    code, text = check(*folders, "--format", "github")
    assert code == 1
    assert "no result now%3A config other::7 cells, among them adult" in text
    assert check(*folders, "--config", "mine", "--method", "c")[0] == 0


def test_splits_that_newly_fail_are_named(folders):
    failed = replace(records(OLD, label="c")[3], status="failed", metrics={}, message="no memory")
    lines = [r for r in records(OLD, label="c") if r.task.split != 3]
    write(folders[1], "mine", [*lines, failed])
    code, text = check(*folders, "--method", "c")
    assert (code, "newly fails: adult, c, epsilon 0.5: " in text) == (1, True)
    assert "finished before, and not now: split 3: no memory" in text
    assert json.loads(check(*folders, "--method", "c", "--format", "json")[1])["failing"] == [
        {"cell": "adult, c, epsilon 0.5", "splits": [3]}
    ]
