"""Seconds and bytes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from replacing import replaced

import dprepro.methods.dp_ebm.curator


@dataclass
class Times:
    """Seconds of the processor, one a repeat.

    They count all threads, so hidden ones gain nothing, and other processes on the machine
    disturb them less than they disturb the wall clock. `kernel` is the part inside `boost`.
    """

    total: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.total)

    @property
    def median(self) -> float:
        return statistics.median(self.total)

    @property
    def best_kernel(self) -> float:
        return min(self.kernel)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"best": self.best, "median": self.median}


def alternate(fits: dict[str, Callable[[], object]], repeats: int) -> dict[str, Times]:
    """Time the fits in turn, so that a machine that slows down slows all of them alike."""
    times = {name: Times() for name in fits}
    for _ in range(repeats):
        for name, fit in fits.items():
            with _kernel_clock() as spent:
                start = time.process_time()
                fit()
                times[name].total.append(time.process_time() - start)
            times[name].kernel.append(sum(spent))
    return times


@contextmanager
def _kernel_clock() -> Iterator[list[float]]:
    """Collect the seconds of every call of our kernel."""
    spent: list[float] = []
    boost = dprepro.methods.dp_ebm.curator.boost

    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        result = boost(*arguments)
        spent.append(time.process_time() - start)
        return result

    with replaced(dprepro.methods.dp_ebm.curator, "boost", timed):
        yield spent


def peak_memory(spec: str, library: str, epochs: int, data_dir: Path | None) -> float:
    """Return what a fit needs beyond its data, in MiB: measured in a process of its own."""
    script = Path(__file__).with_name("fit_memory.py")
    command = [sys.executable, str(script), spec, library, "--epochs", str(epochs)]
    if data_dir is not None:
        command += ["--data-dir", str(data_dir)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(answer)["mib"])
