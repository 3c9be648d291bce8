"""What a run ran on and with, for its journal; and what the processes it starts can import.

Python looks for modules in the working directory first when it starts with ``-m`` or ``-c``, as
loky's workers and both resource trackers do: a ``random.py`` of the user's would be run. So that
folder is kept out of what they import.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
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
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
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


def keep_working_directory_out() -> None:
    """Have every Python process that this one starts from now on ignore its working directory.

    Such processes still see what ``PYTHONPATH`` names, and workers what this process can import.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    if sys.version_info < (3, 11):  # which do not know the variable
        _rewrite_commands()


def guarded(command: Sequence[str]) -> list[str]:
    """Return a command ``[python, ..., "-c" or "-m", what, ...]`` that ignores its directory.

    With ``-c`` nothing is imported before the code runs, which takes the directory out of the path
    first; with ``-m`` it would be too late for ``runpy``, so that becomes a ``-c`` too.
    """
    for i, argument in enumerate(command[:-1]):
        if argument == "-c":
            code = command[i + 1]
        elif argument == "-m":
            code = f"import runpy; runpy.run_module({command[i + 1]!r}, None, '__main__', True)"
        else:
            continue
        return [*command[:i], "-c", f"{_CLEAR}; {code}", *command[i + 2 :]]
    return list(command)


_CLEAR = "import sys; sys.path[:1] = [p for p in sys.path[:1] if p]"


def _rewrite_commands() -> None:
    from multiprocessing import util

    from loky.backend import fork_exec as of_loky

    for module, name, place in (
        (util, "spawnv_passfds", 1),
        (of_loky, "fork_exec", 0),
    ):
        start = getattr(module, name)
        if not hasattr(start, "guards"):
            setattr(module, name, _Guarding(start, place))


class _Guarding:
    """Starts a process by way of `start`, whose argument at `place` is the command."""

    def __init__(self, start: Any, place: int) -> None:
        self.guards = start
        self._place = place

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        command = guarded(arguments[self._place])
        return self.guards(
            *arguments[: self._place], command, *arguments[self._place + 1 :], **options
        )
