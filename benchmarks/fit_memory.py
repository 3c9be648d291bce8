"""Peak memory of one fit beyond the process that is about to start it. Used by `ebm_fit.py`.

Example: python benchmarks/fit_memory.py adult dprepro --epochs 300
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import resource
import sys
from pathlib import Path

import problems
from machine import pin_to_one_core


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", help="a dataset, or ROWSxFEATURES")
    parser.add_argument("package", choices=problems.LIBRARIES)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    pin_to_one_core()
    problem = problems.from_spec(given.problem, given.data_dir)
    small = problem.small()
    # Imports, compiled code and the domain are not the fit's.
    problems.fit_quietly(problems.dp_ebm(given.package, small, 0, epochs=1), small)
    model = problems.dp_ebm(given.package, problem, 0, epochs=given.epochs)
    gc.collect()
    before = start_peak()
    problems.fit_quietly(model, problem)
    print(json.dumps({"mib": (peak() - before) / 2**20}))


def start_peak() -> int:
    """Begin a new high-water mark where the system allows it; return the bytes in use.

    What was freed goes back to the system first: a fit that used it again would seem small.
    """
    with contextlib.suppress(OSError, AttributeError):  # the C library of Linux has it
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:  # not Linux: the mark of the imports stands, and small fits hide below it
        return peak()
    return _status("VmRSS")


def peak() -> int:
    if Path("/proc/self/status").exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
