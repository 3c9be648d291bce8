"""The short form: every 97th allocation up to 2,000 fails, in turn 1, 20 and 200 of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def _environment(**more: str) -> dict[str, str]:
    """Return one in which Python finds the tests here, whatever ran in this process before."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"} | more


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="uses a fork and a file without a name")
def test_memory_that_runs_out_loses_nothing_and_hangs_nothing():
    pytest.importorskip("_testcapi", reason="this Python was built without its test hooks")
    # In a process of its own: forks of one with threads can hang.
    command = [sys.executable, "-m", "tools.campaign.memory", "--runs", "2000", "--step", "97"]
    done = subprocess.run(
        command, env=_environment(), capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if ": {" in line]
    assert [line.partition(":")[0] for line in lines] == ["edit", "write", "append", "register"]
    assert "exit code 2" in lines[0]
    assert {"exit code 2", "exit code 0"} <= set(re.findall("exit code [02]", lines[1]))


ENDS = {
    "raise ValueError('lost')": "exit code 97: said\nraised ValueError: lost",
    "raise SystemExit('no')": "exit code 1",
    "sys.exit()": "exit code 0",
    "raise MemoryError": "exit code 1",
}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="uses a fork and a file without a name")
def test_what_a_command_raises_is_judged(tmp_path: Path):
    pytest.importorskip("_testcapi", reason="this Python was built without its test hooks")
    program = f"""
import json, sys
from tools.campaign import memory

judged = []
for ends in {list(ENDS)}:
    def command(folder):
        print("said", file=sys.stderr)
        exec(ends)

    memory.COMMANDS["append"] = command, lambda folder, done: None
    try:
        judged.append(memory.fail("append", 10**9, 1))
    except memory.LostError as error:
        judged.append(str(error))
print(json.dumps(judged))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=_environment(TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for said, code in zip(json.loads(done.stdout), ENDS.values(), strict=True):
        assert code in said
    assert list(tmp_path.iterdir()) == []
