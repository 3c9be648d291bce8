"""Which faults there are, and what came of them."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.campaign.host import OF_FILES, STARTING

ROOT = Path(__file__).parents[2]
KILL = -1
ERRORS = {"fork": (errno.EAGAIN, errno.ENOMEM), "thread": (errno.EAGAIN,)}
"""What a call can fail with, where it is no call about a file."""
Case = tuple[str, str, int, int, bool]
"""How the run starts, the kind of call, its number, the error, and whether all later calls fail."""


def faults(counts: dict[str, dict[str, int]]) -> Iterator[Case]:
    """Yield every fault of runs that make so many calls of each kind, by how they start."""
    calls = [
        (start, kind, number) for start, kinds in counts.items() for kind, number in kinds.items()
    ]
    for start, kind, number in calls:
        for place in range(1, number + 1):
            for error in ERRORS.get(kind, (errno.ENOSPC, errno.EIO)):
                yield start, kind, place, error, False
                yield start, kind, place, error, True
            if kind not in STARTING:
                yield start, kind, place, errno.EINTR, False
            yield start, kind, place, KILL, False


def kills(number: int, microseconds: dict[str, int]) -> list[Case]:
    """Return kills at random times: up to half as long again as an undisturbed run takes.

    A larger number begins with the same kills as a smaller one.
    """
    draw, starts = random.Random(21), sorted(microseconds)
    found: dict[Case, None] = {}
    while len(found) < number:
        start = starts[len(found) % len(starts)]
        found[
            start, "kill_after", draw.randrange(1_000, microseconds[start] * 3 // 2), 0, False
        ] = None
    return list(found)


def build(folder: Path) -> Path:
    """Compile the shim. CalledProcessError: there is no compiler."""
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True
    )
    return library


class Campaign:
    """A host, and what it says of a run that nothing disturbs."""

    def __init__(self, host: subprocess.Popen[str]) -> None:
        self._host = host
        calm = self._answer()
        self.calls: dict[str, dict[str, int]] = calm["calls"]
        self.microseconds: dict[str, int] = calm["microseconds"]

    def run(self, cases: Iterable[Case]) -> Iterator[tuple[Case, dict[str, Any]]]:
        """Try cases, one after the other; yield each with the answer of the host."""
        assert self._host.stdin is not None
        for case in cases:
            self._host.stdin.write(json.dumps(case) + "\n")
            self._host.stdin.flush()
            yield case, self._answer()

    def _answer(self) -> Any:
        assert self._host.stdout is not None
        line = self._host.stdout.readline()
        assert line, "the host has died"
        return json.loads(line)


@contextmanager
def campaign(
    folder: Path, root: Path = ROOT, kinds: Sequence[str] = OF_FILES
) -> Iterator[Campaign]:
    """Yield a campaign in an empty folder, with these kinds of calls of the package in `root`."""
    (folder / "lab").mkdir(parents=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(build(folder)),
        "PYTHONPATH": str(root),
        "DPREPRO_METHODS": str(folder / "lab" / "methods"),
        "DPREPRO_STATE": str(folder / "state"),
        "MENDED": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    host = subprocess.Popen(
        [sys.executable, "-m", "tests.campaign.host", str(folder / "lab"), *kinds],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root,
    )  # fmt: skip
    try:
        yield Campaign(host)
    finally:
        host.kill()
        host.communicate()
