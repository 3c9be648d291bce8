"""Files of figures: each figure is laid out once and drawn once a format.

Several processes share the figures of a command, and their pictures are the same. Options say how
large they and their letters are.
"""

import io
import os
import re
import time
from collections import Counter
from functools import partial
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.layout_engine import ConstrainedLayoutEngine

from dprepro.release import progress
from dprepro.report.draw import files
from dprepro.report.draw.curves import looks_of
from dprepro.report.draw.files import (
    Workers,
    draw_inline,
    in_processes,
    inline,
    legible,
    save_figures,
)
from dprepro.report.draw.pages import draw_curves, write_figures
from dprepro.report.sheet import DPI, Sheet
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


def test_curves_need_no_layout_and_are_drawn_once_a_format(done, tmp_path):
    panels = [few(), few("telco"), near_and_far()]
    assert len(write_figures(panels, tmp_path, ["png", "svg"], each=True)) == 2 * len(panels)
    assert done == {"draw": 2 * len(panels)}
    done.clear()
    draw_inline(partial(draw_curves, [few()], looks_of([few()])), "p-", "a picture")
    assert done == {"draw": 1}


def test_margins_are_cut_to_what_is_drawn_unless_a_size_is_given(tmp_path):
    (cut,) = save_figures({"cut": laid_out}, tmp_path, ["png"])
    (kept,) = save_figures({"kept": laid_out}, tmp_path, ["png"], is_fitted=True)
    (sized,) = save_figures({"sized": crowded}, tmp_path, ["png"], Sheet(5.0, 2.5, dpi=100))
    assert imread(kept).shape[:2] == (3 * DPI, 4 * DPI)
    assert imread(cut).shape[1] > 4.9 * DPI, "what stands outside is there"
    assert imread(sized).shape[:2] == (250, 500)


def test_letters_follow_the_labels_of_axes(tmp_path):
    found = {}
    for points in (None, 6.0, 12.0):
        figure = laid_out()
        (axes,) = figure.axes
        axes.yaxis.label.set_fontsize(9)
        axes.set_title("above", fontsize=12)
        axes.tick_params(labelsize=6)
        save_figures({"f": lambda figure=figure: figure}, tmp_path, ["svg"], Sheet(font=points))
        ticks = {label.get_fontsize() for label in axes.get_xticklabels()}
        found[points] = (axes.yaxis.label.get_fontsize(), axes.title.get_fontsize(), ticks)
    assert found == {None: (9, 12, {6}), 6.0: (6, 8, {4}), 12.0: (12, 16, {8})}


def crowded(entries=3):
    """Return a figure with a long label, a long title and a legend wider than a column."""
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k in range(entries):
        left.plot([0, 1], [0, k], label=f"an entry of some length {k}")
    right.set_xlabel("a label that is longer than its axes are")
    figure.suptitle("a title that is as long as the whole figure, and is not cut")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def test_at_a_given_size_nothing_is_cut(tmp_path):
    figure = crowded()
    save_figures({"f": lambda: figure}, tmp_path, ["png"], Sheet(3.3, 3.0, 8.0))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        f"an entry of some length {k}" for k in range(3)
    ]
    right = figure.axes[1]
    boxes = [right.xaxis.label, *figure.texts, legend]
    for box in (one.get_window_extent() for one in boxes):
        assert figure.bbox.padded(1).contains(*box.p0)
        assert figure.bbox.padded(1).contains(*box.p1)
    heights = {round(text.get_window_extent().y0) for text in legend.get_texts()}
    assert len(heights) == 3, "entries stand below each other"
    with pytest.raises(DpreproError, match=r"2 x 3 inches have no room"):
        save_figures({"f": crowded}, tmp_path, ["png"], Sheet(2.0, 3.0, 12.0))


def test_a_figure_without_room_on_the_sheet_says_so(tmp_path):
    with pytest.raises(DpreproError, match=r"1 x 1 inches have no room.*larger --size"):
        save_figures({"f": laid_out}, tmp_path, ["svg"], Sheet(1.0, 1.0, 30.0))


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


@pytest.mark.parametrize("failing", [0, 11])
def test_an_error_leaves_no_traceback_of_what_was_not_done(monkeypatch, capfd, failing):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    jobs = [partial(_fail, "no room") if k == failing else _where for k in range(12)]
    with pytest.raises(DpreproError, match="no room"):
        in_processes(jobs)
    time.sleep(0.5)
    assert "Traceback" not in "".join(capfd.readouterr())


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
