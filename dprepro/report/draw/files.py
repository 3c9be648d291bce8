"""Files of figures."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from dprepro.errors import DpreproError
from dprepro.report.draw.processes import in_processes


def save_figures(
    figures: Mapping[str, Callable[[], Figure]], folder: Path, formats: Iterable[str]
) -> list[Path]:
    """Draw each figure, write it as NAME.FORMAT, for every format, and return the paths.

    Several processes share the figures: what draws one can be pickled, and the largest is the last.
    The same figures give the same bytes.

    Raises
    ------
    DpreproError
        If a file cannot be written.
    """
    endings = list(formats)
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is not drawn
        contents = in_processes([partial(_contents, draw, endings) for draw in figures.values()])
        for name, files in zip(figures, contents, strict=True):
            for ending, content in zip(endings, files, strict=True):
                paths.append(folder / f"{name}.{ending}")
                paths[-1].write_bytes(content)
    except OSError as error:
        raise DpreproError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}; choose "
            "with --output and --name"
        ) from error
    return paths


def _contents(draw: Callable[[], Figure], endings: Sequence[str]) -> list[bytes]:
    """Return the files of one figure, which is drawn once."""
    figure, files = draw(), []
    # Without a salt, matplotlib makes up new identifiers in each SVG file.
    with matplotlib.rc_context({"svg.hashsalt": "dprepro"}):
        for ending in endings:
            file = io.BytesIO()
            metadata = {"Date": None} if ending == "svg" else {}
            figure.savefig(file, format=ending, dpi=150, metadata=metadata, bbox_inches="tight")
            files.append(file.getvalue())
    return files
