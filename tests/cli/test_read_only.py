"""Commands that read work on a folder of results that they may not write."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dprepro.experiment.journal import Journal
from dprepro.experiment.record import Record
from dprepro.runtime.append_only_file import JournalWarning
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.experiment.test_record import TASK
from tests.in_process import in_process
from tests.lab import Lab, lab

__all__ = ["in_process", "lab"]

SCRIPT = """
import json, sys
from typer.testing import CliRunner
from dprepro.cli import app
for arguments in json.load(sys.stdin):
    done = CliRunner().invoke(app, arguments)
    error = "" if done.exception is None else f"{type(done.exception).__name__} {done.exception}"
    print(json.dumps([done.exit_code, done.output, error]))
"""
# The administrator may write everywhere, unless this is taken from him.
AS_OTHERS = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"]


@pytest.fixture
def shut(
    lab: Lab, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Lab, list[object]]]:
    """A laboratory with a journal in a folder in which nobody may write, and how to name it."""
    monkeypatch.setenv("DPREPRO_STATE", str(lab.folder / "state"))
    at = ["--results", lab.results]
    dprepro("run", lab.config(methods=["noisy", "plain"]), "--jobs", 1, *at)
    assert [path.stat().st_mode & 0o777 for path in lab.results.iterdir()] == [0o600]
    (lab.results / "lab.jsonl").chmod(0o444)
    lab.results.chmod(0o555)
    yield lab, at
    lab.results.chmod(0o755)


def _told(lab: Lab, *commands: list[object]) -> list[Any]:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.fail("as the administrator, this test needs setpriv (util-linux)")
    done = subprocess.run(
        [*(AS_OTHERS if os.geteuid() == 0 else []), sys.executable, "-c", SCRIPT],
        input=json.dumps([list(map(str, command)) for command in commands]),
        env=lab.environment, cwd=lab.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_commands_that_read_need_not_write(shut: tuple[Lab, list[object]]) -> None:
    lab, at = shut
    before = (lab.results / "lab.jsonl").read_bytes()
    config, page = lab.folder / "lab.yaml", lab.folder / "page.html"
    figures = lab.folder / "figures"
    commands: dict[str, list[object]] = {
        "run": ["run", config, *at],
        "dry": ["run", config, "--dry-run", *at],
        "table": ["table", *at],
        "compare": ["compare", "noisy", "plain", *at],
        "check": ["check", *at],
        "report": ["report", *at, "--output", page],
        "plot": ["plot", "curves", *at, "--output", figures],
        "verify": ["results", "verify", *at],
        "repair": ["results", "repair", *at],
        "prune": ["results", "prune", *at],
        "more": ["run", lab.config("lab4", splits=4), *at],
        "fresh": ["run", config, "--fresh", *at],
        "record": ["results", "verify", "--record", *at],
    }
    refused = {
        "check": "hold no result for",  # it was read: no document has the lab's data
        "more": "Permission denied",
        "fresh": "Permission denied",
        "record": "SHA256SUMS: Permission denied",
    }
    told = dict(zip(commands, _told(lab, *commands.values()), strict=True))
    for name, (code, output, error) in told.items():
        if name in refused:
            assert error.startswith("DpreproError"), (name, error)
            assert refused[name] in error
        else:
            assert (code, error) == (0, ""), (name, output)
            assert "Warning" not in output, name
    assert told["run"][1].count("noisy") == 1  # its table
    assert "0 task(s) run" in told["run"][1]
    assert "1 to run" not in told["more"][1]  # no task began
    assert "sound" in told["repair"][1]
    assert [path.name for path in lab.results.iterdir()] == ["lab.jsonl"]
    assert (lab.results / "lab.jsonl").read_bytes() == before
    for path in (page, *figures.iterdir()):  # the lab's rows are private
        assert path.stat().st_mode & 0o777 == 0o600, path


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_journal_that_cannot_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path, real = tmp_path / "x.jsonl", os.open
    record = Record(TASK, "skipped", message="x")
    with Journal(path) as journal:
        journal.append(record)
    torn = path.read_bytes() + b"torn"
    path.write_bytes(torn)

    def refuse(name: Any, flags: int, *mode: int, **more: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(number, os.strerror(number))
        return real(name, flags, *mode, **more)

    monkeypatch.setattr(os, "open", refuse)
    said = f"x.jsonl: cannot be written: {os.strerror(number)}"
    with pytest.warns(JournalWarning, match="torn"):
        journal = Journal(path).__enter__()
    assert journal.is_read_only
    assert journal.content == torn[:-4]
    for write in (
        journal.ask_to_write,
        lambda: journal.append(record),
        lambda: journal.replace(b""),
        lambda: journal.keep(b"", "bak"),
        Journal(path, fresh=True).__enter__,
        Journal(tmp_path / "other" / ".." / "y.jsonl").__enter__,
    ):
        with pytest.raises(DpreproError, match=said.replace("x.jsonl", "[xy].jsonl")):
            write()
    journal.__exit__(None, None, None)
    assert [place.name for place in tmp_path.glob("*.jsonl*")] == ["x.jsonl"]
    assert path.read_bytes() == torn
