from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.record import Record
from dprepro.experiment.worker import DataRef, run_task
from dprepro.runtime.errors import DpreproError
from tests.in_process import in_process
from tests.lab import Lab, lab
from tests.report.journals import write

__all__ = ["in_process", "lab"]

# On five splits: 5 quick tasks and 10 that take half a second in the processes that a lab starts.
SLOW = {
    "methods": [{"method": "noisy", "params": {"pause": 0.5}}, {"method": "plain"}],
    "splits": 5,
}


def _uninterrupted(config: Path) -> dict[str, dict[str, Any]]:
    """Return the records that the config comes to when nothing disturbs it."""
    experiment = load_config(config)
    data = DataRef(experiment.card)
    lines = [run_task(entry.task, data).to_json() for entry in plan(experiment)]
    return {line["key"]: {k: v for k, v in line.items() if k != "seconds"} for line in lines}


def _wait(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def _written(lab: Lab) -> int:
    path = lab.results / "lab.jsonl"
    return path.read_bytes().count(b'"kind":"record"') if path.exists() else 0


def _workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children()
    return [c for c in children if "resource_tracker" not in " ".join(c.cmdline())]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_keeps_what_was_finished_and_the_same_command_goes_on(
    lab: Lab, number: signal.Signals
) -> None:
    config = lab.config(**SLOW)
    process = lab.start(config, "--jobs", 2)
    _wait(lambda: _written(lab) >= 2)
    workers = _workers(process)
    assert len(workers) == 2
    os.killpg(process.pid, number)  # as a terminal or a shutdown does: to everybody
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "lab: interrupted; the same command continues it" in output
    assert "Traceback" not in output
    assert not any(worker.is_running() for worker in workers)
    finished = lab.records()
    assert 2 <= len(finished) < 15

    again = _invoke(config, "--results", lab.results)
    assert again.exit_code == 0
    assert f"{len(finished)} done before, 0 skipped, {15 - len(finished)} to run" in again.output
    assert lab.records() == _uninterrupted(config)
    assert len([line for line in lab.lines() if line["kind"] == "record"]) == 15


@pytest.mark.parametrize(
    ("fresh", "said"),
    [(False, "the same command continues"), (True, "the same command without --fresh continues")],
)
def test_after_an_interrupted_fresh_run_the_command_without_it_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, fresh: bool, said: str
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dprepro.experiment.run.run", interrupted)
    given = ["run", str(lab.config()), "--results", str(lab.results), *["--fresh"] * fresh]
    outcome = CliRunner().invoke(app, given)
    assert outcome.exit_code == 130
    assert f"lab: interrupted; {said} it" in outcome.output


@pytest.mark.usefixtures("in_process")
def test_nothing_finished_is_lost_to_kills(lab: Lab) -> None:
    config = lab.config(**SLOW)
    process = lab.start(config, "--jobs", 1)
    _wait(lambda: _written(lab) >= 1)
    second = _invoke(config, "--results", lab.results)
    assert "another run is writing" in str(second.exception)
    workers = _workers(process)
    process.kill()
    process.communicate(timeout=30)
    _wait(lambda: not any(worker.is_running() for worker in workers), seconds=10)
    finished = lab.records()
    with (lab.results / "lab.jsonl").open("a") as journal:
        journal.write('{"kind":"rec')

    process = lab.start(config, "--jobs", 2, "--time-limit", 5)
    _wait(lambda: _written(lab) > len(finished))
    _workers(process)[0].kill()
    os.killpg(process.pid, signal.SIGSTOP)  # Ctrl-Z, for longer than a task may take
    time.sleep(6)
    os.killpg(process.pid, signal.SIGCONT)
    output, _ = process.communicate(timeout=200)
    assert "the last line was torn by a crash and is dropped" in output
    assert process.returncode == 0
    assert lab.records() == _uninterrupted(config)  # the task of the killed worker ran again
    assert len([line for line in lab.lines() if line["kind"] == "record"]) == 15


@pytest.mark.usefixtures("in_process")
def test_a_full_disk_stops_the_run_and_room_resumes_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python would keep a part of what it wrote
    config = lab.config(methods=["noisy", "plain"])
    limit = 3000  # bytes a file: the environment line and a few records
    code, output = lab.run(
        config,
        *("--jobs", 1),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert code == 2
    assert "make room there, then give the same command again" in output
    assert 0 < len(lab.records()) < 9  # every line parses

    again = _invoke(config, "--results", lab.results, "--profile")
    assert again.exit_code == 0
    assert "where the time went" in again.output
    assert lab.records() == _uninterrupted(config)


def _invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def test_a_dry_run_counts_and_writes_nothing(lab: Lab) -> None:
    result = _invoke(
        lab.config(methods=["noisy", "plain"]),
        *("--dry-run", "--splits", 2, "--method", "noisy", "--epsilon", 1, "--epsilon", 8),
        *("--results", lab.results),
    )
    assert result.exit_code == 0
    assert "noisy" in result.output
    assert "plain" not in result.output
    assert result.output.split("all")[1].replace("│", " ").split()[:5] == ["4", "0", "0", "0", "4"]
    assert not lab.results.exists()


def _dry(config: Path, *more: object, **env: str) -> str:
    """Return what a dry run says, then its error, in one line."""
    arguments = ["run", config, "--dry-run", *more]
    outcome = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "80", **env})
    assert max(map(len, outcome.stdout.splitlines()), default=0) <= 80
    assert outcome.exit_code == bool(outcome.exception)
    return " ".join(f"{outcome.output} {outcome.exception or ''}".split())


def test_a_dry_run_forecasts_by_what_has_run(lab: Lab) -> None:
    config = lab.config(methods=["noisy", "plain"])
    mine = ("--results", lab.results)
    said = _dry(config, "--jobs", 2, *mine)
    assert "No time is known of 9 tasks: noisy (6), plain (3)." in said
    for entry in plan(load_config(config)):
        if entry.task.split == 0:
            record = Record(entry.task, "ok", {"auc": 0.5}, {"fit": 60.0})
            write(lab.results, "lab", [record])
            break
    said = _dry(config, "--jobs", 2, *mine)
    assert "Expected: 2.5 min on 2 workers (5 min of one processor) for 5 tasks." in said
    assert f"5 recorded in {lab.results}." in said
    assert "No time is known of 3 tasks: plain (3). They come on top." in said
    assert "Checked: the rows of tiny have the columns, categories" in said


def test_a_dry_run_with_nothing_left_says_so(lab: Lab) -> None:
    config = lab.config(methods=["lacks-module"])
    assert "Nothing is left to run." in _dry(config, "--results", lab.results)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",u,", ",w,", "column 'b' holds a value that is not among the card's categories. "
         "Allowed: u, v. Look in the codebook for what is missing from this list, and add it to "
         "the card: a list made from the rows is not public (first in line 2)"),
        (",yes", ",perhaps", "target 'y' must hold two labels"),
        ("a,b,y", "a,c,y", "`features` names 'b', which is not a column"),
        (",u,", ",,", "values are missing in b, and the card does not allow it: add"),
    ],
)  # fmt: skip
def test_a_dry_run_names_what_the_card_does_not_have(
    lab: Lab, old: str, new: str, said: str
) -> None:
    file = lab.folder / "tiny.csv"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1))
    found = _dry(lab.config(domain="public"), "--results", lab.results)
    assert said in found
    assert "Checked" not in found


def test_a_dry_run_tries_encodings_and_parameters(lab: Lab) -> None:
    file, card = lab.folder / "tiny.csv", lab.folder / "tiny.yaml"
    rows = file.read_text(encoding="utf-8").splitlines()
    rows[1] = f",{rows[1].partition(',')[2]}"
    file.write_text("\n".join(rows) + "\n")
    card.write_text(card.read_text(encoding="utf-8").replace("[-5, 5]}", "[-5, 5], missing: true}"))
    given = {"domain": "public", "methods": ["ebm", "logistic"]}
    found = _dry(lab.config(**given), "--results", lab.results)
    assert "lab: logistic, split 0: feature 'a' has missing values, which this method" in found
    found = _dry(lab.config(**given), "--method", "ebm", "--results", lab.results)
    assert "each method takes them and its parameters" in found
    wrong = {"method": "ebm", "params": {"learning_rate": -1}}
    found = _dry(lab.config(**{**given, "methods": [wrong]}), "--results", lab.results)
    assert "ebm refuses its parameters: learning_rate must" in found


def test_a_dry_run_downloads_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_CACHE", str(lab.folder / "cache"))
    found = _dry(
        lab.config(dataset="telco", methods=["ebm"]),
        *("--results", lab.results, "--data-dir", lab.folder),
    )
    assert "Parameters are checked, and rows are not: telco is not on this machine." in found
    assert "`dprepro data fetch telco` gets it" in found
    assert not (lab.folder / "cache").exists()


def test_methods_can_be_a_list_between_commas(lab: Lab) -> None:
    config = lab.config(methods=["noisy", "plain", "raises"])
    found = _dry(config, "--method", "noisy,plain", "--splits", 1, "--results", lab.results)
    assert "noisy (2), plain (1)." in found
    assert "raises" not in found


@pytest.mark.parametrize(("splits", "is_said"), [(3, False), (4, True)])
def test_more_splits_than_there_are_is_said(lab: Lab, splits: int, is_said: bool) -> None:
    result = _invoke(lab.config(splits=3), "--dry-run", "--splits", splits)
    assert ("lab: it has 3 splits, so --splits 4 is all" in result.output) == is_said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aduld"], "did you mean 'adult'"),
        (["adult", "--method", "dp-ebm-gpd", "--dry-run"], "did you mean 'dp-ebm-gdp'"),
        (["adult", "--epsilon", "3", "--dry-run"], "no epsilon 3 in the config"),
        (["adult", "--executor", "dask", "--dry-run"], "--address HOST:PORT"),
        (["adult", "--executor", "dask", "--address", "localhost"], "at 'localhost' (missing port"),
    ],
)
def test_mistakes_are_errors_for_the_user(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = _invoke(*arguments, "--results", tmp_path)
    assert isinstance(result.exception, DpreproError)
    assert message in str(result.exception)


def test_one_config_in_error_does_not_stop_the_others(lab: Lab) -> None:
    broken = lab.config(name="broken", dataset="./nowhere.yaml")
    sound = lab.config(name="sound", methods=["lacks-module"])
    result = _invoke(broken, sound, "--results", lab.results)
    assert isinstance(result.exception, DpreproError)
    assert "nowhere.yaml" in str(result.exception)
    assert {r["status"] for r in lab.records("sound").values()} == {"skipped"}
    assert "6 task(s)" in result.output


def test_without_a_cluster_no_further_config_is_tried(lab: Lab) -> None:
    configs = [lab.config(name) for name in ("first", "second")]
    cluster = ("--executor", "dask", "--address", "nowhere")
    result = _invoke(*configs, *cluster, "--results", lab.results)
    assert isinstance(result.exception, DpreproError)
    assert str(result.exception).count("no Dask scheduler answers at 'nowhere'") == 1
    assert not list(lab.results.glob("*.jsonl"))
