"""The short form: every 97th allocation up to 2,000 fails, in turn 1, 20 and 200 of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="uses a fork and a file without a name")
def test_memory_that_runs_out_loses_nothing_and_hangs_nothing():
    pytest.importorskip("_testcapi", reason="this Python was built without its test hooks")
    # In a process of its own: forks of one with threads can hang.
    command = [sys.executable, "-m", "tests.campaign.memory", "--runs", "2000", "--step", "97"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if ": {" in line]
    assert [line.partition(":")[0] for line in lines] == ["edit", "append", "register"]
    assert "exit code 2" in lines[0]
