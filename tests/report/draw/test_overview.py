"""The page's first figure: a dot for each judged cell, a row for each document."""

from types import SimpleNamespace

import numpy as np
import pytest

from dprepro.report.draw import overview
from dprepro.report.draw.overview import draw_overview
from tests.report.draw.judged import judged, score_of


@pytest.fixture
def report(monkeypatch):
    """A report of two documents with judged cells, and of one whose cells are all open."""
    monkeypatch.setattr(overview, "normal_score", score_of)
    first = [judged(s, is_different=abs(s) > 3) for s in (5.0, 0.1, -0.1, 20.0, -30.0, 0.6)]
    last = [judged(0.1, is_different=False)] * 12
    nothing = [judged(1.0, is_different=False, is_final=False)]
    nothing += [judged(1.0, is_different=False, compared=False)]
    cells = {"first": first, "open": nothing, "last": last}
    return SimpleNamespace(
        papers=list(cells), of_paper=lambda p: SimpleNamespace(verdicts=cells[p])
    )


def dots(figure):
    """Return (marker, x, y) of all dots, "o" for rings and "." for discs, as they were drawn."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() in "o^"]
    return [
        (
            "."
            if line.get_markeredgewidth() == 0 and line.get_marker() == "o"
            else line.get_marker(),
            float(x),
            float(y),
        )
        for line in lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def test_each_cell_is_a_dot_at_its_score_by_verdict(report):
    found = dots(draw_overview(report))
    first = [(marker, x) for marker, x, y in found if y > -0.3]
    assert first == [(".", 0.0), (".", 0.5), ("o", 0.0), ("^", -8.0), ("^", 5.0), ("^", 8.0)]


def test_dots_of_one_score_stand_on_each_other_and_stay_in_their_row(report):
    found = dots(draw_overview(report))
    heights = [y for _, x, y in found if y > -0.3 and x == 0.0]
    np.testing.assert_allclose(sorted(heights), [0.0, 0.55 / 9])
    rest = [y for _, _, y in found if y < -0.3]
    np.testing.assert_allclose(rest, -1 + 0.55 * np.arange(12) / 12)


def test_rows_are_named_with_their_counts_and_open_documents_have_none(report):
    figure = draw_overview(report)
    (axes,) = figure.axes
    shown = {text.get_text(): text.get_position() for text in axes.texts}
    assert shown == {
        "first: 6 cells, 3 different": (-8.5, 0.62),
        "last: 12 cells, 0 different": (-8.5, pytest.approx(-0.38)),
    }
    assert axes.get_xlim() == (-8.6, 8.6)
    low, high = axes.get_ylim()
    assert (low, high) == (pytest.approx(-1.15), 0.95)
    assert figure.get_figheight() == pytest.approx(2 * 0.62 + 0.6)


def test_the_axis_says_that_its_ends_hold_all_beyond(report):
    (axes,) = draw_overview(report).axes
    assert list(axes.get_xticks()) == [-8, -4, -2, 0, 2, 4, 8]
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    assert names == ["≤ -8", "-4", "-2", "0", "2", "4", "≥ 8"]
    assert "measured minus published" in axes.get_xlabel()
    assert [name for name, spine in axes.spines.items() if spine.get_visible()] == ["bottom"]
    assert list(axes.get_yticks()) == []
    band = axes.patches[0]
    assert (band.get_x(), band.get_x() + band.get_width()) == (-1.96, pytest.approx(1.96))


def test_without_a_judged_cell_there_is_no_figure(report):
    report.papers = ["open"]
    assert draw_overview(report) is None
