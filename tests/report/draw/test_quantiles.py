"""The figure of all cells of a document, and the note that names the farthest."""

import re

import pytest

from dprepro.published.document import load_documents
from dprepro.report.draw.quantiles import draw_quantiles, far_cells
from dprepro.report.judge.check import check_documents
from dprepro.report.read.metrics import margins
from dprepro.report.read.results import Results
from tests.report.journals import cell, spread


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
