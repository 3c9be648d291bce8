"""Files that appear complete, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dprepro.errors import DpreproError


@contextmanager
def appearing_complete(path: Path) -> Iterator[Path]:
    """Yield where to write; what is there takes the place of `path` at the end of the context.

    If the context fails, nothing is left of it, and a file that was at `path` stays.

    Raises
    ------
    DpreproError
        If the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield unfinished
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise DpreproError(f"cannot write {path}: {error.strerror or error}") from error
