from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.journal import Journal, read_journal
from dprepro.experiment.plan_record import StatedPlan
from dprepro.experiment.record import Record
from tests.experiment.test_record import TASK
from tests.lab import of_format_1, of_format_2, plan_of

RECORDS = [Record(replace(TASK, split=split), "ok", {"auc": 0.5}) for split in range(4)]
FIRST = {"kind": "environment", "python": "3"}
SECOND = {"kind": "environment", "python": "4"}


def _plan(*records: Record) -> StatedPlan:
    return plan_of(
        {("l", 1.0): [record.task.key for record in records]}, title="t", splits=len(records)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a journal x: a plan, two environments, four records, one of them twice."""
    with Journal(tmp_path / "x.jsonl") as journal:
        for entry in (_plan(*RECORDS), FIRST, RECORDS[0], RECORDS[3], SECOND, *RECORDS[:3]):
            journal.append(entry)
    return tmp_path


def _results(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["results", *map(str, arguments)])


def _row(output: str) -> list[str]:
    (row,) = [line for line in output.splitlines() if line.strip().startswith("x ")]
    return row.split()


def _damage(path: Path) -> bytes:
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b'"split":3', b'"split":7'))
    return raw


def test_a_sound_journal_is_counted(folder: Path) -> None:
    outcome = _results("verify", "--results", folder)
    assert outcome.exit_code == 0
    assert _row(outcome.output) == ["x", "4", "0", "0", "1", "0", "0"]


def test_a_damaged_line_is_named_taken_out_and_kept(folder: Path) -> None:
    path = folder / "x.jsonl"
    raw = _damage(path)
    outcome = _results("verify", "x", "--results", folder)
    assert outcome.exit_code == 1
    assert _row(outcome.output)[1:3] == ["3", "1"]
    assert f"{path}, line 4: damaged: it does not agree with its checksum" in outcome.output
    assert "Tables leave out a last line that a crash has torn" in outcome.output

    outcome = _results("repair", "--results", folder)
    assert outcome.exit_code == 0
    kept = folder / "x.jsonl.bak"
    said = f"{path}: 1 line not as written; the old journal is {kept}; took out 1 line (4)"
    assert said in outcome.output
    command = f"dprepro run PATH/x.yaml --results {folder}"  # no built-in config is called x
    assert f"`{command}` runs what is missing" in outcome.output
    assert b'"split":7' in kept.read_bytes()
    lines = of_format_1(raw).splitlines()
    assert of_format_1(path.read_bytes()).splitlines() == lines[:3] + lines[4:]
    assert _results("verify", "--results", folder).exit_code == 0


@pytest.mark.parametrize("tail", [b'{"kind":"rec', b"\0" * 40 + b"\n", b"garbage\n"])
def test_repair_takes_out_what_was_torn(folder: Path, tail: bytes) -> None:
    path = folder / "x.jsonl"
    raw = path.read_bytes()
    path.write_bytes(raw + tail)
    assert _results("verify", "--results", folder).exit_code == 1
    assert _results("repair", "--results", folder).exit_code == 0
    assert path.read_bytes() == raw
    assert (folder / "x.jsonl.bak").read_bytes() == raw + tail


@pytest.mark.parametrize("old", [of_format_1, of_format_2])
def test_old_lines_are_unprotected_until_a_run_adds_one(
    folder: Path, old: Callable[[bytes], bytes]
) -> None:
    path = folder / "x.jsonl"
    raw = old(path.read_bytes())
    path.write_bytes(raw)
    assert _row(_results("verify", "--results", folder).output)[3] == "8"
    assert "sound" in _results("repair", "--results", folder).output
    assert path.read_bytes() == raw
    with Journal(path) as journal:
        journal.append(FIRST)
    assert _row(_results("verify", "--results", folder).output)[3] == "0"


def test_pruning_leaves_what_tables_show(folder: Path) -> None:
    path = folder / "x.jsonl"
    raw, before = path.read_bytes(), read_journal(path)
    said = _results("prune", "--dry-run", "--results", folder).output
    assert f"{path}: would take out 1 superseded, 0 unasked record(s)" in said
    assert path.read_bytes() == raw
    assert _results("prune", "--results", folder).exit_code == 0
    assert (folder / "x.jsonl.bak").read_bytes() == raw
    assert read_journal(path) == before
    assert path.read_bytes().count(b'"kind":"record"') == 4
    assert "nothing to take out" in _results("prune", "--results", folder).output


def test_pruning_takes_out_what_the_last_plan_does_not_ask_for(folder: Path) -> None:
    path = folder / "x.jsonl"
    with Journal(path) as journal:
        journal.append(_plan(*RECORDS[:3]))
    assert _row(_results("verify", "--results", folder).output)[4:] == ["1", "1", "0"]
    _results("prune", "--results", folder)
    left = read_journal(path)
    assert left.records == RECORDS[:3]
    assert left.environments == [SECOND]  # no record that is left was computed in the first
    assert left.plan == _plan(*RECORDS[:3])


def test_a_damaged_journal_is_not_pruned(folder: Path) -> None:
    _damage(folder / "x.jsonl")
    outcome = _results("prune", "--results", folder)
    assert "line 4: damaged" in str(outcome.exception)
    assert "dprepro results repair x" in str(outcome.exception)


def test_a_journal_that_is_not_there_is_an_error(folder: Path) -> None:
    assert "no journal" in str(_results("repair", "y", "--results", folder).exception)
    assert not (folder / "y.jsonl").exists()
