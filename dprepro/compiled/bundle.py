"""The files with machine code, one a group: found, checked, or made by a process of their own."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import math
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from dprepro.compiled.sources import (
    PACKAGE,
    digest,
    group_of,
    kernel_modules,
    number_of_kernels,
)
from dprepro.compiled.trusted import why_not
from dprepro.durable import lock_open_file, replacing
from dprepro.errors import DpreproError

FOLDER_VARIABLE = "DPREPRO_KERNELS"
"""Names the folder of bundles; set for the processes that this one starts."""

KEPT = 4
"""Versions of which the bundles stay in the folder, the last used ones."""

USUAL_SECONDS = 20
"""How long a group takes; two at a time take as long."""

_LONGEST_WAIT = 900.0
_TEMPORARY = "dprepro-kernels-"
_MAGIC = b"dprepro kernels 1\n"


def load(group: str) -> list[tuple[str, Any]]:
    """Return a group's machine code, compiled first where this machine has none that is whole.

    Returns
    -------
    list of (str, tuple)
        ``module:name`` of a kernel and what numba makes of one of its signatures, in load order.
    """
    from numba.core import serialize  # noqa: F401 - the pickles name its functions

    content = made([group])[group]
    return [(kernel, pickle.loads(compiled)) for kernel, compiled in pickle.loads(content)]


def made(groups: Collection[str], announce: bool = False) -> dict[str, bytes]:
    """Return the content of the groups' bundles, compiled first where this machine has none."""
    version = digest()
    folder = _folder()
    if reason := why_not(folder):
        folder = _make_for_now(version, sorted(groups), folder, f"is not safe: {reason}")
    found = {group: _read(folder / _name(version, group)) for group in sorted(groups)}
    missing = [group for group, content in found.items() if content is None]
    if missing:
        found.update(_make(folder, version, missing, announce))
    return {group: _whole(content, folder) for group, content in found.items()}


def _name(version: str, group: str) -> str:
    return f"{version}-{group}.bin"


def _whole(content: bytes | None, folder: Path) -> bytes:
    if content is None:
        raise DpreproError(f"the kernels in {folder} were damaged as they were written; try again")
    return content


def sealed(content: bytes) -> bytes:
    """Put a checksum in front, which `_read` asks for."""
    return _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _read(path: Path) -> bytes | None:
    """Return the content of a bundle, or None where there is none that is whole and safe."""
    if why_not(path):
        return None
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


def _make(folder: Path, version: str, groups: list[str], announce: bool) -> dict[str, bytes | None]:
    """Compile under the groups' locks, or into a temporary folder where this one is no use."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        with ExitStack() as locks:
            for group in groups:  # in the order of the alphabet: two processes never wait in a ring
                locks.enter_context(FileLock(folder / f"{group}.lock", timeout=_LONGEST_WAIT))
            # Another process may have made some in the meantime.
            missing = [group for group in groups if _read(folder / _name(version, group)) is None]
            if missing:
                _remove_parts(folder, missing)
                number, seconds = number_of_kernels(missing), _seconds(missing)
                _say(f"compiling {number} kernels (once a version), about {seconds} s", announce)
                _compile(folder, version, missing)
            _prune(folder)
    except Timeout:
        raise DpreproError(
            f"another process has been compiling kernels in {folder} for {_LONGEST_WAIT:g} s; end "
            "it, or name another folder in $DPREPRO_CACHE"
        ) from None
    except (OSError, NotImplementedError) as error:
        # filelock raises NotImplementedError where the file system has no locks.
        folder = _make_for_now(version, groups, folder, f"cannot be written ({error})")
    return {group: _read(folder / _name(version, group)) for group in groups}


def _make_for_now(version: str, groups: list[str], folder: Path, reason: str) -> Path:
    _say(
        f"the cache folder {folder} {reason}: compiling the kernels for this run only, about "
        f"{_seconds(groups)} s; $DPREPRO_CACHE names another folder",
        announce=True,
    )
    try:
        made = _temporary_folder()
        for path in folder.glob(f"{version}-*.bin"):  # of other groups, which are looked for there
            with contextlib.suppress(OSError):  # then it is compiled like the rest
                if (content := _read(path)) is not None:
                    (made / path.name).write_bytes(sealed(content))
        if unsafe := why_not(made):
            raise DpreproError(
                f"no folder is safe for the compiled kernels: {folder} {reason}, and {unsafe}; "
                "name one of your own in $DPREPRO_CACHE"
            )
        _compile(made, version, groups)
    except OSError as error:
        raise DpreproError(
            f"no folder can be written to for the compiled kernels, neither {folder} (it {reason}) "
            f"nor a temporary one ({error}); name one in $DPREPRO_CACHE"
        ) from None
    os.environ[FOLDER_VARIABLE] = str(made)  # for the processes that this one starts
    return made


def _temporary_folder() -> Path:
    """Make a folder that goes with this process, and remove those of killed ones. May be OSError.

    The process that made a folder, and its forks, lock a file in it.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        with contextlib.suppress(OSError):
            number = os.open(left / "lock", os.O_RDWR)
            if lock_open_file(number):
                shutil.rmtree(left, ignore_errors=True)
            os.close(number)
    made, number = Path(tempfile.mkdtemp(prefix=f".{_TEMPORARY}")), -1
    try:
        number = os.open(made / "lock", os.O_RDWR | os.O_CREAT)
        if lock_open_file(number):  # it stays open as long as this process
            made = made.rename(made.with_name(made.name[1:]))  # now others see it, and the lock
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        if number >= 0:
            os.close(number)
        raise
    atexit.register(_remove, made, os.getpid())
    return made


def _seconds(groups: list[str]) -> int:
    return USUAL_SECONDS * math.ceil(len(groups) / 2)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_parts(folder: Path, groups: list[str]) -> None:
    """Remove what a killed process has written of a bundle; only who has the lock writes one."""
    for group in groups:
        for part in folder.glob(f".*-{group}.bin.*.part"):
            part.unlink(missing_ok=True)


def _compile(folder: Path, version: str, groups: list[str]) -> None:
    """Compile two groups at a time, and write the bundle of each.

    A bundle appears complete, or not at all: OSError if it cannot be written.
    """
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(_compile_group, folder, version), groups))


def _compile_group(folder: Path, version: str, group: str) -> None:
    compiled = _compiled(group)
    # Whatever the umask: what others may write is not read.
    with replacing(folder / _name(version, group), 0o600) as part:
        part.write_bytes(sealed(compiled))


def _compiled(group: str) -> bytes:
    """Run `dprepro.compiled.build` in a process of its own, and return what it writes."""
    # Modules come from where this process found its own, never from the working directory: with -c
    # that one is the first entry, and is taken out before anything is imported.
    path = [entry for entry in sys.path if entry] + [str(PACKAGE.parent)]
    modules = [name for name in kernel_modules() if group_of(name) == group]
    place = sorted({group_of(name) for name in kernel_modules()}).index(group)
    # Collecting garbage would be a tenth of the time of a process that soon ends.
    code = (
        f"import gc, sys; gc.disable(); sys.path[:] = {path!r}; "
        f"from dprepro.compiled.build import main; main({place}, {modules!r})"
    )
    # Nothing is written into the pipe. It ends with this process, however that ends, and so does
    # the other one.
    reading, writing = os.pipe()
    with os.fdopen(reading) as until, os.fdopen(writing, "w"):
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=until, capture_output=True, check=False
        )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit code {done.returncode}"
        raise DpreproError(
            f"the kernels cannot be compiled: {reason}. Is this numba made for this Python and "
            "numpy? `pip install --upgrade numba` brings one that fits"
        )
    return done.stdout


def _prune(folder: Path) -> None:
    """Remove bundles that were not used lately."""
    with contextlib.suppress(OSError):
        bundles = sorted(folder.glob("*.bin"), key=lambda path: path.name)
        versions = [list(paths) for _, paths in groupby(bundles, _version)]
        versions.sort(key=lambda paths: max(map(_used, paths)), reverse=True)
        for path in chain.from_iterable(versions[KEPT:]):
            path.unlink(missing_ok=True)


def _version(bundle: Path) -> str:
    return bundle.name.partition("-")[0]


def _used(path: Path) -> float:
    return path.stat().st_mtime


def _say(text: str, announce: bool) -> None:
    if announce or sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
