"""A config run from Python gives the table that the command line gives."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dprepro import DpreproError, run, table, verdicts
from dprepro.cli import app
from dprepro.report.frames import COLUMNS, VERDICT_COLUMNS

CONFIG = """
dataset: breast-cancer
metric: auc
epsilons: [1]
delta: 1e-6
splits: 2
seed: 1
domain: observed
methods: [dp-ebm-gdp, logistic]
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "few.yaml"
    path.write_text(CONFIG)
    return path


def test_a_run_and_its_table(config, tmp_path):
    summary = run(config, results=tmp_path, jobs=1)
    assert (summary.failed, summary.ran) == (0, 4)
    found = table("few", results=tmp_path)
    assert set(found["method"]) == {"dp-ebm-gdp", "logistic"}
    private = found.set_index("method").loc["dp-ebm-gdp"]
    assert private["mean"] == pytest.approx(summary.tally.mean(("dp-ebm-gdp", 1.0)))
    assert found.set_index("method")["epsilon"]["logistic"] == math.inf
    assert found.equals(table(summary))
    assert {name: str(dtype) for name, dtype in found.dtypes.items()} == COLUMNS
    every = table(summary, metric="all")
    assert set(every["metric"]) > {"auc", "accuracy", "log_loss"}
    assert not every.duplicated(["dataset", "method", "epsilon", "metric"]).any()
    assert repr(summary).startswith("Summary(few: 4 ok; 4 run in ")


def test_the_table_is_that_of_the_command_line(config, tmp_path):
    run(config, results=tmp_path, splits=1, jobs=1)
    options = ["table", "--config", "few", "--results", str(tmp_path), "--format", "json"]
    printed = json.loads(CliRunner().invoke(app, options).output)
    found = table("few", results=tmp_path)
    assert list(found["mean"]) == [row["mean"] for row in printed]


def test_a_part_of_a_config(config, tmp_path):
    summary = run(config, results=tmp_path, splits=1, methods=["logistic"], jobs=1)
    assert summary.ran == 1


def test_a_config_that_was_not_run_is_an_error(tmp_path):
    with pytest.raises(DpreproError, match="no journals"):
        table("few", results=tmp_path)


def test_verdicts_are_those_of_check_and_stand_beside_results():
    found = verdicts("shipped", "dp-ebm")
    assert (found.passed, sum(found.counts.values())) == (True, len(found.frame))
    assert {name: str(dtype) for name, dtype in found.frame.dtypes.items()} == VERDICT_COLUMNS
    printed = json.loads(
        CliRunner().invoke(app, ["check", "--paper", "dp-ebm", "--format", "json"]).stdout
    )
    assert found.counts == printed["counts"]
    assert list(found.frame["verdict"]) == [cell["verdict"] for cell in printed["cells"]]
    beside = table(results="shipped", paper="dp-ebm").dropna(subset="verdict")
    possible = found.frame[found.frame["verdict"] != "impossible"]
    places = ["table", "dataset", "method", "epsilon", "published_mean", "verdict"]
    assert sorted(map(tuple, beside[places].values)) == sorted(map(tuple, possible[places].values))
    assert repr(found).startswith("Verdicts(dp-ebm-2021: passed; ")
    assert "<table" in found._repr_html_()


def test_a_folder_without_what_a_document_prints_has_no_verdict(config, tmp_path):
    summary = run(config, results=tmp_path, splits=1, methods=["logistic"], jobs=1)
    with pytest.raises(DpreproError, match="no result of anything that dp-ebm-2021 prints"):
        verdicts(summary, "dp-ebm")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_script_needs_no_guard_around_a_run(config, tmp_path, method):
    """However its processes start: by spawn on macOS and Windows, which imports the script."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import multiprocessing\nmultiprocessing.set_start_method({method!r})\n"
        f"from dprepro import run\nprint(run({str(config)!r}, splits=1, methods=['logistic'], "
        f"results={str(tmp_path)!r}).ran)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
