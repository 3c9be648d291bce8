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

DPI = 150
"""Of pictures in pixels."""
PNG = {"compress_level": 3}
"""How Pillow writes them: in two thirds of the time, and two per cent larger."""
_EDGE = 0.1  # inches


def save_figures(
    figures: Mapping[str, Callable[[], Figure]],
    folder: Path,
    formats: Iterable[str],
    more: Mapping[str, Callable[[Sequence[bytes], str], bytes]] | None = None,
    is_cut: bool = True,
) -> list[Path]:
    """Draw each figure, write it as NAME.FORMAT, for every format, and return the paths.

    Several processes share the figures: what draws one can be pickled, and the largest is the last.
    The same figures give the same bytes.

    Parameters
    ----------
    more
        Makes further files, by name, from those of the figures in a format and from that format.
    is_cut
        Whether the margins of each figure are cut to what is drawn; else they are as given.

    Raises
    ------
    DpreproError
        If a file cannot be written.
    """
    endings = list(formats)
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is not drawn
        jobs = [partial(_contents, draw, endings, is_cut) for draw in figures.values()]
        drawn = dict(zip(figures, in_processes(jobs), strict=True))
        for name, make in (more or {}).items():
            each = zip(*drawn.values(), strict=True)
            drawn[name] = [make(files, e) for e, files in zip(endings, each, strict=True)]
        for name, files in drawn.items():
            for ending, content in zip(endings, files, strict=True):
                paths.append(folder / f"{name}.{ending}")
                paths[-1].write_bytes(content)
    except OSError as error:
        raise DpreproError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}; choose "
            "with --output and --name"
        ) from error
    return paths


def _contents(draw: Callable[[], Figure], endings: Sequence[str], is_cut: bool) -> list[bytes]:
    return contents(draw(), endings, is_cut)


def contents(figure: Figure, endings: Sequence[str], is_cut: bool = False) -> list[bytes]:
    """Return the files of a figure, one a format; see `save_figures`."""
    lay_out(figure)
    box = figure.get_tightbbox().padded(_EDGE) if is_cut else None
    files = []
    # Without a salt, matplotlib makes up new identifiers in each SVG file.
    with matplotlib.rc_context({"svg.hashsalt": "dprepro"}):
        for ending in endings:
            file = io.BytesIO()
            more = {"metadata": {"Date": None}} if ending == "svg" else {"pil_kwargs": PNG}
            figure.savefig(file, format=ending, dpi=DPI, bbox_inches=box, **more)
            files.append(file.getvalue())
    return files


def lay_out(figure: Figure) -> None:
    """Lay a figure out once for all its files, if it asks for a layout.

    Left to itself, matplotlib lays it out for each file, and draws it twice to do so.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
