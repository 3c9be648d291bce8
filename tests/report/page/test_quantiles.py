"""The figure of all cells of a document, and the note that names the farthest."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dprepro.judge.check import check_documents
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import load_documents
from dprepro.report.page import figures
from dprepro.report.page.figures import draw_quantiles, far_cells
from dprepro.results.folder import Results
from dprepro.results.margins import margins
from tests.report.journals import cell, spread
from tests.report.page.judged import judged, score_of


def test_the_note_has_the_number_that_the_axis_has():
    documents = [load_documents()["dp-ebm-2021"]]
    cells = [cell(spread(mean, 0.005), epsilon=e) for mean, e in ((0.875, 0.5), (0.5, 1.0))]
    report = check_documents(documents, Results(tuple(cells)), [], margins())
    note = far_cells(report)
    score, z = map(float, re.fullmatch(r".*: (-[\d.]+) \(z (-[\d.]+)\)", note).groups())
    assert z < -100 < score < -5
    (axes,) = draw_quantiles(report).axes
    assert axes.get_ylabel() == "normal score of z"
    drawn = [y for line in axes.lines for y in line.get_ydata()]
    assert min(drawn) == pytest.approx(score, abs=0.05)


SCORES = (0.3, -2.0, 4.0, -0.1, 1.1, -9.0, 0.8)
DIFFERENT = {4.0, -9.0}


@pytest.fixture
def report(monkeypatch):
    """A report of seven judged cells, two of them different, and of two that do not count."""
    monkeypatch.setattr(figures, "normal_score", score_of)
    cells = [judged(score, is_different=score in DIFFERENT) for score in SCORES]
    cells.append(judged(50.0, is_different=False, is_final=False))
    cells.append(judged(60.0, is_different=False, compared=False))
    return SimpleNamespace(verdicts=cells)


def test_dots_lie_at_the_quantiles_of_their_ranks_by_verdict(report):
    (axes,) = draw_quantiles(report).axes
    diagonal, within, open_ones, other = axes.lines
    across = stats.norm.ppf((np.arange(7) + 0.5) / 7)
    np.testing.assert_allclose(diagonal.get_xdata(), across)
    np.testing.assert_allclose(diagonal.get_ydata(), across)
    ordered = sorted(SCORES)
    for line, sign in ((within, 1), (open_ones, -1)):
        kept = [score not in DIFFERENT and sign * score > 0 for score in ordered]
        np.testing.assert_allclose(line.get_xdata(), across[kept])
        np.testing.assert_allclose(line.get_ydata(), np.array(ordered)[kept])
    assert sorted(other.get_ydata()) == sorted(DIFFERENT)
    assert other.get_marker() != within.get_marker() == open_ones.get_marker()
    assert within.get_markerfacecolor() != open_ones.get_markerfacecolor() == "none"
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["equivalent (3)", "inconclusive (2)", "different (2)"]
    assert not axes.spines["top"].get_visible()


def test_the_band_holds_95_percent_of_each_rank(report):
    (axes,) = draw_quantiles(report).axes
    (path,) = axes.collections[0].get_paths()
    ranks = np.arange(1, 8)
    uniform = stats.beta(ranks, 8 - ranks)
    for share, side in ((0.025, np.min), (0.975, np.max)):
        for x, y in zip(axes.lines[0].get_xdata(), stats.norm.ppf(uniform.ppf(share)), strict=True):
            at = path.vertices[np.isclose(path.vertices[:, 0], x), 1]
            assert side(at) == pytest.approx(y)


def test_one_judged_cell_is_no_figure(report):
    report.verdicts = [report.verdicts[0], *report.verdicts[-2:]]
    assert draw_quantiles(report) is None
    report.verdicts *= 2
    assert draw_quantiles(report) is not None


def test_the_note_names_the_farthest_cells_that_differ_and_no_more_than_asked(report, monkeypatch):
    assert far_cells(report) == "pol, m-9: -9.0 (z -27.0); pol, m4: +4.0 (z +12.0)"
    assert far_cells(report, most=1) == "pol, m-9: -9.0 (z -27.0)"
    for one in report.verdicts:
        one.verdict = Verdict.WORSE
    assert far_cells(report).count(";") == 4
