"""The journals of a folder as they were in a revision of its git repository."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from dprepro.experiment.packed import SUFFIX
from dprepro.runtime.errors import DpreproError

_ENDINGS = (".jsonl", SUFFIX)
_REGULAR = {b"100644", b"100755"}
"""Modes of git's trees: links are left out."""


@contextmanager
def earlier_results(given: str, results: Path) -> Iterator[tuple[Path, str]]:
    """Give a folder with earlier journals, and what to call them in messages.

    `given` is a folder, or else a revision of the git repository that holds `results`: then the
    journals in `results` at that revision are read into a temporary folder, byte for byte.

    Raises DpreproError if it is neither, or the revision has no journals there.
    """
    if given and Path(given).is_dir():
        if Path(given).resolve() == results.resolve():
            raise DpreproError(f"{given} is the folder of the results itself: name an earlier one")
        yield Path(given), given
        return
    top, commit = _commit(given, results)
    inside = _inside(top, results)
    tree = f"{commit}:{inside}" if inside != "." else commit
    with TemporaryDirectory(prefix="dprepro-baseline-") as folder:
        found = 0
        for mode, digest, name in _entries(top, tree):
            if mode in _REGULAR and PurePosixPath(name).suffix in _ENDINGS:
                (Path(folder) / name).write_bytes(_git(top, "cat-file", "blob", digest))
                found += 1
        if not found:
            raise DpreproError(
                f"revision {given!r} ({commit[:10]}) has no journals in {inside}: commit some, or "
                "name another revision, or a folder"
            )
        yield Path(folder), f"{given} ({commit[:10]})"


def _commit(given: str, results: Path) -> tuple[Path, str]:
    """Return the top of the repository, and the full name of a commit."""
    neither = f"{given!r} is neither a folder nor a git revision"
    if shutil.which("git") is None:
        raise DpreproError(f"{neither} that could be read, since git is not installed")
    # The folder itself may be new, and not yet there.
    start = next(folder for folder in (results, *results.absolute().parents) if folder.is_dir())
    if (top := _answer(start, "rev-parse", "--show-toplevel")) is None:
        raise DpreproError(f"{neither}: {start.absolute()} is in no git repository")
    wanted = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{given}^{{commit}}")
    commit = _answer(start, *wanted) if given and ":" not in given else None
    if commit is None:
        raise DpreproError(
            f"{neither} of {top}: name a folder with journals, or a branch, a tag or a commit, "
            "such as main or HEAD~1. A shallow clone has few: `git fetch --unshallow`"
        )
    return Path(top), commit


def _inside(top: Path, results: Path) -> str:
    try:
        return results.resolve().relative_to(top.resolve()).as_posix()
    except ValueError:
        raise DpreproError(
            f"{results.resolve()} is not in the git repository {top}: name a folder instead of a "
            "revision"
        ) from None


def _entries(top: Path, tree: str) -> Iterator[tuple[bytes, str, str]]:
    """Yield mode, digest and name of what a folder holds; nothing where it is not there."""
    try:
        listed = _git(top, "ls-tree", "-z", tree)
    except subprocess.CalledProcessError:
        return
    for line in listed.split(b"\0")[:-1]:
        told, _, name = line.partition(b"\t")
        mode, _, digest = told.split(b" ")
        # Names of journals are those of configs; what else is there is left out.
        yield mode, digest.decode(), name.decode("utf-8", "replace")


def _answer(folder: Path, *arguments: str) -> str | None:
    try:
        return _git(folder, *arguments).decode("utf-8", "replace").strip() or None
    except subprocess.CalledProcessError:
        return None


def _git(folder: Path, *arguments: str) -> bytes:
    command: Sequence[str] = ("git", "-C", str(folder), *arguments)
    return subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
