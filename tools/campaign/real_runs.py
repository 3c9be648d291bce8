"""A place where runs with real methods are killed, and which of their processes are left."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from tools.campaign.host import READ_NOTHING, essence, whole_lines

CONFIG = """\
dataset: breast-cancer
metric: auc
epsilons: [1, 4]
delta: 1e-6
splits: 12
domain: observed
methods: [dp-ebm-gdp, dp-one-rule, dp-random-forest]
"""
TASKS = 72
HANGS = 99
"""The code of a run that was ended as it hangs."""
_HANGS_AFTER = 180.0
_GONE = 5.0
_SPEAKS_OF_CLUSTER = re.compile(r"^.*(distributed|tornado)\.\S+ - .*$", re.M)


class Place:
    """A folder with a config, kernels, and what an undisturbed run comes to."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self._output = folder, folder / "output.txt"
        self._config = folder / "real.yaml"
        self._config.write_text(CONFIG)
        self.cache = str(folder / "cache")
        self._kernels, self._whole = folder / "cache" / "kernels", folder / "whole"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "DPREPRO_CACHE": self.cache,
            "DPREPRO_STATE": str(folder / "state"),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.seconds: dict[str, float] = {}
        self.expected: dict[str, Any] = {}

    def look(self, kernels: Path | None = None) -> None:
        """Find out how long undisturbed runs take, and what they come to.

        With a folder of compiled kernels none is compiled.
        """
        if kernels is not None:
            shutil.copytree(kernels, self._whole, ignore=shutil.ignore_patterns("*.tmp", "*.lock"))
        for state in ("warm",) if kernels else ("cold", "warm"):
            self.begin(state)
            began = time.monotonic()
            code, left = self.run(["--jobs", "2"])
            self.seconds[state] = time.monotonic() - began
            assert (code, left) == (0, []), (code, left, self._output.read_text())
            if state == "cold":
                shutil.copytree(self._kernels, self._whole)
                self.seconds |= dict.fromkeys(("stale", "damaged"), self.seconds["cold"])
        self.expected, _ = essence(whole_lines(self.journal))
        assert len(self.expected) == TASKS

    @property
    def journal(self) -> Path:
        """The journal of the case."""
        return self.folder / "case" / "results" / "real.jsonl"

    def begin(self, state: str) -> None:
        """Empty the folder of the case, and put the kernels into a state."""
        self._output.unlink(missing_ok=True)
        self.begin_journal()
        shutil.rmtree(self._kernels, ignore_errors=True)
        if state == "cold":
            return
        shutil.copytree(self._whole, self._kernels)
        for path in self._kernels.glob("*.bin"):
            version, _, group = path.name.partition("-")
            if state == "stale":
                path.with_name(f"{path.name}.1.tmp").write_bytes(path.read_bytes()[:999])
                path.rename(path.with_name(f"{version[::-1]}-{group}"))
            if state == "damaged":
                content = bytearray(path.read_bytes())
                content[len(content) // 2] ^= 1
                path.write_bytes(content)

    def begin_journal(self) -> None:
        """Empty the folder of the case."""
        shutil.rmtree(self.folder / "case", ignore_errors=True)
        (self.folder / "case" / "tmp").mkdir(parents=True)

    def run(
        self, more: Sequence[str], meanwhile: Callable[[int], None] = lambda _: None
    ) -> tuple[int, list[str]]:
        """Run the config, and `meanwhile` with the number of its process.

        Returns
        -------
        code
            Its exit code, the negative of a signal.
        left
            Which of its processes are there 5 s after its end; they are killed.
        """
        place = self.folder / "case"
        line = [sys.executable, "-m", "dprepro", "run", str(self._config), *more]
        line += ["--results", str(place / "results")]
        with self._output.open("a") as output:
            process = subprocess.Popen(
                line, stdout=output, stderr=subprocess.STDOUT, cwd=place, start_new_session=True,
                env=self.environment | {"TMPDIR": str(place / "tmp")},
            )  # fmt: skip
        try:
            meanwhile(process.pid)
            process.wait(_HANGS_AFTER)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return HANGS, left_of(process.pid, 0)
        return process.returncode, left_of(process.pid, _GONE)

    def ended(self) -> set[str]:
        """Return what is wrong with the journal of a run that ended well."""
        try:
            found, doubled = essence(whole_lines(self.journal))
        except ValueError:
            return {"lost"}
        wrong = {"doubled"} if doubled else set()
        if found.keys() != self.expected.keys():
            return wrong | {"lost"}
        return wrong | ({"different"} if found != self.expected else set())

    def other_files(self) -> list[str]:
        """Return the files that should not be there."""
        case = self.folder / "case"
        mine = {"real.jsonl", "real.jsonl.lock"}
        found = [path for path in (case / "results").glob("*") if path.name not in mine]
        found += [*(case / "tmp").iterdir(), *self._kernels.glob("*.tmp")]
        return [str(path) for path in found]

    def said(self) -> str:
        """Return what the runs of the case printed, without what a cluster's library logs."""
        text = self._output.read_text(errors="replace")
        return _SPEAKS_OF_CLUSTER.sub("", READ_NOTHING.sub("", text))


def processes_of(session: int) -> list[psutil.Process]:
    """Return the processes of a session that have not ended."""
    return [process for process in _alive() if _session(process) == session]


def started_from(place: Place) -> list[str]:
    """Return the command lines of all processes with the place's variables, whoever adopted them.

    Those of its cluster, that is, as those of its runs have ended.
    """
    return [" ".join(process.cmdline()) for process in _alive() if _cache(process) == place.cache]


def _alive() -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except psutil.NoSuchProcess:
            continue


def _session(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def _cache(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("DPREPRO_CACHE")
    except (psutil.Error, OSError):
        return None


def left_of(session: int, seconds: float) -> list[str]:
    """Return the command lines of what is left of a session after some seconds, and kill it."""
    end = time.monotonic() + seconds
    while (alive := processes_of(session)) and time.monotonic() < end:
        time.sleep(0.1)
    left = []
    for process in alive:
        try:
            left.append(" ".join(process.cmdline()))
            process.kill()
        except psutil.NoSuchProcess:
            continue
    return left
