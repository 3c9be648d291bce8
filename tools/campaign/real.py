"""Kills of runs with real methods, on this machine and on a Dask cluster.

    python -m tools.campaign.real [--record FILE] [--kills N] [--only KIND ...]

A run trains three private methods on a real dataset, in two processes. It is killed at a random
time, or one of its workers is, four times in all; then the same command may go on to its end. Runs
find the compiled kernels as they were left ("warm"), none ("cold"), those of other versions and
half of a file ("stale"), or damaged ones. With --record the campaign can be killed, too: the same
command goes on, and its table is of all kills.

What is held against a chain of kills: as in tools/campaign/host.py, the journal; and 5 s after a
run has ended, none of its processes is there.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.experiment.cluster import Cluster
from tools.campaign.cases import Case
from tools.campaign.host import essence, whole_lines
from tools.campaign.real_runs import HANGS, Place, processes_of, started_from
from tools.campaign.tried import Tried, fingerprint, options, report, tell

KINDS = {"runner": 5, "worker": 2, "dask runner": 2, "dask worker": 1}
"""What is killed, and how many of ten chains kill it."""
STATES = {"warm": 7, "cold": 1, "stale": 1, "damaged": 1}
"""How kernels are found, and in how many of ten chains."""
IN_A_ROW = 4
"""How often a run is killed, before it may go on to its end."""
WORKERS = 2


def chains(number: int, seconds: dict[str, float]) -> Iterator[Case]:
    """Yield chains with so many kills in all, at times within what a run takes.

    A larger number begins with the same kills as a smaller one.

    Parameters
    ----------
    number
        How many kills.
    seconds
        How long an undisturbed run takes, by state.
    """
    draw = random.Random("real 21")
    for _ in range(-(-number // IN_A_ROW)):
        kind = draw.choices([*KINDS], [*KINDS.values()])[0]
        state = draw.choices([*STATES], [*STATES.values()])[0]
        longest = int(seconds[state] * 1e6)
        times = tuple(draw.randrange(300_000, longest) for _ in range(IN_A_ROW))
        yield state, kind, times, 0, False


class Chain:
    """One chain of kills in a place."""

    def __init__(self, place: Place, kind: str, cluster: Cluster | None) -> None:
        self._place, self._kind, self._cluster = place, kind, cluster
        self._more = ["--jobs", "2"]
        if kind.startswith("dask"):
            assert cluster is not None
            self._more = ["--executor", "dask", "--address", cluster.address]

    def tried(self, state: str, times: Sequence[int]) -> dict[str, Any]:
        """Kill a run, and the same command, after so many microseconds each; then let it end."""
        place = self._place
        place.begin(state)
        codes: list[int] = []
        self._met = 0
        wrong: set[str] = set()
        stays: list[str] = []
        known: dict[str, Any] = {}
        for microseconds in times:
            if codes and codes[-1] == 0:
                wrong |= place.ended()
                stays += place.other_files()
                place.begin_journal()
                known = {}
            code, left = place.run(self._more, partial(self._kill, microseconds))
            codes.append(code)
            stays += left
            try:
                there, _ = essence(whole_lines(place.journal))
            except ValueError:
                there = {}
            if not known.items() <= there.items():
                wrong.add("lost")  # what had been on the disk before
            known = there
        again, left = place.run(self._more)
        wrong |= place.ended()
        stays += [*left, *place.other_files(), *self._stays_on_cluster()]
        return self._judged([*codes, again], wrong, stays)

    def _kill(self, microseconds: int, runner: int) -> None:
        end = time.monotonic() + microseconds / 1e6
        while not _ended(runner) and time.monotonic() < end:
            time.sleep(0.01)
        victims = [runner] if self._kind.endswith("runner") else self._workers(runner)
        if victims and not _ended(runner):
            with suppress(ProcessLookupError):
                os.kill(victims[microseconds % len(victims)], signal.SIGKILL)
                self._met += 1

    def _workers(self, runner: int) -> list[int]:
        if self._cluster is not None and self._kind == "dask worker":
            return self._cluster.pids()
        return [p.pid for p in processes_of(runner) if "LokyProcess" in " ".join(p.cmdline())]

    def _stays_on_cluster(self) -> list[str]:
        """Return the processes of runs on the cluster if they are more than those of one run."""
        end = time.monotonic() + 5.0
        while True:
            found = [line for line in started_from(self._place) if "LokyProcess" in line]
            if len(found) <= WORKERS:
                return []
            if time.monotonic() > end:
                return found
            time.sleep(0.2)

    def _judged(self, codes: list[int], wrong: set[str], stays: list[str]) -> dict[str, Any]:
        text = self._place.said()
        if HANGS in codes:
            wrong.add("hangs")
        if "Traceback" in text or "internal error" in text:
            wrong.add("tracebacks")
        if codes[-1] != 0 or not {*codes} <= {0, -signal.SIGKILL, HANGS}:
            wrong.add("not resumed")
        if stays:
            wrong.add("left over")
        said = f"{text[-1500:]} {stays}" if wrong else ""
        return {"codes": codes[:-1], "met": self._met, "wrong": sorted(wrong), "said": said}


def _ended(child: int) -> bool:
    """Whether a child of this process has ended; somebody else waits for it."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


@contextmanager
def cluster_of(place: Place) -> Iterator[Cluster]:
    """Yield a cluster of two workers; nothing of it is left when it has ended.

    RuntimeError: something is.
    """
    folder = place.folder / "cluster"
    folder.mkdir()
    with Cluster(folder, place.environment | {"TMPDIR": str(folder)}) as cluster:
        cluster.add_workers(WORKERS)
        yield cluster
    end = time.monotonic() + 5.0
    while (left := started_from(place)) and time.monotonic() < end:
        time.sleep(0.1)
    if left:
        raise RuntimeError(f"the cluster left {left}")


def main() -> int:
    """Try the chains, print a table, and return 1 if anything went wrong."""
    parser = options(__doc__, kills=500)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=tuple(KINDS))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Place(Path(folder), asked.root)
        place.look()
        tried = Tried(asked.record, fingerprint(asked.root), {"seconds": place.seconds})
        cases = list(chains(asked.kills, tried.head["seconds"]))
        cases = [case for case in cases if case[1] in asked.only]
        left = [case for case in cases if case not in tried.answers]
        on_cluster = any(case[1].startswith("dask") for case in left)
        cluster = stack.enter_context(cluster_of(place)) if on_cluster else None
        begun = time.monotonic()
        for done, case in enumerate(left, start=1):
            state, kind, times, *_ = case
            assert isinstance(times, tuple)
            tried.add(case, Chain(place, kind, cluster).tried(state, times))
            tell(len(cases) - len(left) + done, len(cases), (time.monotonic() - begun) / done)
    return report(tried)


if __name__ == "__main__":
    sys.exit(main())
