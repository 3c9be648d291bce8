from __future__ import annotations

import hashlib
import json
import platform
from datetime import datetime, timezone
from importlib import metadata

from dprepro import __version__
from dprepro.experiment.environment import describe


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
