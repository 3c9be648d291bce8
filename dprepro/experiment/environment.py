"""What a run ran on and with: the journal's environment lines."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from dprepro import __version__

LIBRARIES = (
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "numba",
    "diffprivlib",
    "dp-accounting",
    "lightgbm",
    "xgboost",
    "xgboost-cpu",
    "torch",
)


def describe(config_text: str, jobs: int) -> dict[str, Any]:
    """Return a journal line (kind ``environment``): versions, machine, commit, time, config."""
    return {
        "kind": "environment",
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "dprepro": __version__,
        "git": git_state(),
        "config_sha256": hashlib.sha256(config_text.encode()).hexdigest(),
        "jobs": jobs,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "blas": _blas_kernels(),
        "cores": os.cpu_count(),
        "libraries": _library_versions(),
    }


def versions() -> dict[str, str]:
    """Return, by name, the versions on which results may depend."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python, "dprepro": __version__, **_library_versions()}


def _library_versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _blas_kernels() -> list[str]:
    """Return the kernels that linear algebra uses, e.g. ["openblas Haswell"]: they round alike."""
    import numpy  # noqa: F401 - loads the library that is asked about
    from threadpoolctl import threadpool_info

    found = (f"{i['internal_api']} {i.get('architecture', '')}".strip() for i in threadpool_info())
    return sorted({name for name in found if not name.startswith("openmp")})


def git_state() -> dict[str, Any] | None:
    """Return commit and whether tracked files differ from it; None outside a checkout."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return None
    try:
        commit = _git(folder, "rev-parse", "HEAD").strip()
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    # A journal kept in the checkout changes with every run; that is not a change of the code.
    edits = [line for line in changed.splitlines() if not line.endswith(".jsonl")]
    return {"commit": commit, "dirty": bool(edits)}


def _git(folder: Path, *arguments: str) -> str:
    # Without the lock that `git status` would take only to note what it found.
    return subprocess.run(
        ["git", "--no-optional-locks", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    ).stdout
