from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import pytest
import threadpoolctl

from dprepro import __version__
from dprepro.experiment import environment
from dprepro.experiment.environment import _cpu_model, _git, describe, git_state, versions


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


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that the package seems to lie in, with two tracked files."""
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "a" / "b" / "environment.py"))
    for name in ("file", "x.jsonl"):
        (tmp_path / name).write_text("x")
    return tmp_path


def commit(folder: Path) -> str:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "file", "x.jsonl"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return _git(folder, "rev-parse", "HEAD").strip()


def test_the_commit_is_named_in_a_checkout(checkout: Path) -> None:
    assert git_state() is None
    named = commit(checkout)
    (checkout / "untracked").write_text("x")
    assert describe("", jobs=1)["git"] == {"commit": named, "dirty": False}
    (checkout / "x.jsonl").write_text("a journal grows")
    assert git_state() == {"commit": named, "dirty": False}
    (checkout / "file").write_text("changed")
    assert git_state() == {"commit": named, "dirty": True}


def test_a_checkout_without_a_commit_has_no_state(checkout: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    assert git_state() is None


def test_the_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Path, "read_text", lambda *_, **__: "processor : 0\nmodel name\t: One: Two \n"
    )
    assert _cpu_model() == "One: Two"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "processor : 0\n")
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert _cpu_model() == "arm64"
    monkeypatch.setattr(platform, "processor", lambda: "a processor")
    assert _cpu_model() == "a processor"


def test_kernels_of_linear_algebra_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = [
        {"internal_api": "openblas", "architecture": "Zen"},
        {"internal_api": "openmp"},
        {"internal_api": "mkl"},
        {"internal_api": "openblas", "architecture": "Zen"},
    ]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: loaded)
    assert describe("", jobs=1)["blas"] == ["mkl", "openblas Zen"]


def test_a_library_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "LIBRARIES", ("no-such-library", "numpy"))
    assert describe("", jobs=1)["libraries"] == {"numpy": metadata.version("numpy")}


def test_versions_are_those_that_the_journal_names() -> None:
    line = describe("", jobs=1)
    found = versions()
    assert found.pop("python") == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found.pop("dprepro") == line["dprepro"]
    assert found == line["libraries"]


def test_asking_git_leaves_its_index_alone(tmp_path: Path) -> None:
    """A run that is killed while it asks must not leave a lock in the user's checkout."""
    for name in ("file", "x.jsonl"):
        (tmp_path / name).write_text("x")
    commit(tmp_path)
    index = (tmp_path / ".git" / "index").read_bytes()
    os.utime(tmp_path / "file", (1e9, 1e9))  # git would note the new time if it could
    assert _git(tmp_path, "status", "--porcelain") == ""
    assert (tmp_path / ".git" / "index").read_bytes() == index
