"""Files of figures: each figure is laid out once and drawn once a format."""

from collections import Counter
from functools import partial

import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.layout_engine import ConstrainedLayoutEngine

from dprepro.report.draw.figures import draw_curves, looks_of, write_figures
from dprepro.report.draw.files import DPI, save_figures
from dprepro.report.draw.svg import draw_inline
from tests.report.draw.test_figures import few, near_and_far


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
