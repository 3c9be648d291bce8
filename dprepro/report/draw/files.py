"""Figures as files and as SVG in a page, drawn by several processes.

The SVG has the page's fonts and colours, light and dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
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
from matplotlib.text import Text

from dprepro.experiment.environment import keep_working_directory_out
from dprepro.report.sheet import Sheet
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import legible
from dprepro.runtime.threads import THREAD_VARIABLES

T = TypeVar("T")

# A process starts in about the time that five figures take.
_FEWEST = 10
_MOST_PROCESSES = 8
PNG = {"compress_level": 3}
"""How Pillow writes them: in two thirds of the time, and two per cent larger."""
# What makes the bytes of a file follow from the figure alone, by its ending.
_MORE: Mapping[str, Any] = {
    "png": {"pil_kwargs": PNG},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}
_EDGE = 0.1  # inches
# Labels and titles may be longer than their axes by so many inches at each end, and become smaller
# by this factor at most.
_BEYOND, _SMALLEST = 0.15, 0.6

_NAMESPACE = re.compile(r"\{[^}]*\}")
_REFERENCE = re.compile(r"#([^)]*)")
_GREY = re.compile(r"#([0-9a-f]{2})\1\1\b")
_FAMILY = re.compile(r"font-family: [^;]*(; )?")
_FONT = re.compile(r"font: [^;]*?([\d.]+px)[^;]*")
_LONG = re.compile(r"-?\d+\.\d{2,}")
_GEOMETRY = ("d", "x", "y", "width", "height")


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
        given: dict[int, Future[T]] = {}
        last, found = len(jobs), []
        with _blaming_memory():
            for number in _shown(range(len(jobs))):
                # No job that is given away is taken back: loky would print a traceback of it when
                # it is stopped.
                while number < last - 1 and sum(not f.done() for f in given.values()) < self._ahead:
                    last -= 1
                    given[last] = self._started().submit(jobs[last])
                found.append(given[number].result() if number in given else jobs[number]())
        return found

    @property
    def _ahead(self) -> int:
        """How many jobs the other processes have at a time: one that they do, and one more."""
        return 2 * self._number

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
    sheet: Sheet | None = None,
    is_fitted: bool = False,
) -> list[Path]:
    """Draw each figure, write it as NAME.FORMAT, for every format, and return the paths.

    Several processes share the figures: what draws one can be pickled, and the largest is the last.
    The same figures give the same bytes. A figure gets the size and the letters of the sheet, and
    without a size its margins are cut to what is drawn, unless it `is_fitted` already.

    Raises DpreproError if a file cannot be written, or a figure does not fit on the sheet.
    """
    endings = list(formats)
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is not drawn
        jobs = [partial(contents, draw, endings, sheet, is_fitted) for draw in figures.values()]
        for name, files in zip(figures, in_processes(jobs), strict=True):
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
    draw: Callable[[], Figure],
    endings: Sequence[str],
    sheet: Sheet | None = None,
    is_fitted: bool = False,
) -> list[bytes]:
    """Return the files of the figure that `draw` returns, one a format; see `save_figures`."""
    sheet = sheet or Sheet()
    figure = draw()
    if not is_fitted:
        _fit(figure, sheet)
    lay_out(figure)
    if sheet.width and not is_fitted:
        _keep_inside(figure)
    is_cut = not (is_fitted or sheet.width)
    box = figure.get_tightbbox().padded(_EDGE) if is_cut else None
    files = []
    # Without a salt, matplotlib makes up new identifiers in each SVG file. Publishers refuse the
    # fonts that it puts into PDF files otherwise (Type 3).
    with matplotlib.rc_context({"svg.hashsalt": "dprepro", "pdf.fonttype": 42}):
        for ending in endings:
            file = io.BytesIO()
            figure.savefig(file, format=ending, dpi=sheet.dpi, bbox_inches=box, **_MORE[ending])
            files.append(file.getvalue())
    return files


def _fit(figure: Figure, sheet: Sheet) -> None:
    """Give a figure the size of the sheet, and its letters the size that labels have there."""
    figure.set_dpi(sheet.dpi)  # small letters are as wide as their dots allow
    if sheet.width and sheet.height:
        figure.set_size_inches(sheet.width, sheet.height)
    if sheet.font is not None:
        _set_letters(figure, sheet.font)
    if sheet.width:
        _narrow_legends(figure)


def _set_letters(figure: Figure, points: float) -> None:
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    sizes = [float(text.get_fontsize()) for text in texts]
    axes = figure.axes
    labels = [axis.label for one in axes for axis in (one.xaxis, one.yaxis)]
    own = [float(label.get_fontsize()) for label in labels if label.get_text()]
    factor = points / max(own or sizes, default=points)
    for one in axes:  # of ticks that are made later
        for axis in (one.xaxis, one.yaxis):
            (tick, *_) = axis.get_major_ticks(1)
            axis.set_tick_params(labelsize=factor * float(tick.label1.get_fontsize()))
    for text, size in zip(texts, sizes, strict=True):
        text.set_fontsize(factor * size)


def _keep_inside(figure: Figure) -> None:
    """Make labels and titles that are longer than their axes allow smaller: layout leaves them.

    Raises DpreproError if one would leave the figure even so.
    """
    page = figure.bbox
    found = [(text, page) for part in (figure, *figure.subfigs) for text in part.texts]
    for axes in figure.axes:
        labels = (axes.title, axes.xaxis.label, axes.yaxis.label)
        found += [(text, axes.bbox.padded(_BEYOND * figure.dpi)) for text in labels]
    for text, room in found:
        if not text.get_text():
            continue
        box = text.get_window_extent()
        is_upright = text.get_rotation() == 90
        (low, high), (least, most), (start, end) = (
            (one.intervaly if is_upright else one.intervalx) for one in (box, page, room)
        )
        middle, half = (low + high) / 2, (high - low) / 2
        there = min(middle - least, most - middle, (end - start) / 2)
        if half > there:
            size = float(text.get_fontsize())
            text.set_fontsize(0.97 * size * max(there / half, _SMALLEST))
        box = text.get_window_extent()
        if not (page.padded(1).contains(*box.p0) and page.padded(1).contains(*box.p1)):
            raise DpreproError(_no_room(figure))


def _narrow_legends(figure: Figure) -> None:
    """Put the entries of a legend that is wider than the figure below each other."""
    for legend in list(figure.legends):
        if legend.get_window_extent().width > figure.bbox.width:
            texts = legend.get_texts()
            figure.legend(
                handles=legend.legend_handles, labels=[text.get_text() for text in texts],
                loc="outside lower center", frameon=False, fontsize=texts[0].get_fontsize(),
            )  # fmt: skip
            legend.remove()


def _no_room(figure: Figure) -> str:
    wide, high = figure.get_size_inches()
    return (
        f"{wide:g} x {high:g} inches have no room for these panels and what is written around "
        "them: choose a larger --size, a smaller --font, or draw less"
    )


def lay_out(figure: Figure) -> None:
    """Lay a figure out once for all its files, if it asks for a layout.

    Left to itself, matplotlib lays it out for each file, and draws it twice to do so.

    Raises DpreproError if it has no room for what stands around its panels.
    """
    engine = figure.get_layout_engine()
    if engine is None:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied")
        try:
            engine.execute(figure)
        except UserWarning:
            raise DpreproError(_no_room(figure)) from None
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
