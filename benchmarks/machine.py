"""One core, and a description of it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = ("numpy", "pandas", "numba", "scikit-learn", "interpret-core")


def pin_to_one_core() -> int | None:
    """Keep this process, and all it starts, on one core; None where the system cannot do that."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def describe() -> dict[str, Any]:
    """Return processor, caches, system, versions, and how busy the machine was at the start."""
    return {
        "cpu": _cpu_model(),
        "caches": _caches(),
        "cores": os.cpu_count(),
        "vectors": [name for name in ("avx2", "avx512f") if name in _cpu_flags()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _cpu_field(name: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _cpu_model() -> str:
    name = _cpu_field("model name") or platform.processor() or platform.machine()
    numbers = [_cpu_field("cpu family"), _cpu_field("model\t")]
    return f"{name} (family {numbers[0]}, model {numbers[1]})" if all(numbers) else name


def _cpu_flags() -> list[str]:
    return _cpu_field("flags").split()


def _caches() -> str:
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    sizes = []
    for folder in folders:
        kind, level, size = ((folder / n).read_text().strip() for n in ("type", "level", "size"))
        if kind != "Instruction":
            sizes.append(f"L{level} {size}")
    return ", ".join(sizes)
