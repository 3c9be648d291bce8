"""A method of one's own is changed between runs, and its version is not."""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from pathlib import Path

import pytest

from dprepro.experiment.config import ExperimentConfig, load_config
from dprepro.experiment.journal import read_journal
from dprepro.experiment.run import Options, look_ahead, run
from dprepro.methods import registry
from dprepro.runtime.errors import DpreproWarning
from tests.cli.test_check import check
from tests.experiment.test_run import Watch, in_process
from tests.lab import Lab
from tests.report.journals import records, write

__all__ = ["in_process"]

SAID = (
    r"^noisy: its code differs from that of 6 kept records of version 1\. If that changes results, "
    r"raise `version` in its entry, or run with --fresh$"
)
RANKS, TURNED = 'return X["a"].to_numpy()', 'return -X["a"].to_numpy()'
ENTRY, RAISED = 'method("noisy", noisy, ', 'method("noisy", noisy, version=2, '


def change(lab: Lab, old: str, new: str) -> None:
    """Change the file of the methods, and load it again."""
    path = lab.folder / "methods" / "misbehaviour.py"
    assert old in path.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace(old, new))
    registry.all_methods.cache_clear()


def silent(config: ExperimentConfig, options: Options) -> int:
    """Return how many tasks are run, if nothing is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DpreproWarning)
        ahead, ran = look_ahead(config, options), run(config, options, Watch()).ran
    assert len(ahead.todo) == ran
    return ran


@pytest.fixture
def changed(lab: Lab, in_process: None) -> tuple[Path, Options]:
    """A config that has run, and how; of its methods, one has a ledger. The code changed since."""
    config, options = lab.config(methods=["noisy", "plain"]), Options(results=lab.results)
    assert silent(load_config(config), options) == 9
    change(lab, RANKS, TURNED)
    return config, options


def test_a_run_says_so_and_keeps_the_records(lab: Lab, changed: tuple[Path, Options]) -> None:
    config, options = load_config(changed[0]), changed[1]
    journal = lab.results / "lab.jsonl"
    before = journal.read_bytes()
    for act in (lambda: look_ahead(config, options), lambda: run(config, options, Watch())):
        with pytest.warns(DpreproWarning, match=SAID) as said:
            act()
        assert len(said) == 1  # without a ledger, nothing is known of `plain`
    assert journal.read_bytes() == before
    change(lab, TURNED, RANKS)
    assert silent(config, options) == 0


def test_the_command_says_so_on_standard_error(lab: Lab, changed: tuple[Path, Options]) -> None:
    command = lab.command(changed[0], "--dry-run")
    done = subprocess.run(command, capture_output=True, text=True, env=lab.environment, timeout=120)
    assert done.returncode == 0
    assert re.match(SAID, done.stderr.strip().removeprefix("warning: "))
    assert "Nothing is left to run." in done.stdout


def test_another_version_runs_again_and_says_nothing(
    lab: Lab, changed: tuple[Path, Options]
) -> None:
    config, options = load_config(changed[0]), changed[1]
    old = {r.task.split: r.metrics for r in read_journal(lab.results / "lab.jsonl").records}
    change(lab, ENTRY, RAISED)
    assert silent(config, options) == 6
    new = [r for r in read_journal(lab.results / "lab.jsonl").records if r.task.method_version == 2]
    assert len(new) == 6
    assert all(r.metrics != old[r.task.split] for r in new)


def test_a_fresh_run_says_nothing_before_and_after(lab: Lab, changed: tuple[Path, Options]) -> None:
    config = load_config(changed[0])
    assert silent(config, Options(results=lab.results, fresh=True)) == 9
    assert silent(config, changed[1]) == 0


def test_a_check_against_a_baseline_finds_it_and_passes(
    lab: Lab, changed: tuple[Path, Options], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("--results", lab.results, "--baseline", tmp_path / "kept")
    check(*given[:2], "--record-baseline", given[3])
    code, text = check(*given)
    assert (code, "changed code: noisy: its code differs from that of 6 kept" in text) == (0, True)
    code, text = check(*given, "--quiet")
    assert (code, "the code of 1 method has changed since." in text) == (0, True)
    found = json.loads(check(*given, "--format", "json")[1])
    assert found["changed_code"] == [{"method": "noisy", "version": 1, "records": 6}]
    assert "::warning title=changed code%3A noisy" in check(*given, "--format", "github")[1]
    assert "code" not in check(*given, "--method", "plain")[1]
    # Where the folder is not named, nothing can be known.
    monkeypatch.delenv(registry.PLUGIN_VARIABLE)
    registry.all_methods.cache_clear()
    assert "code" not in check(*given)[1]


def test_a_check_of_printed_numbers_warns_of_it(lab: Lab, changed: tuple[Path, Options]) -> None:
    write(lab.results, "printed", records([0.8] * 25))
    with pytest.warns(DpreproWarning, match=SAID):
        check("--results", lab.results)
