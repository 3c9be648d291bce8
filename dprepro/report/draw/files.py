"""Files of figures."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from dprepro.errors import DpreproError


def save_figures(figures: Mapping[str, Figure], folder: Path, formats: Iterable[str]) -> list[Path]:
    """Write each figure as NAME.FORMAT, for every format, and return the paths.

    The same figures give the same bytes.

    Raises
    ------
    DpreproError
        If a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _save_figures(figures, folder, formats)
    except OSError as error:
        raise DpreproError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}; choose "
            "with --output and --name"
        ) from error


def _save_figures(
    figures: Mapping[str, Figure], folder: Path, formats: Iterable[str]
) -> list[Path]:
    paths = []
    # Without a salt, matplotlib makes up new identifiers in each SVG file.
    with matplotlib.rc_context({"svg.hashsalt": "dprepro"}):
        for (name, figure), ending in itertools.product(figures.items(), formats):
            paths.append(folder / f"{name}.{ending}")
            metadata = {"Date": None} if ending == "svg" else {}
            figure.savefig(paths[-1], dpi=150, metadata=metadata, bbox_inches="tight")
    return paths
