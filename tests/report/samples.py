"""Results of all kinds, as tables for the tests of what writes them."""

import math

from dprepro.papers.document import load_documents
from dprepro.report.formatting import Style
from dprepro.report.layout import build_tables
from dprepro.results.folder import ResultCell, Results
from tests.report.journals import cell, spread, task

DOCUMENTS = list(load_documents().values())
PLAIN, COMPARE, SPENT = Style(), Style(compare=True), Style(spent_epsilon=True)


def measured(mean, label="dp-ebm-gdp-2021", epsilon=1.0, splits=25, **fields):
    return cell(spread(mean, 0.005, splits), label=label, epsilon=epsilon, **fields)


CELLS = [
    measured(0.883),
    measured(0.8, "dp-ebm-classic-2021"),
    measured(0.47, "dp-logistic", delta=0.0),
    measured(0.923, "ebm", math.inf),
    measured(0.839, dataset="telco", epsilon=4.0),
    measured(0.7, "mine_&_50%", splits=3),
    ResultCell(
        task("broken", 1.0), ("t",), {}, failed=2, planned=25, messages=("ValueError: a|b_c",)
    ),
    ResultCell(
        task("absent", 1.0), ("t",), {}, skipped=25, planned=25, messages=("not installed",)
    ),
]


def tables(style=PLAIN, cells=CELLS):
    return build_tables(Results(tuple(cells)), DOCUMENTS, compare=style.compare)
