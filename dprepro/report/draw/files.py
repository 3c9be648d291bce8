"""Figures as files and as SVG in a page, drawn by several processes.

The SVG has the page's fonts and colours, light and dark. A picture of several pictures is put
together from their files: what was drawn once is not drawn again.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

import matplotlib
from loky import cpu_count
from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor
from markupsafe import Markup
from matplotlib.figure import Figure

from dprepro.experiment.environment import keep_working_directory_out
from dprepro.report.draw.style import POINTS_PER_INCH
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import legible
from dprepro.runtime.threads import THREAD_VARIABLES

T = TypeVar("T")

# A process starts in about the time that five figures take.
_FEWEST = 10
_MOST_PROCESSES = 8
DPI = 150
"""Of pictures in pixels."""
PNG = {"compress_level": 3}
"""How Pillow writes them: in two thirds of the time, and two per cent larger."""
# What makes the bytes of a file follow from the figure alone, by its ending.
_MORE: Mapping[str, Any] = {
    "png": {"pil_kwargs": PNG},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}
_EDGE = 0.1  # inches
_GAP = 0.12  # inches between rows

_NAMESPACE = re.compile(r"\{[^}]*\}")
_REFERENCE = re.compile(r"#([^)]*)")
_GREY = re.compile(r"#([0-9a-f]{2})\1\1\b")
_FAMILY = re.compile(r"font-family: [^;]*(; )?")
_FONT = re.compile(r"font: [^;]*?([\d.]+px)[^;]*")
_LONG = re.compile(r"-?\d+\.\d{2,}")
_GEOMETRY = ("d", "x", "y", "width", "height")

_HEAD = re.compile(r'.*?<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"[^>]*>', re.DOTALL)
_METADATA = re.compile("<metadata>.*?</metadata>", re.DOTALL)
_IDENTIFIER = re.compile(r'(\bid="|href="#|url\(#)')
_WHOLE = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.1" \
width="{0:g}pt" height="{1:g}pt" viewBox="0 0 {0:g} {1:g}">
<rect width="100%" height="100%" fill="white"/>
"""
_PART = '<svg x="{0:g}" y="{1:g}" width="{2:g}" height="{3:g}" viewBox="0 0 {2:g} {3:g}">'


class Workers:
    """Within a ``with`` block, processes that do jobs beside this one; with one processor, none.

    They start with the first job, and ignore the working directory. Jobs and what they return are
    pickled. An error of a job is raised where its result is asked for, and so is DpreproError if a
    process ended before its job did, such as for want of memory.
    """

    def __init__(self) -> None:
        self._number = min(cpu_count(), _MOST_PROCESSES) - 1
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(kill_workers=True)

    def begin(self, job: Callable[[], T]) -> Callable[[], T]:
        """Begin a job now, and return what waits for its result."""
        if self._number == 0:
            return job
        with _blaming_memory():
            future = self._started().submit(job)

        def result() -> T:
            with _blaming_memory():
                return future.result()

        return result

    def share(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Return what jobs return, in their order; few jobs are done here.

        This process begins with the first job, the others with the last: let it be the longest. A
        bar on the terminal says how many are done and how long the rest will take.
        """
        if self._number == 0 or len(jobs) < _FEWEST:
            return [job() for job in _shown(jobs)]
        with _blaming_memory():
            given = [(self._started().submit(job), job) for job in reversed(jobs)]
            return [
                job() if future.cancel() else future.result() for future, job in _shown(given[::-1])
            ]

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            keep_working_directory_out()
            one_thread = dict.fromkeys(THREAD_VARIABLES, "1")
            self._pool = ProcessPoolExecutor(max_workers=self._number, env=one_thread)
        return self._pool


def in_processes(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Return what the jobs return, in their order; see `Workers.share`."""
    with Workers() as workers:
        return workers.share(jobs)


@contextmanager
def _blaming_memory() -> Iterator[None]:
    try:
        yield
    except (BrokenProcessPool, OSError) as error:
        raise DpreproError(
            "a process that draws figures did not start or ended early, maybe for want of memory; "
            "with LOKY_MAX_CPU_COUNT=1 in the environment a single process draws them all"
        ) from error


def _shown(items: Sequence[T]) -> Iterator[T]:
    from dprepro.release.progress import shown_steps  # not in the other processes

    return shown_steps("drawing", items, lambda _: "figures")


def save_figures(
    figures: Mapping[str, Callable[[], Figure]],
    folder: Path,
    formats: Iterable[str],
    more: Mapping[str, Callable[[Sequence[bytes], str], bytes]] | None = None,
    is_cut: bool = True,
) -> list[Path]:
    """Draw each figure, write it as NAME.FORMAT, for every format, and return the paths.

    Several processes share the figures: what draws one can be pickled, and the largest is the last.
    The same figures give the same bytes. `more` makes further files, by name, from those of the
    figures in a format and from that format. Margins are cut to what is drawn, unless not `is_cut`.

    Raises DpreproError if a file cannot be written.
    """
    endings = list(formats)
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is not drawn
        jobs = [partial(contents, draw, endings, is_cut) for draw in figures.values()]
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


def contents(
    draw: Callable[[], Figure], endings: Sequence[str], is_cut: bool = False
) -> list[bytes]:
    """Return the files of the figure that `draw` returns, one a format; see `save_figures`."""
    figure = draw()
    lay_out(figure)
    box = figure.get_tightbbox().padded(_EDGE) if is_cut else None
    files = []
    # Without a salt, matplotlib makes up new identifiers in each SVG file. Publishers refuse the
    # fonts that it puts into PDF files otherwise (Type 3).
    with matplotlib.rc_context({"svg.hashsalt": "dprepro", "pdf.fonttype": 42}):
        for ending in endings:
            file = io.BytesIO()
            figure.savefig(file, format=ending, dpi=DPI, bbox_inches=box, **_MORE[ending])
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


def inline(figure: Figure, prefix: str, label: str) -> Markup:
    """Return a figure as an ``<svg>`` element to stand in HTML.

    Greys become the page's own (CSS variables ``--g0``, paper, to ``--g100``, ink, in steps of
    ten); text stays text, in the page's font. The same figure gives the same bytes. `prefix` begins
    every identifier, and must differ between the figures of a page. `label` is what a reader who
    cannot see it is told.
    """
    text = io.StringIO()
    lay_out(figure)
    with matplotlib.rc_context({"svg.hashsalt": "dprepro", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(legible(text.getvalue()))
    for parent in list(root.iter()):
        for child in list(parent):
            if _plain(child.tag) in ("metadata", "style"):  # the style would be the whole page's
                parent.remove(child)
    names = _referenced(root, prefix)
    for element in root.iter():
        _adapt(element, names)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": legible(label)})
    _unwrap(root)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def draw_inline(draw: Callable[[], Figure], prefix: str, label: str) -> Markup:
    """Return what `inline` does of the figure that `draw` returns: for another process."""
    return inline(draw(), prefix, label)


def _referenced(root: ElementTree.Element, prefix: str) -> dict[str, str]:
    """Return new names for the identifiers that something refers to."""
    found: dict[str, None] = {}
    for element in root.iter():
        for name, value in element.attrib.items():
            if _plain(name) in ("href", "clip-path"):
                found.update(dict.fromkeys(_REFERENCE.findall(value)))
    return {old: f"{prefix}{number}" for number, old in enumerate(found)}


def _unwrap(element: ElementTree.Element) -> None:
    """Put the children of groups that say nothing in the groups' places."""
    children = []
    for child in element:
        _unwrap(child)
        children += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = children


def _adapt(element: ElementTree.Element, names: dict[str, str]) -> None:
    element.tag = _plain(element.tag)
    given = dict(element.attrib)
    element.attrib.clear()
    for name, value in given.items():
        name = _plain(name)
        if name == "id" and value not in names:
            continue
        element.set(name, _value(name, value, names))
    if element.tag not in ("text", "tspan"):
        element.text = None
    element.tail = None


def _value(name: str, value: str, names: dict[str, str]) -> str:
    if name == "id":
        return names[value]
    if name in ("href", "clip-path"):
        return _REFERENCE.sub(lambda match: "#" + names[match[1]], value)
    if name in _GEOMETRY:
        return _LONG.sub(lambda match: f"{float(match[0]):.1f}", " ".join(value.split()))
    return _style(value) if name == "style" else value


def _style(style: str) -> str:
    def ink(match: re.Match[str]) -> str:  # of a grey level of 0 to 255, in steps of ten per cent
        return f"var(--g{round(10 * (255 - int(match[1], 16)) / 255) * 10})"

    return _GREY.sub(ink, _FONT.sub(r"font-size: \1", _FAMILY.sub("", style)))


@cache
def _plain(name: str) -> str:
    return _NAMESPACE.sub("", name)


def put_together(
    files: Sequence[bytes], keys: bytes, ending: str, below: float, widest: float
) -> bytes:
    """Return a picture of pictures in rows, all of one format, ``png`` or ``svg``.

    A strip of `below` inches is cut from the lower edge of each file; the picture in the file
    `keys` stands below all in its place. A row may take `widest` inches.
    """
    return (_png if ending == "png" else _svg)([*files, keys], below, widest)


def _places(
    sizes: Sequence[tuple[float, float]], widest: float, gap: float
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Return the left upper corner of each picture, and the size of all; the last has its row."""
    places: list[tuple[float, float]] = []
    across, down, row, width = 0.0, 0.0, 0.0, 0.0
    for number, (wide, high) in enumerate(sizes):
        if places and (across + wide > widest or number == len(sizes) - 1):
            across, down, row = 0.0, down + row + gap, 0.0
        places.append((across, down))
        across, row = across + wide, max(row, high)
        width = max(width, across)
    return places, (width, down + row)


def _png(files: Sequence[bytes], below: float, widest: float) -> bytes:
    from PIL import Image

    pictures = [Image.open(io.BytesIO(file)) for file in files]
    cut = [round(below * DPI)] * (len(files) - 1) + [0]
    sizes = [(p.width, p.height - low) for p, low in zip(pictures, cut, strict=True)]
    places, whole = _places(sizes, widest * DPI, _GAP * DPI)
    paper = Image.new("RGB", (round(whole[0]), round(whole[1])), "white")
    for picture, place, size in zip(pictures, places, sizes, strict=True):
        paper.paste(picture.crop((0, 0, *size)), (round(place[0]), round(place[1])))
    file = io.BytesIO()
    paper.save(file, "png", dpi=(DPI, DPI), **PNG)
    return file.getvalue()


def _svg(files: Sequence[bytes], below: float, widest: float) -> bytes:
    texts = [_METADATA.sub("", file.decode()) for file in files]
    heads = [_HEAD.match(text) for text in texts]
    assert all(heads), "matplotlib begins an SVG file with its size"
    cut = [below * POINTS_PER_INCH] * (len(files) - 1) + [0.0]
    sizes = [(float(h[1]), float(h[2]) - low) for h, low in zip(heads, cut, strict=True) if h]
    places, whole = _places(sizes, widest * POINTS_PER_INCH, _GAP * POINTS_PER_INCH)
    parts = [_WHOLE.format(*whole)]
    for number, (text, head) in enumerate(zip(texts, heads, strict=True)):
        # Identifiers of one picture must not be those of another.
        body = _IDENTIFIER.sub(rf"\g<1>p{number}-", text[head.end() :] if head else "")
        parts.append(_PART.format(*places[number], *sizes[number]) + body)
    return ("".join(parts) + "</svg>\n").encode()
