"""Where data files lie on this machine: the data folder, the cache, a card's own folder."""

from __future__ import annotations

import os
from pathlib import Path

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import cache_dir, is_file

DATA_VARIABLE = "DPREPRO_DATA"


def data_folder(data_dir: Path | None = None) -> Path:
    """Return the folder of files that were put there by hand.

    `data_dir` if given, else ``$DPREPRO_DATA``, else the folder ``files`` in the cache (which
    may not exist).

    Raises
    ------
    DpreproError
        If `data_dir` or the variable names something that is not a folder.
    """
    variable = os.environ.get(DATA_VARIABLE)
    if data_dir is None and not variable:
        return cache_dir() / "files"
    folder = Path(data_dir if data_dir is not None else str(variable)).expanduser()
    if not folder.is_dir():
        origin = "--data-dir" if data_dir is not None else f"${DATA_VARIABLE}"
        raise DpreproError(
            f"{origin} is {str(folder)!r}, which is not a folder; "
            "give an existing one, laid out like adult/adult.data, or leave it out"
        )
    return folder


def cached_file(kind: str, card: str, name: str) -> Path:
    """Return the path of a card's download `name` from a `kind` of source. It may not exist."""
    return cache_dir() / kind / card / name


def file_candidates(name: str, folder: Path | None, data_dir: Path | None) -> list[Path]:
    """Return the paths where the file `name` is searched, in this order.

    `folder` is the card's (None for built-in cards, whose paths start at the data folder).
    """
    path = Path(name).expanduser()
    if path.is_absolute():
        return [path]
    beside = [folder / path] if folder is not None else []
    return [*beside, data_folder(data_dir) / path]


def find_file(name: str, folder: Path | None, data_dir: Path | None) -> Path | None:
    """Return the first of `file_candidates` that exists, or None."""
    found = (path for path in file_candidates(name, folder, data_dir) if is_file(path))
    return next(found, None)
