"""A process that makes one small run after the other, each in a fork, with faults in each.

    LD_PRELOAD=shim.so python -m tools.campaign.host FOLDER KIND ...

It has loaded all that a run loads, and the command line is built; nothing has run in it. First it
says how many calls of each kind a run makes, and how long one takes. Then each line of standard
input is a case: the JSON list of start, kind, number, error and whether it stays. A run starts
without a journal ("new"), or with half of one that version 0.1.0 wrote ("old"). The answer is a
line of JSON.

A case with a kind of call is one run with the fault, then the same command without it. One of
`KILLS` has a list of microseconds in place of the number: the run is killed after the first, the
same command after the second, and so on, and then it runs to its end. A run that ends before its
kill is looked at, and the next starts as the first did.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tools.campaign.forks import HANGS, adopt, in_fork, left_by, load_what_it_loads, redirect

KINDS = ("open", "write", "fsync", "rename", "fork", "thread")
"""In the order of the shim."""
OF_FILES, STARTING = KINDS[:4], KINDS[4:]
"""What is tried in runs with two worker processes; all else in runs that are one process."""
KILLS = ("random kill", "fresh kill")
"""The second kind starts Python anew, with a worker process; its last run is a fork, too."""
STARTS = ("new", "old")
READ_NOTHING = re.compile(
    r"LokyProcess-\d+ failed with traceback: \n-+\nTraceback.*?EOFError: Ran out of input\n", re.S
)
"""What loky says in a worker whose runner was killed before it sent the worker anything."""


class Here:
    """Runs calls in this process, those that the machine stopped three times, as slots do."""

    def __init__(self, jobs: int, *_: Any, **__: Any) -> None:
        self.jobs = jobs

    def submit(self, fn: Any, /, *args: Any, affinity: Any = None) -> Future[Any]:
        future: Future[Any] = Future()
        for attempt in range(3):
            try:
                future.set_result(fn(*args))
                break
            except Exception as error:
                if type(error).__name__ != "MachineFaultError" or attempt == 2:
                    future.set_exception(error)
                    break
        return future

    def close(self) -> None: ...

    def kill(self) -> None: ...


def whole_lines(journal: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal that end; none if there is no journal."""
    try:
        lines = journal.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def essence(lines: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return the records by key, in order and without what differs between runs.

    And whether one is doubled.
    """
    from dprepro.experiment.record import OF_THE_LINE

    records = [line for line in lines if line["kind"] == "record"]
    found = {
        line["key"]: {k: v for k, v in line.items() if k not in ("seconds", *OF_THE_LINE)}
        for line in records
    }
    return found, len(found) < len(records)


def command(*arguments: object) -> int:
    """Run the command line here; return its exit code."""
    from dprepro.cli import main

    sys.argv = ["dprepro", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


class Host:
    """The lab, what an undisturbed run comes to, and how to disturb one."""

    def __init__(self, folder: Path) -> None:
        from dprepro.experiment import environment, local
        from dprepro.experiment import run as run_module
        from tests.lab import Lab, of_format_1

        adopt()
        self.folder, self.output = folder, folder / "output.txt"
        self.shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self.shim.fault_count.restype = ctypes.c_long
        self.config = Lab(folder).config(methods=["noisy", "plain"], splits=2)
        self._environment, self._run = environment, run_module
        self._real = run_module.LocalExecutor, environment.git_state
        run_module.LocalExecutor = Here  # type: ignore[misc,assignment]
        local.start_ahead = lambda *given: None  # a fork has no processes but its own
        environment.git_state = lambda: None  # two processes a run, each time the same
        calm = folder / "calm"
        calm.mkdir()
        assert load_what_it_loads(lambda: self._command(calm), folder / "modules") == 0
        self._look_at_machine()
        journal = calm / "results" / "lab.jsonl"
        self.expected, _ = essence(whole_lines(journal))
        assert len(self.expected) == 6
        self.half_of_old = of_format_1(b"".join(journal.read_bytes().splitlines(True)[:5]))
        self._known = {
            "new": {},
            "old": essence([json.loads(line) for line in self.half_of_old.splitlines()])[0],
        }

    def _look_at_machine(self) -> None:
        """Find out once what each run asks of this machine and its installation."""
        import typer.main

        from dprepro.cli import app
        from dprepro.runtime.kernels import kernel_modules

        typer.main.get_command = functools.cache(typer.main.get_command)
        typer.main.get_command(app)
        kernel_modules()
        platform.platform()
        names = ("_library_versions", "_blas_kernels")
        self._machine = {name: getattr(self._environment, name)() for name in names}

    def counts(self, start: str, kinds: Sequence[str]) -> dict[str, int]:
        """Return how many calls of each kind a run makes; workers start in new runs alone."""
        found: dict[str, int] = {}
        for kind in kinds if start == "new" else [k for k in kinds if k not in STARTING]:
            place, path = self._begin(start), self.folder / f"count-{kind}"

            def job(path: Path = path, place: Path = place, kind: str = kind) -> int:
                code = self._disturbed(place, kind, 0, 0, False)
                path.write_text(str(self.shim.fault_count(KINDS.index(kind))), encoding="utf-8")
                return code

            code, session = in_fork(job)
            assert code == 0, (code, self.output.read_text())
            left_by(session)
            found[kind] = int(path.read_text())
        return found

    def microseconds(self, start: str, kind: str) -> int:
        """Return how long an undisturbed run takes."""
        place = self._begin(start)
        began = time.monotonic()
        code, session = in_fork(self._killed_later(place, kind))
        took = int((time.monotonic() - began) * 1e6)
        assert code == 0, self.output.read_text()
        assert not left_by(session)
        return took

    def _begin(self, start: str) -> Path:
        """Return the empty folder of a case, with the journal that its run finds."""
        place = self.folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        (place / "tmp").mkdir(parents=True)
        if start == "old":
            (place / "results").mkdir()
            (place / "results" / "lab.jsonl").write_bytes(self.half_of_old)
        return place

    def _command(self, place: Path, fault: tuple[str, int, int, bool] | None = None) -> int:
        redirect(self.output)
        os.environ["TMPDIR"] = tempfile.tempdir = str(place / "tmp")
        if fault is not None:
            kind, *rest = fault
            self.shim.fault_arm(KINDS.index(kind), *rest)
        return command("run", self.config, "--results", place / "results", "--jobs", 2)

    def _disturbed(self, place: Path, kind: str, number: int, error: int, for_good: bool) -> int:
        if kind in STARTING:
            self._run.LocalExecutor, self._environment.git_state = self._real
        code = self._command(place, (kind, number, error, for_good))
        if kind in STARTING:
            atexit._run_exitfuncs()  # as a process that is no fork: loky deletes its semaphores
        return code

    def _killed_later(self, place: Path, kind: str) -> Callable[[], int]:
        """Return the run that is to be killed."""

        def quick() -> int:
            for name, value in self._machine.items():
                setattr(self._environment, name, lambda value=value: value)
            return self._command(place)

        def fresh() -> int:
            redirect(self.output)
            arguments = ("run", self.config, "--results", place / "results", "--jobs", 1)
            environment = {**os.environ, "TMPDIR": str(place / "tmp"), "LD_PRELOAD": ""}
            line = [sys.executable, "-m", "dprepro", *map(str, arguments)]
            os.execve(sys.executable, line, environment)

        return fresh if kind == "fresh kill" else quick

    def case(
        self, start: str, kind: str, number: Any, error: int, for_good: bool
    ) -> dict[str, Any]:
        """Try a case; return what went wrong, and the exit codes of the disturbed runs."""
        self.output.unlink(missing_ok=True)
        place = self._begin(start)
        if kind in KILLS:
            codes, wrong, stays = self._kill(place, start, kind, number)
        else:
            code, session = in_fork(lambda: self._disturbed(place, kind, number, error, for_good))
            codes, wrong, stays = [code], set(), left_by(session)
        again, session = in_fork(lambda: self._command(place))
        stays += left_by(session)
        ended, left = self._ended(place, in_order=kind in KILLS)
        return self._judged(codes, again, wrong | ended, stays, left)

    def _kill(
        self, place: Path, start: str, kind: str, times: Sequence[int]
    ) -> tuple[list[int], set[str], list[str]]:
        """Kill one run after the other; return exit codes, what was lost, and what is left."""
        journal, known = place / "results" / "lab.jsonl", self._known[start]
        codes: list[int] = []
        wrong: set[str] = set()
        stays: list[str] = []
        for microseconds in times:
            if codes and codes[-1] == 0:
                ended, left = self._ended(place, in_order=True)
                wrong |= ended
                stays += left
                self._begin(start)
                known = self._known[start]
            code, session = in_fork(self._killed_later(place, kind), microseconds / 1e6)
            codes.append(code)
            stays += left_by(session)
            try:
                there, _ = essence(whole_lines(journal))
            except ValueError:
                there = {}
            if not known.items() <= there.items():
                wrong.add("lost")  # what had been on the disk before
            known = there
        return codes, wrong, stays

    def _ended(self, place: Path, in_order: bool) -> tuple[set[str], list[str]]:
        """Return what is wrong with the journal of a run that ended well, and other files."""
        from dprepro.experiment.maintenance import examine
        from dprepro.runtime.errors import DpreproError

        wrong, journal = set(), place / "results" / "lab.jsonl"
        try:
            found, doubled = essence(whole_lines(journal))
            if examine(journal).problems:
                wrong.add("different")
        except (ValueError, DpreproError):
            found, doubled = {}, False
        if found.keys() != self.expected.keys():
            wrong.add("lost")
        elif found != self.expected or (in_order and list(found) != list(self.expected)):
            wrong.add("different")
        if doubled:
            wrong.add("doubled")
        found_files = [*(place / "results").glob("*"), *(place / "tmp").iterdir()]
        mine = ("lab.jsonl", "lab.jsonl.lock")
        return wrong, [str(path) for path in found_files if path.name not in mine]

    def _judged(
        self, codes: list[int], again: int, wrong: set[str], stays: list[str], left: list[str]
    ) -> dict[str, Any]:
        text = self.output.read_text(errors="replace") if self.output.exists() else ""
        if -signal.SIGKILL in codes:
            text = READ_NOTHING.sub("", text)
            # loky names a semaphore before it says whose it is.
            stays = [what for what in stays if not what.startswith("/dev/shm")]
        if HANGS in (*codes, again):
            wrong.add("hangs")
        if "Traceback" in text or "internal error" in text or {70, 98} & set(codes):
            wrong.add("tracebacks")
        if again != 0:
            wrong.add("not resumed")
        if stays or left:
            wrong.add("left over")
        said = f"{text[-1500:]} {[*stays, *left]}" if wrong else ""
        return {"codes": codes, "wrong": sorted(wrong), "said": said}


def main() -> None:
    """Answer cases until standard input ends."""
    folder, *kinds = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    host = Host(Path(folder))
    calls = {start: host.counts(start, [k for k in KINDS if k in kinds]) for start in STARTS}
    took = {
        kind: {start: min(host.microseconds(start, kind) for _ in range(runs)) for start in STARTS}
        for kind, runs in zip(KILLS, (5, 1), strict=True)
        if kind in kinds
    }
    print(json.dumps({"calls": calls, "microseconds": took}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(host.case(*json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
