from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.journal import Journal
from dprepro.experiment.maintenance import NAME, Sum, difference, read_sums, unrecorded, write_sums
from dprepro.experiment.record import Record
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_record import TASK
from tests.lab import of_format_1

RESULTS = Path(__file__).parents[2] / "results"
RECORDS = [Record(replace(TASK, split=split), "ok", {"auc": 0.5}) for split in range(4)]


def test_every_committed_file_is_as_it_was_recorded() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "."], cwd=RESULTS, capture_output=True, text=True, check=True
    )
    committed = set(listed.stdout.split("\0")) - {"", NAME}
    sums = read_sums(RESULTS)
    record = "`dprepro results verify --record` records what is meant to have changed"
    assert committed == set(sums), record
    assert len([name for name in committed if name.endswith(".parquet")]) > 300
    differ = {name: difference(RESULTS / name, told) for name, told in sums.items()}
    assert {name: said for name, said in differ.items() if said != ("", 0)} == {}, record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Journals of an earlier version, one of them in a subfolder, and other files."""
    (tmp_path / "history").mkdir()
    for name in ("x.jsonl", "history/y.jsonl"):
        with Journal(tmp_path / name) as journal:
            for record in RECORDS:
                journal.append(record)
        path = tmp_path / name
        path.write_bytes(of_format_1(path.read_bytes()))
    (tmp_path / "verdicts.csv").write_text("a,b\n")
    for name in ("x.jsonl.bak", "x.jsonl.bak1", ".x.jsonl.new", "state.lock"):
        (tmp_path / name).write_text("not of the results")
    return tmp_path


def _verify(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["results", "verify", *map(str, arguments)])


def _append(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(RECORDS[0])


def test_all_files_are_recorded_as_sha256sum_writes_them(folder: Path) -> None:
    outcome = _verify("--results", folder, "--record")
    assert outcome.exit_code == 0
    assert f"{folder / NAME}: 3 files" in outcome.output
    assert list(read_sums(folder)) == ["history/y.jsonl", "verdicts.csv", "x.jsonl"]
    assert read_sums(folder)["x.jsonl"].lines == 4
    assert read_sums(folder)["verdicts.csv"].lines is None
    if tool := shutil.which("sha256sum"):
        done = subprocess.run([tool, "--strict", "-c", NAME], cwd=folder, check=False)
        assert done.returncode == 0


def test_what_differs_is_said_of_each_file(folder: Path) -> None:
    write_sums(folder)
    lines = (folder / "x.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "x.jsonl").write_bytes(b"".join(lines[1:]))
    old = (folder / "history" / "y.jsonl").read_bytes()
    (folder / "history" / "y.jsonl").write_bytes(old.replace(b"0.5", b"0.6", 1))
    (folder / "verdicts.csv").unlink()
    (folder / "new.csv").write_text("")
    outcome = _verify("--results", folder)
    assert outcome.exit_code == 1
    for name, said in (
        ("x.jsonl", "1 line fewer than recorded"),
        ("history/y.jsonl", "as many lines as recorded, and some of them changed"),
        ("verdicts.csv", "the file is not there"),
    ):
        assert f"{folder / name}, compared with SHA256SUMS: {said}" in outcome.output
    assert "`git diff` shows what changed" in outcome.output
    assert "repair" not in outcome.output  # it cannot help
    (folder / "verdicts.csv").write_text("c")
    said = difference(folder / "verdicts.csv", read_sums(folder)["verdicts.csv"])[0]
    assert said == "it is another file than the one recorded"


def test_one_journal_is_compared_alone(folder: Path) -> None:
    write_sums(folder)
    (folder / "verdicts.csv").unlink()
    outcome = _verify("x", "--results", folder)
    assert outcome.exit_code == 0
    row = [line.split() for line in outcome.output.splitlines() if line.strip().startswith("x ")]
    assert row == [["x", "4", "0", "0", "0", "0", "0"]]  # its lines are protected


def test_lines_that_a_run_added_are_no_damage(folder: Path) -> None:
    write_sums(folder)
    (folder / "added.csv").write_text("a")
    _append(folder / "x.jsonl")
    outcome = _verify("--results", folder)
    assert outcome.exit_code == 0
    assert f"{folder / 'x.jsonl'}: 2 lines since it was recorded" in outcome.output
    assert "Not in SHA256SUMS: added.csv. `--record` adds them" in outcome.output
    assert unrecorded(folder, read_sums(folder)) == ["added.csv"]


def test_lines_that_no_run_added_are_damage(folder: Path) -> None:
    write_sums(folder)
    told = read_sums(folder)["x.jsonl"]
    path = folder / "x.jsonl"
    raw = path.read_bytes()
    path.write_bytes(raw + raw.splitlines(keepends=True)[0])
    assert difference(path, told) == ("1 line more than recorded", 0)
    path.write_bytes(raw)
    _append(path)
    *before, added, end = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*before, end, added]))
    assert difference(path, told) == ("2 lines more than recorded", 0)


def test_nothing_is_recorded_while_a_line_is_damaged(folder: Path) -> None:
    _append(folder / "x.jsonl")
    path = folder / "x.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    outcome = _verify("--results", folder, "--record")
    assert outcome.exit_code == 1
    assert f"{path}, line 4: it is not what was written after the line before" in outcome.output
    assert not (folder / NAME).exists()
    outcome = _verify("x", "--results", folder, "--record")
    assert isinstance(outcome.exception, DpreproError)
    assert "--record is of the whole folder" in str(outcome.exception)


def test_a_line_that_is_no_digest_is_named(folder: Path) -> None:
    sums = write_sums(folder)
    assert sums["x.jsonl"] == Sum.of(folder / "x.jsonl", (folder / "x.jsonl").read_bytes())
    with (folder / NAME).open("a") as file:
        file.write("garbage\n")
    with pytest.raises(DpreproError, match=rf"{NAME}, line \d+: not a digest and a name"):
        read_sums(folder)
