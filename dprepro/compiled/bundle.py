"""The file with all machine code: found, checked, or made by a process of its own."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dprepro.compiled.sources import PACKAGE, digest, kernel_modules
from dprepro.errors import DpreproError

FOLDER_VARIABLE = "DPREPRO_KERNELS"
"""Names the folder of bundles; set for the processes that this one starts."""

KEPT = 4
"""Bundles that stay in the folder, the last used ones: other versions, other environments."""

USUAL_SECONDS = 25

_TOGETHER = ("dpboost", "exact", "llm")
"""Packages that one process compiles; all others are another's. Each has half of the work.

What kernels of a process share, such as the samplers, is compiled once: with a process a package it
took a third longer.
"""

_LONGEST_WAIT = 900.0
_LEFTOVER_AGE = 3600.0
_MAGIC = b"dprepro kernels 1\n"


def load() -> list[tuple[str, Any]]:
    """Return all machine code, compiled first where this machine has none that is whole.

    Returns
    -------
    list of (str, tuple)
        ``module:name`` of a kernel and what numba makes of one of its signatures, in load order.
    """
    from numba.core import serialize  # noqa: F401 - the pickles name its functions

    content = made()
    return [(kernel, pickle.loads(compiled)) for kernel, compiled in pickle.loads(content)]


def made(announce: bool = False) -> bytes:
    """Return the content of this machine's bundle, compiled first where there is none."""
    name = f"{digest()}.bin"
    folder = _folder()
    content = _read(folder / name)
    return _make(folder, name, announce) if content is None else content


def sealed(content: bytes) -> bytes:
    """Put a checksum in front, which `_read` asks for."""
    return _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _read(path: Path) -> bytes | None:
    """Return the content of a bundle, or None where there is none that is whole."""
    try:
        given = path.read_bytes()
    except OSError:
        return None
    content = given[len(_MAGIC) + 65 :]
    if given != sealed(content):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used: `_prune` keeps it
    return content


def _folder() -> Path:
    from dprepro.cache import cache_dir

    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else cache_dir() / "kernels"


def _make(folder: Path, name: str, announce: bool) -> bytes:
    """Compile under the folder's lock, or into a temporary folder where this one is no use."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "lock", timeout=_LONGEST_WAIT):
            content = _read(folder / name)  # another process may have made it in the meantime
            if content is None:
                _say(f"compiling the kernels, once: about {USUAL_SECONDS} s", announce)
                _compile(folder / name)
                content = _read(folder / name)
            _prune(folder)
    except Timeout:
        raise DpreproError(
            f"another process has been compiling kernels in {folder} for {_LONGEST_WAIT:g} s; end "
            "it, or name another folder in $DPREPRO_CACHE"
        ) from None
    except (OSError, NotImplementedError) as error:
        # filelock raises NotImplementedError where the file system has no locks.
        content = _make_for_now(name, folder, error)
    if content is None:
        raise DpreproError(f"the kernels in {folder} were damaged as they were written; try again")
    return content


def _make_for_now(name: str, folder: Path, reason: Exception) -> bytes | None:
    _say(
        f"the cache folder {folder} cannot be written ({reason}): compiling the kernels for this "
        f"run only, about {USUAL_SECONDS} s; $DPREPRO_CACHE names another folder",
        announce=True,
    )
    try:
        made = Path(tempfile.mkdtemp(prefix="dprepro-kernels-"))
        atexit.register(_remove, made, os.getpid())
        _compile(made / name)
    except OSError as error:
        raise DpreproError(
            f"no folder can be written to for the compiled kernels, neither {folder} ({reason}) "
            f"nor a temporary one ({error}); name one in $DPREPRO_CACHE"
        ) from None
    os.environ[FOLDER_VARIABLE] = str(made)  # for the processes that this one starts
    return _read(made / name)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _compile(target: Path) -> None:
    """Compile in two processes at a time; write the bundle when all is compiled.

    The bundle appears complete, or not at all: OSError if it cannot be written.
    """
    first = [module for module in kernel_modules() if module.split(".")[1] in _TOGETHER]
    others = [module for module in kernel_modules() if module not in first]
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(_compiled, filter(None, (first, others))))
    partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        partial.write_bytes(sealed(pickle.dumps([entry for part in parts for entry in part])))
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _compiled(modules: list[str]) -> list[tuple[str, bytes]]:
    """Run `dprepro.compiled.build` in a process of its own."""
    # Modules come from where this process found its own, never from the working directory: with -c
    # that one is the first entry, and is taken out before anything is imported.
    path = [entry for entry in sys.path if entry] + [str(PACKAGE.parent)]
    # Collecting garbage would be a tenth of the time of a process that soon ends.
    code = (
        f"import gc, sys; gc.disable(); sys.path[:] = {path!r}; "
        f"from dprepro.compiled.build import main; main({modules!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit code {done.returncode}"
        raise DpreproError(
            f"the kernels cannot be compiled: {reason}. Is this numba made for this Python and "
            "numpy? `pip install --upgrade numba` brings one that fits"
        )
    part: list[tuple[str, bytes]] = pickle.loads(done.stdout)
    return part


def _prune(folder: Path) -> None:
    """Remove bundles that were not used lately, and what killed processes left behind."""
    with contextlib.suppress(OSError):
        bundles = sorted(folder.glob("*.bin"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in bundles[KEPT:]:
            path.unlink(missing_ok=True)
        for path in folder.glob("*.tmp"):
            if time.time() - path.stat().st_mtime > _LEFTOVER_AGE:
                path.unlink(missing_ok=True)


def _say(text: str, announce: bool) -> None:
    if announce or sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
