"""A process that makes one small run after the other, each in a fork, with one fault in each.

    LD_PRELOAD=shim.so python -m tests.campaign.host FOLDER KIND ...

All is imported once, and the command line is built once. First the host says how many calls of each
kind a run makes, and how long one takes. Then each line of standard input is a case: the JSON list
of start, kind, number, error and whether it stays. A run starts without a journal ("new"), or with
half of one that version 0.1.0 wrote ("old"). The answer is a line of JSON. `kill_after` as the kind
kills the run after `number` microseconds. A case is one run with the fault, then the same command
without it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import json
import os
import re
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

KINDS = ("open", "write", "fsync", "rename", "fork", "thread")
"""In the order of the shim."""
OF_FILES, STARTING = KINDS[:4], KINDS[4:]
"""What is tried in runs with two worker processes; all else in runs that are one process."""
STARTS = ("new", "old")
_LIMIT = 200.0
"""Seconds after which a run hangs: on a busy machine the start of a worker takes up to 40."""
_READ_NOTHING = re.compile(
    r"LokyProcess-\d+ failed with traceback: \n-+\nTraceback.*?EOFError: Ran out of input\n", re.S
)
"""What loky says in a worker whose runner was killed before it sent the worker anything."""
_GONE = 5.0
"""Seconds after which nothing that a run started may be left."""


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


def essence(journal: Path) -> dict[str, Any]:
    """Return the records by key, without what differs between runs; and how many are doubled."""
    found: dict[str, Any] = {}
    doubled = 0
    for line in journal.read_bytes().splitlines():
        record = json.loads(line)
        if record["kind"] == "record":
            doubled += record["key"] in found
            kept = {k: v for k, v in record.items() if k not in ("seconds", "format", "crc32")}
            found[record["key"]] = kept
    return {"records": found, "doubled": doubled}


def redirect(output: Path) -> None:
    """Let all that this process prints go to a file."""
    number = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(number, 1)
    os.dup2(number, 2)


def command(config: Path, results: Path) -> int:
    """Run the command line here; return its exit code."""
    from dprepro.cli import main

    sys.argv = ["dprepro", "run", str(config), "--results", str(results), "--jobs", "2"]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def in_fork(job: Callable[[], int], kill_after: float | None = None) -> tuple[int, int]:
    """Run `job` in a fork, which leads a session of its own.

    Returns
    -------
    code
        Its exit code, the negative of a signal, or 99 if it hangs.
    session
        The number of its session.
    """
    child = os.fork()
    if child == 0:
        code = 98
        try:
            os.setsid()
            code = job()
        except Exception:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + _LIMIT
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), child
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 99, child


def left_by(session: int) -> list[str]:
    """Return what a session has left after some seconds: processes, and names in /dev/shm.

    The processes are ended, and the names deleted.
    """
    end = time.monotonic() + _GONE
    while (processes := _processes(session)) and time.monotonic() < end:
        time.sleep(0.05)
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    shared = list(Path("/dev/shm").glob(f"*loky-{session}-*"))
    for path in shared:
        path.unlink(missing_ok=True)
    return [*(f"process {name}" for name in processes.values()), *map(str, shared)]


def _processes(session: int) -> dict[int, str]:
    """Return the command lines of the processes of a session that are no zombies."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of = status.read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state not in "ZX":
                line = status.with_name("cmdline").read_text().replace("\0", " ")
                found[int(status.parent.name)] = line
    return found


class Host:
    """The lab, what an undisturbed run comes to, and how to disturb one."""

    def __init__(self, folder: Path) -> None:
        import typer.main

        from dprepro.experiment import environment, worker
        from dprepro.experiment import run as run_module
        from tests.lab import Lab

        self.folder = folder
        self.shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self.shim.fault_count.restype = ctypes.c_long
        self.config = Lab(folder).config(methods=["noisy", "plain"], splits=2)
        self._environment, self._worker, self._run = environment, worker, run_module
        self._real = run_module.LocalExecutor, environment.git_state
        run_module.LocalExecutor = Here  # type: ignore[misc,assignment]
        environment.git_state = lambda: None  # two processes a run, each time the same
        typer.main.get_command = functools.cache(typer.main.get_command)  # a fifth of a run
        saved = os.dup(1), os.dup(2), sys.stdout, sys.stderr
        redirect(folder / "calm.txt")
        assert command(self.config, folder / "calm") == 0
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        sys.stdout, sys.stderr = saved[2:]
        self.expected = essence(folder / "calm" / "lab.jsonl")
        assert len(self.expected["records"]) == 6
        self.half_of_old = b"".join(
            re.sub(rb',"format":2,"crc32":"\w{8}"', b"", line)
            for line in (folder / "calm" / "lab.jsonl").read_bytes().splitlines(True)[:5]
        )

    def counts(self, start: str, kinds: Sequence[str]) -> dict[str, int]:
        """Return how many calls of each kind a run makes; workers start in new runs alone."""
        found: dict[str, int] = {}
        for kind in kinds if start == "new" else [k for k in kinds if k not in STARTING]:
            place = self.folder / "counts"
            path = self.folder / f"count-{kind}"

            def job(path: Path = path, place: Path = place, kind: str = kind) -> int:
                code = self._disturbed(place, (start, kind, 0, 0, False))
                path.write_text(str(self.shim.fault_count(KINDS.index(kind))))
                return code

            code, _ = in_fork(job)
            assert code == 0, (code, (place / "output").read_text())
            found[kind] = int(path.read_text())
            shutil.rmtree(place)
        return found

    def microseconds(self, start: str) -> int:
        """Return how long an undisturbed run takes."""
        place = self.folder / "timed"
        began = time.monotonic()
        assert in_fork(lambda: self._disturbed(place, (start, "kill_after", 0, 0, False)))[0] == 0
        shutil.rmtree(place)
        return int((time.monotonic() - began) * 1e6)

    def _disturbed(self, place: Path, case: tuple[str, str, int, int, bool]) -> int:
        start, kind, number, error, for_good = case
        place.mkdir()
        if start == "old":
            (place / "results").mkdir()
            (place / "results" / "lab.jsonl").write_bytes(self.half_of_old)
        for held in (self._worker._dataset, self._worker._split, self._worker._encoded):
            held.cache_clear()  # so that the data are read again
        if kind in STARTING:
            self._run.LocalExecutor, self._environment.git_state = self._real
        redirect(place / "output")
        if kind in KINDS:
            self.shim.fault_arm(KINDS.index(kind), number, error, for_good)
        code = command(self.config, place / "results")
        if kind in STARTING:
            atexit._run_exitfuncs()  # as a process that is no fork: loky deletes its semaphores
        return code

    def case(
        self, start: str, kind: str, number: int, error: int, for_good: bool
    ) -> dict[str, Any]:
        """Make one disturbed run and one more; return what went wrong, and the exit codes."""
        place, case = self.folder / "case", (start, kind, number, error, for_good)
        shutil.rmtree(place, ignore_errors=True)
        after = number / 1e6 if kind == "kill_after" else None
        code, session = in_fork(lambda: self._disturbed(place, case), after)
        place.mkdir(exist_ok=True)
        results = place / "results"
        stays = left_by(session) if kind in STARTING else []
        again, _ = in_fork(lambda: redirect(place / "again") or command(self.config, results))
        text = "".join(
            path.read_text(errors="replace")
            for path in (place / "output", place / "again")
            if path.exists()
        )
        if code == -signal.SIGKILL:
            text = _READ_NOTHING.sub("", text)
        wrong = []
        if code == 99 or again == 99:
            wrong.append("hangs")
        if "Traceback" in text or "internal error" in text or code in (70, 98):
            wrong.append("tracebacks")
        if again != 0:
            wrong.append("not resumed")
        journal = results / "lab.jsonl"
        found: dict[str, Any] = {"records": {}, "doubled": 0}
        with contextlib.suppress(OSError, ValueError):
            found = essence(journal)
        if found["records"].keys() != self.expected["records"].keys():
            wrong.append("lost")
        elif found["records"] != self.expected["records"]:
            wrong.append("different")
        if found["doubled"]:
            wrong.append("doubled")
        names = {path.name for path in results.glob("*")} - {"lab.jsonl", "lab.jsonl.lock"}
        if code == -signal.SIGKILL:  # loky names a semaphore before it says whose it is
            stays = [what for what in stays if not what.startswith("/dev/shm")]
        if left := [*stays, *names]:
            wrong.append("left over")
        return {"code": code, "wrong": wrong, "said": f"{text[-1500:]} {left}" if wrong else ""}


def main() -> None:
    """Answer cases until standard input ends."""
    folder, *kinds = sys.argv[1:]
    host = Host(Path(folder))
    answers = os.fdopen(os.dup(1), "w")
    calls = {start: host.counts(start, kinds) for start in STARTS}
    took = {start: min(host.microseconds(start) for _ in range(5)) for start in STARTS}
    print(json.dumps({"calls": calls, "microseconds": took}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(host.case(*json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
