from __future__ import annotations

from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.config import load_config
from tests.lab import Lab, lab

__all__ = ["lab"]


def test_a_tuned_config_can_be_run(lab: Lab) -> None:
    methods = [{"method": "lazybb-1r", "grid": {"rounds": [1, 3]}}]
    config = lab.config(methods=methods, epsilons=[8], evaluation="folds")
    tuned = lab.folder / "tuned.yaml"
    options = ["--output", str(tuned), "--results", str(lab.folder / "out"), "--jobs", "1"]
    outcome = CliRunner().invoke(app, ["tune", str(config), *options])
    assert outcome.exit_code == 0, outcome.output
    assert "not paid for" in outcome.output
    (entry,) = load_config(tuned).methods
    assert entry.by_epsilon[8.0]["rounds"] in (1, 3)
