"""Files of figures.

Figures drawn by this process and others: each by one of them, which keeps matplotlib loaded.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import matplotlib
from loky import cpu_count
from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor
from matplotlib.figure import Figure

from dprepro.experiment.safe_path import keep_working_directory_out
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.memory import THREAD_VARIABLES

T = TypeVar("T")

# A process starts in about the time that five figures take.
_FEWEST = 10
_MOST_PROCESSES = 8


def in_processes(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Return what the jobs return, in their order; few jobs, or one processor, need no process.

    Jobs and what they return are pickled. This process begins with the first job, the others with
    the last: let it be the longest. A bar on the terminal says how many are done and how long the
    rest will take. An error of a job is raised here.

    Raises
    ------
    DpreproError
        If a process ends before its job does, such as for want of memory.
    """
    workers = min(cpu_count(), _MOST_PROCESSES) - 1
    if workers == 0 or len(jobs) < _FEWEST:
        return [job() for job in _shown(jobs)]
    keep_working_directory_out()
    pool = ProcessPoolExecutor(max_workers=workers, env=dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        given = [(pool.submit(job), job) for job in reversed(jobs)]
        return [
            job() if future.cancel() else future.result() for future, job in _shown(given[::-1])
        ]
    except (BrokenProcessPool, OSError) as error:
        raise DpreproError(
            "a process that draws figures did not start or ended early, maybe for want of memory; "
            "with LOKY_MAX_CPU_COUNT=1 in the environment a single process draws them all"
        ) from error
    finally:
        pool.shutdown(kill_workers=True)


def _shown(items: Sequence[T]) -> Iterator[T]:
    from dprepro.release.progress import shown_steps  # not in the other processes

    return shown_steps("drawing", items, lambda _: "figures")


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
