"""Files of figures: each figure is laid out once and drawn once a format.

Several processes share the figures of a command, and their pictures are the same.

One picture is put together from the files of several, which are not drawn again.
"""

import io
import os
import re
import time
from collections import Counter
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.layout_engine import ConstrainedLayoutEngine

from dprepro.release import progress
from dprepro.report.draw import files
from dprepro.report.draw.curves import draw_curves, looks_of, write_figures
from dprepro.report.draw.files import (
    DPI,
    Workers,
    contents,
    draw_inline,
    in_processes,
    inline,
    legible,
    put_together,
    save_figures,
)
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import PlainConsole
from tests.report.draw.test_curves import few, near_and_far


@pytest.fixture
def done(monkeypatch):
    """Count how often figures are laid out and drawn."""
    counts = Counter()

    def counting(kind, name):
        given = getattr(kind, name)

        def counted(self, *arguments):
            counts[name] += 1
            return given(self, *arguments)

        monkeypatch.setattr(kind, name, counted)

    counting(Figure, "draw")
    counting(ConstrainedLayoutEngine, "execute")
    return counts


def laid_out():
    figure = Figure(figsize=(4, 3), layout="constrained")
    figure.subplots().set_ylabel("up")
    figure.text(1.2, 0.5, "beside")
    return figure


def test_a_figure_is_laid_out_once_and_drawn_once_a_format(done, tmp_path):
    save_figures({"f": laid_out}, tmp_path, ["png", "svg"])
    assert done == {"execute": 1, "draw": 2}
    done.clear()
    draw_inline(laid_out, "p-", "a picture")
    assert done == {"execute": 1, "draw": 1}


def test_curves_need_no_layout_and_no_panel_is_drawn_twice(done, tmp_path):
    panels = [few(), few("telco"), near_and_far()]
    paths = write_figures(panels, tmp_path, ["png", "svg"])
    assert len(paths) == 2 * (len(panels) + 1)
    keys = 1
    assert done == {"draw": 2 * (len(panels) + keys)}
    done.clear()
    draw_inline(partial(draw_curves, few(), looks_of([few()]), True), "p-", "a picture")
    assert done == {"draw": 1}


def test_margins_are_cut_to_what_is_drawn_unless_they_are_to_stay(tmp_path):
    (cut,) = save_figures({"cut": laid_out}, tmp_path, ["png"])
    (kept,) = save_figures({"kept": laid_out}, tmp_path, ["png"], is_cut=False)
    assert imread(kept).shape[:2] == (3 * DPI, 4 * DPI)
    assert imread(cut).shape[1] > 4.9 * DPI, "what stands outside is there"


def test_further_files_are_made_of_those_of_one_format(tmp_path):
    figures = {name: partial(Figure, figsize=(1, 1)) for name in "ab"}

    def make(files, ending):
        return f"{len(files)} {ending} {files[0] == files[1]}".encode()

    paths = save_figures(figures, tmp_path, ["png", "svg"], {"all": make})
    assert [path.name for path in paths[4:]] == ["all.png", "all.svg"]
    assert [path.read_text() for path in paths[4:]] == ["2 png True", "2 svg True"]


def test_several_processes_return_what_one_does_in_the_same_order(monkeypatch):
    jobs = [partial(divmod, number, 3) for number in range(12)]
    monkeypatch.setattr(files, "cpu_count", lambda: 3)
    several = in_processes(jobs)
    where = in_processes([_where] * 30)
    monkeypatch.setattr(files, "cpu_count", lambda: 1)
    assert several == in_processes(jobs) == [divmod(number, 3) for number in range(12)]
    assert where[0] == os.getpid(), "this process takes its share"
    assert 2 <= len(set(where)) <= 3
    assert in_processes([os.getpid] * 12) == [os.getpid()] * 12


def test_few_figures_start_no_process(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    assert in_processes([os.getpid] * 2) == [os.getpid()] * 2


def test_a_process_that_ends_early_is_one_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    with pytest.raises(DpreproError, match=r"ended early.*LOKY_MAX_CPU_COUNT=1"):
        in_processes([partial(_end_elsewhere, os.getpid())] * 60)


@pytest.mark.parametrize("processors", [1, 2])
def test_a_job_that_is_begun_early_is_done_elsewhere_where_there_is_another_processor(
    monkeypatch, processors
):
    monkeypatch.setattr(files, "cpu_count", lambda: processors)
    with Workers() as workers:
        begun = workers.begin(_where)
        failing = workers.begin(partial(_fail, "a model"))
        assert (begun() == os.getpid()) is (processors == 1)
        with pytest.raises(DpreproError, match="a model"):
            failing()
        assert workers.share([partial(divmod, 7, 3)] * 12) == [(2, 1)] * 12


def test_a_process_that_ends_before_its_early_job_is_one_error(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    with Workers() as workers:
        begun = workers.begin(partial(_end_elsewhere, os.getpid()))
        with pytest.raises(DpreproError, match=r"ended early.*LOKY_MAX_CPU_COUNT=1"):
            begun()


def test_an_error_of_a_job_is_raised_as_it_is(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    with pytest.raises(DpreproError, match="a feature"):
        in_processes([partial(_fail, "a feature")] * 12)


def test_a_bar_counts_the_figures_and_says_how_long_the_rest_will_take(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    console = PlainConsole(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(progress, "error_console", lambda: console)
    monkeypatch.setenv("TERM", "xterm")
    in_processes([_where] * 12)
    said = console.file.getvalue()
    assert "drawing figures" in said
    assert "/12" in said
    assert "left" in said


def _where():
    time.sleep(0.1)
    return os.getpid()


def _end_elsewhere(here):
    if os.getpid() != here:
        os._exit(3)
    time.sleep(0.2)


def _fail(text):
    raise DpreproError(text)


@pytest.fixture
def figure():
    made = Figure(figsize=(3, 2))
    axes = made.subplots()
    axes.plot([0, 1, 2], [0, 5, 1], color="#0072B2", marker="o", clip_on=True)
    axes.axhline(0.5, color="0.6")
    axes.set_title("a < b & c")
    return made


def test_identifiers_are_ours_and_every_reference_is_met(figure):
    svg = inline(figure, "p-", "a picture")
    names = re.findall(r' id="([^"]*)"', svg)
    assert len(names) == len(set(names)) > 0
    assert all(name.startswith("p-") for name in names)
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', svg)) == set(names)
    assert "<clipPath" in svg


def test_greys_follow_the_page_and_colours_stay(figure):
    svg = inline(figure, "p-", "a picture")
    assert set(re.findall(r"#[0-9a-f]{6}", svg)) == {"#0072b2"}
    assert {"var(--g0)", "var(--g40)", "var(--g100)"} <= set(re.findall(r"var\(--g\d+\)", svg))


def test_it_brings_no_style_font_or_address_along(figure):
    svg = inline(figure, "p-", "a picture")
    for unwanted in ("<style", "font-family", "http", "<metadata", "xlink"):
        assert unwanted not in svg
    assert "a &lt; b &amp; c</text>" in svg


def test_powers_on_a_logarithmic_axis_keep_their_digits():
    made = Figure(figsize=(3, 2))
    made.subplots().semilogy([1, 2], [1e2, 1e3])
    root = ElementTree.fromstring(inline(made, "p-", "a picture"))
    labels = {"".join("".join(text.itertext()).split()) for text in root.iter("text")}
    assert {"102", "103"} <= labels


def test_readers_who_do_not_see_it_are_told(figure):
    root = ElementTree.fromstring(inline(figure, "p-", 'so "<it>" is'))
    assert (root.get("role"), root.get("aria-label")) == ("img", 'so "<it>" is')
    assert root.get("width") is None
    assert len(root.get("viewBox").split()) == 4


def test_the_same_figure_gives_the_same_text(figure):
    assert inline(figure, "p-", "a picture") == inline(figure, "p-", "a picture")


def test_what_no_document_may_hold_is_replaced():
    assert legible("a\x00b\x1bc\ud800d\tε\n😀\ufffe") == "a\ufffdb\ufffdc\ufffdd\tε\n😀\ufffd"


SVG = "{http://www.w3.org/2000/svg}"
COLOURS = ["#ff0000", "#00ff00", "#0000ff", "#ffff00"]
BELOW = 0.5


def filled(colour, wide=2.0, high=1.5):
    """Return a figure of one colour, with a black strip at its lower edge."""
    figure = Figure(figsize=(wide, high), facecolor=colour)
    figure.add_axes((0, 0, 1, BELOW / high), facecolor="black")
    return figure


def together(ending, widest=4.1):
    colours = [*COLOURS, "#00ffff"]
    (*files, keys) = (contents(partial(filled, colour), [ending])[0] for colour in colours)
    return put_together(files, keys, ending, BELOW, widest)


def test_pictures_fill_rows_without_the_strip_and_the_keys_stand_below():
    pixels = imread(io.BytesIO(together("png")))
    assert pixels.shape[1] == 2 * 2 * 150
    seen = [tuple(np.rint(pixels[y, x, :3]).astype(int)) for y in (75, 250) for x in (150, 450)]
    assert seen == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)]
    height = pixels.shape[0] - 225
    assert tuple(pixels[height + 10, 150, :3]) == (0, 1, 1), "the picture of the keys"
    assert not pixels[-10, 150, :3].any(), "with its lower strip"
    black = (pixels[..., :3] == 0).all(axis=2)
    assert black.sum() == pytest.approx(BELOW * 150 * 300, rel=0.02), "no other strip is left"


def test_the_parts_of_an_svg_file_keep_their_sizes_and_identifiers_apart():
    text = together("svg").decode()
    root = ElementTree.fromstring(text)
    parts = root.findall(f"{SVG}svg")
    places = [tuple(float(part.get(name)) for name in ("x", "y")) for part in parts]
    assert places[:2] == [(0, 0), (144, 0)]
    assert [float(part.get("height")) for part in parts] == [72.0] * 4 + [108.0]
    assert all(part.get("viewBox") == f"0 0 144 {part.get('height')}" for part in parts)
    bottom = places[-1][1] + 108
    assert float(root.get("viewBox").split()[-1]) == pytest.approx(bottom)
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(names) == len(set(names))
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', text)) <= set(names)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_files_give_the_same_bytes_and_narrow_paper_takes_one_a_row(ending):
    assert together(ending) == together(ending)
    tall = together(ending, widest=1.0)
    if ending == "png":
        assert imread(io.BytesIO(tall)).shape[1] == 300
    else:
        parts = ElementTree.fromstring(tall).findall(f"{SVG}svg")
        assert {part.get("x") for part in parts} == {"0"}
