"""Which journals of a folder hold two methods, found without reading their lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from dprepro.errors import DpreproError


def holding_both(paths: Sequence[Path], first: str, second: str) -> list[str]:
    """Return the journals that hold both methods; if none does, those that hold one of them.

    Parameters
    ----------
    paths
        Of the journals.
    first, second
        Labels or names of methods.

    Returns
    -------
    list of str
        Names of journals; none if no journal holds either method.

    Raises
    ------
    DpreproError
        If a journal cannot be read.
    """
    found = {path.stem: _mentioned(path, (first, second)) for path in paths}
    both = [name for name, methods in found.items() if len(methods) == 2]
    return both or [name for name, methods in found.items() if methods]


def _mentioned(path: Path, names: Sequence[str]) -> set[str]:
    """Return those of `names` that stand in a journal as the label or the method of a task."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error}") from error
    return {name for name in names if any(pattern in text for pattern in _patterns(name))}


def _patterns(name: str) -> list[bytes]:
    quoted = json.dumps(name)
    return [f'"{key}":{gap}{quoted}'.encode() for key in ("label", "method") for gap in ("", " ")]
