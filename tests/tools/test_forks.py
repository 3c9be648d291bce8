"""A run in a fork is, for what the campaign judges, as one of a process that starts anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="adopts what loses its parent")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    lab = Lab(folder)
    lab.config()
    lab.config("failing", methods=["raises", "noisy"], splits=1)
    lab.config("unknown", methods=["no-such-method"])
    return folder


def environment(place: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DPREPRO_METHODS": str(place / "methods"),
        "DPREPRO_STATE": str(place / "state"),
        "FIXED": "",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def fresh(place: Path, name: str) -> tuple[int, list[dict[str, Any]]]:
    line = ["run", str(place / f"{name}.yaml"), "--results", str(place / "fresh"), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "dprepro", *line],
        env=environment(place),
        capture_output=True,
        check=False,
    )
    return done.returncode, lines(place / "fresh" / f"{name}.jsonl")


def lines(journal: Path) -> list[dict[str, Any]]:
    """Return all of a journal but times, what follows from them, and the number of processes."""
    raw = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    said = [json.loads(line) for line in raw]
    for line in said:
        for key in ("seconds", "time", "after", "crc32", "jobs"):
            line.pop(key, None)
    return said


@pytest.fixture(scope="module")
def forked(place: Path) -> dict[str, int]:
    """The exit codes of runs in forks of one process, by config."""
    names = ["lab", "failing", "unknown"]
    done = subprocess.run(
        [sys.executable, "-m", "tools.campaign.fork_server", str(place), *names],
        env=environment(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", ["lab", "failing", "unknown"])
def test_a_fork_writes_and_ends_as_a_fresh_process(
    place: Path, forked: dict[str, int], name: str
) -> None:
    code, journal = fresh(place, name)
    assert forked[name] == code
    assert lines(place / "forked" / f"{name}.jsonl") == journal
    assert (len(journal) > 2) == (name != "unknown")


ORPHAN = """
import os, subprocess, sys
from tools.campaign import forks
from tools.campaign.forks import adopt, in_fork, left_by
forks._GONE = 0.3
adopt()
code, session = in_fork(lambda: subprocess.Popen(["sleep", "100"]) and 3)
assert code == 3
assert left_by(session) == ["process sleep 100 "], "an orphan was overlooked"
assert left_by(session) == []
code, session = in_fork(lambda: subprocess.run(["sleep", "100"]).returncode, kill_after=0.2)
assert code == -9
assert left_by(session) == ["process sleep 100 "]
code, session = in_fork(lambda: open(f"/dev/shm/sem.loky-{os.getpid()}-planted", "w") and 0)
name = f"/dev/shm/sem.loky-{session}-planted"
assert left_by(session) == [name], "a name in /dev/shm was overlooked"
assert not os.path.exists(name)
"""


def test_no_orphan_and_no_name_is_overlooked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
