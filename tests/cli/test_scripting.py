"""A config run from Python gives the table that the command line gives."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dprepro import DpreproError, run, table
from dprepro.cli import app

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
    assert found.set_index("method")["epsilon"].isna()["logistic"]
    assert "verdict" not in found
    assert "verdict" in table("few", results=tmp_path, compare=True)


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
