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

from tools.campaign.host import KILLS, OF_FILES, STARTING

ROOT = Path(__file__).parents[2]
KILL = -1
ERRORS = {"fork": (errno.EAGAIN, errno.ENOMEM), "thread": (errno.EAGAIN,)}
"""What a call can fail with, where it is no call about a file."""
Case = tuple[str, str, int | tuple[int, ...], int, bool]
"""How the run starts, the kind of call, its number, the error, and whether all later calls fail.

For kills: the kind of kill, and after how many microseconds each of the runs is killed.
"""
IN_A_ROW = {"random kill": 4, "fresh kill": 1}
"""How often a run is killed, before it may go on to its end."""


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


def kills(number: int, kind: str, microseconds: dict[str, int]) -> list[Case]:
    """Return cases with so many kills at random times, within what a run takes at least.

    A larger number begins with the same kills as a smaller one.
    """
    draw, starts = random.Random(f"{kind} 21"), sorted(microseconds)
    cases: list[Case] = []
    while len(cases) * IN_A_ROW[kind] < number:
        start = starts[len(cases) % len(starts)]
        times = tuple(draw.randrange(1_000, microseconds[start]) for _ in range(IN_A_ROW[kind]))
        cases.append((start, kind, times, 0, False))
    return cases


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
        self.microseconds: dict[str, dict[str, int]] = calm["microseconds"]

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
    folder: Path, root: Path = ROOT, kinds: Sequence[str] = (*OF_FILES, KILLS[0])
) -> Iterator[Campaign]:
    """Yield a campaign in an empty folder, with these kinds of faults of the package in `root`."""
    (folder / "lab").mkdir(parents=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(build(folder)),
        "PYTHONPATH": str(root),
        "DPREPRO_METHODS": str(folder / "lab" / "methods"),
        "DPREPRO_STATE": str(folder / "state"),
        "MENDED": "",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    host = subprocess.Popen(
        [sys.executable, "-m", "tools.campaign.host", str(folder / "lab"), *kinds],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root,
    )  # fmt: skip
    try:
        yield Campaign(host)
    finally:
        host.kill()
        host.communicate()
