from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

from dprepro import __version__
from dprepro.experiment.environment import _git, describe, versions


def test_the_line_says_what_the_run_ran_on_and_with() -> None:
    line = describe("title: x\n", jobs=3)
    assert line["kind"] == "environment"
    assert line["dprepro"] == __version__
    assert line["python"] == platform.python_version()
    assert line["libraries"]["numpy"] == metadata.version("numpy")
    assert line["config_sha256"] == hashlib.sha256(b"title: x\n").hexdigest()
    assert line["jobs"] == 3
    assert line["cpu"]
    assert json.loads(json.dumps(line, allow_nan=False)) == line


def test_the_time_is_utc() -> None:
    time = datetime.fromisoformat(describe("", jobs=1)["time"])
    assert abs((datetime.now(timezone.utc) - time).total_seconds()) < 60


def test_the_commit_is_named_in_a_checkout() -> None:
    git = describe("", jobs=1)["git"]
    assert git is None or (len(git["commit"]) == 40 and isinstance(git["dirty"], bool))


def test_versions_are_those_that_the_journal_names() -> None:
    line = describe("", jobs=1)
    found = versions()
    assert line["python"].startswith(found.pop("python") + ".")
    assert found.pop("dprepro") == line["dprepro"]
    assert found == line["libraries"]


def test_asking_git_leaves_its_index_alone(tmp_path: Path) -> None:
    """A run that is killed while it asks must not leave a lock in the user's checkout."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    (tmp_path / "file").write_text("x")
    for command in (["init", "-q"], ["add", "file"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    index = (tmp_path / ".git" / "index").read_bytes()
    os.utime(tmp_path / "file", (1e9, 1e9))  # git would note the new time if it could
    assert _git(tmp_path, "status", "--porcelain") == ""
    assert (tmp_path / ".git" / "index").read_bytes() == index
