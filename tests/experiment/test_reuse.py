"""What one journal holds, no other run of the folder computes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dprepro.config import load_config
from dprepro.experiment.journal import read_journal
from dprepro.experiment.run import Options, look_ahead, run
from tests.experiment.test_run import Watch, in_process
from tests.lab import Lab

__all__ = ["in_process"]


def both(lab: Lab, **keys: object) -> tuple[Path, Path]:
    """Return two configs of the same tasks under different names."""
    return lab.config(**keys), lab.config("second", **keys)


@pytest.mark.usefixtures("in_process")
class TestTakingOver:
    def test_finished_tasks_are_taken_with_their_environment(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab, methods=["noisy", "raises"]))
        options = Options(results=lab.results)
        run(first, options, Watch())
        outlook = look_ahead(second, options)
        assert (len(outlook.done), len(outlook.todo)) == (6, 6)  # what failed is tried again
        assert not (lab.results / "second.jsonl").exists()
        watch = Watch()
        assert run(second, options, watch).ran == 6
        assert {record.task.method for record in watch.records} == {"raises"}
        ours = read_journal(lab.results / "second.jsonl")
        theirs = read_journal(lab.results / "lab.jsonl")
        assert ours.environments[0]["taken_from"] == "lab"
        taken = [r for r in theirs.records if r.status == "ok"]
        assert [r for r in ours.records if r.status == "ok"] == taken

    def test_nothing_is_taken_twice_or_into_a_fresh_journal(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab))
        options = Options(results=lab.results)
        run(first, options, Watch())
        run(second, options, Watch())
        before = (lab.results / "second.jsonl").read_bytes()
        run(second, options, Watch())
        assert (lab.results / "second.jsonl").read_bytes() == before
        assert run(second, Options(results=lab.results, fresh=True), Watch()).ran == 6

    def test_tasks_without_a_seed_are_run_again(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab, seed=None))
        options = Options(results=lab.results)
        run(first, options, Watch())
        assert run(second, options, Watch()).ran == 6

    def test_other_settings_and_broken_neighbours_are_passed_over(self, lab: Lab) -> None:
        first, second = lab.config(), lab.config("second", seed=8)
        options = Options(results=lab.results)
        run(load_config(first), options, Watch())
        (lab.results / "broken.jsonl").write_text(json.dumps({"kind": "nonsense"}) + "\n")
        assert run(load_config(second), options, Watch()).ran == 6
