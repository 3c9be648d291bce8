from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.config import TunedOn, load_config
from dprepro.runtime.errors import DpreproError
from tests.in_process import in_process
from tests.lab import Lab, lab

__all__ = ["in_process", "lab"]


@pytest.mark.usefixtures("in_process")
def test_a_tuned_config_can_be_run(lab: Lab) -> None:
    methods = [{"method": "lazybb-1r", "grid": {"rounds": [1, 3]}}]
    config = lab.config(methods=methods, epsilons=[8], evaluation="folds")
    tuned = lab.folder / "tuned.yaml"
    options = ["--output", str(tuned), "--results", str(lab.folder / "out"), "--jobs", "1"]
    outcome = CliRunner().invoke(app, ["tune", str(config), *options])
    assert outcome.exit_code == 0, outcome.output
    assert "not covered by epsilon" in outcome.output
    assert tuned.stat().st_mode & 0o777 == 0o600  # the lab's rows are private
    (entry,) = load_config(tuned).methods
    assert entry.by_epsilon[8.0]["rounds"] in (1, 3)
    assert load_config(tuned).tuned_on == TunedOn(
        dataset="tiny", evaluation="folds", seed=7, splits=3
    )


@pytest.mark.usefixtures("in_process")
def test_a_grid_is_tuned_in_parts_that_reuse_each_other(lab: Lab) -> None:
    methods = [{"method": "lazybb-1r", "grid": {"rounds": [1, 3]}}, "plain"]
    config = lab.config(methods=methods, epsilons=[1, 8], evaluation="folds", splits=2)
    tuned, out = lab.folder / "tuned.yaml", lab.folder / "out"

    def tune(*part: str) -> int:
        options = ["--output", str(tuned), "--results", str(out), "--jobs", "1", *part]
        outcome = CliRunner().invoke(app, ["tune", str(config), *options])
        assert outcome.exit_code == 0, outcome.output
        (journal,) = out.glob("*.jsonl")
        return journal.read_text(encoding="utf-8").count('"kind":"record"')

    assert tune("--epsilon", "8", "--method", "lazybb-1r") == 4
    found = load_config(tuned)
    assert (found.epsilons, [m.method for m in found.methods]) == ((8.0,), ["lazybb-1r"])
    assert tune("--method", "lazybb-1r") == 8
    assert tune() == 10
    assert set(load_config(tuned).methods[0].by_epsilon) == {1.0, 8.0}


@pytest.mark.usefixtures("in_process")
def test_the_splits_that_chose_score_nothing_unless_told(lab: Lab) -> None:
    tuned_on = {"dataset": "tiny", "evaluation": "folds", "seed": 7, "splits": 3}
    config = lab.config(methods=["plain"], tuned_on=tuned_on)
    command = ["run", str(config), "--results", str(lab.results), "--jobs", "1"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, DpreproError)
    assert "--allow-tuned-splits" in str(refused.exception)
    assert not lab.results.exists()
    allowed = CliRunner().invoke(app, [*command, "--allow-tuned-splits"])
    assert allowed.exit_code == 0, allowed.output
    assert len(lab.records()) == 3


@pytest.mark.parametrize(
    "command", [["votes"], ["plot", "margins", "--output", "figures", "--format", "svg"]]
)
def test_votes_and_margins_of_those_splits_need_the_flag_too(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(lab.folder)
    tuned_on = {"dataset": "tiny", "evaluation": "folds", "seed": 7, "splits": 3}
    vote = {"method": "lazybb-1r", "params": {"rounds": 3}}
    config = lab.config(methods=[vote], epsilons=[8], tuned_on=tuned_on)
    refused = CliRunner().invoke(app, [*command, str(config)])
    assert isinstance(refused.exception, DpreproError)
    assert "--allow-tuned-splits" in str(refused.exception)
    allowed = CliRunner().invoke(app, [*command, str(config), "--allow-tuned-splits"])
    assert allowed.exit_code == 0, allowed.output


def test_score_needs_the_flag_too(lab: Lab) -> None:
    tuned_on = {"dataset": "tiny", "evaluation": "folds", "seed": 7, "splits": 3}
    config, model = lab.config(methods=["ebm"], tuned_on=tuned_on), str(lab.folder / "e.json")
    fit = ["fit", str(config), "--method", "ebm", "--split", "0", "--output", model]
    assert CliRunner().invoke(app, fit).exit_code == 0
    refused = CliRunner().invoke(app, ["score", model, str(config)])
    assert isinstance(refused.exception, DpreproError)
    assert "auc" not in refused.output
    allowed = CliRunner().invoke(app, ["score", model, str(config), "--allow-tuned-splits"])
    assert allowed.exit_code == 0, allowed.output
    assert "auc" in allowed.stdout.lower()
