"""The tables of docs/evidence/rivals-maddock.md are those of the journals and printed figures."""

import re

import pytest

from dprepro.papers.published_cell import load_published
from tests.docs.pages import ROOT
from tests.docs.test_numbers import cells, rounds_to, sentences

PAGE = "docs/evidence/rivals-maddock.md"
LEVELS = (0.1, 0.5, 1.0)
BESIDE = {
    "Rows of Give Me Some Credit, ": "maddock-credit1",
    "Default of credit card clients (their Credit 2), ": "maddock-credit2",
    "Adult with all 32,561 rows, ": "maddock-adult",
}
NUMBERS = {"three": 3, "five": 5, "six": 6, "ten": 10}


def table(after):
    """Return the cells of the first table after some words, without its head."""
    lines = (ROOT / PAGE).read_text(encoding="utf-8").split(after, 1)[1].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    split = [[c.strip() for c in line.strip("|").split("|")] for line in lines[first + 2 : last]]
    return {row[0].strip("`"): row[1:] for row in split}


def splits_said(after):
    word = re.search(rf"{re.escape(after)}(\w+)", sentences(PAGE))[1]
    return NUMBERS[word]


def test_every_printed_cell_stands_beside_ours():
    printed = {(c.method, c.epsilon): c for c in load_published("maddock-2022")}
    found, shown = cells("results", "maddock-credit1"), table("Means of ours are over")
    splits = splits_said("Means of ours are over ")
    run = {method for method, _ in printed if "histogram" not in method}
    assert set(shown) == run
    for method, row in shown.items():
        for k, epsilon in enumerate(LEVELS):
            assert row[2 * k] == f"{printed[method, epsilon].mean:.4f}"
            cell = found[method, epsilon]
            assert cell.splits("auc") == splits
            assert rounds_to(cell.mean("auc"), row[2 * k + 1]), (method, epsilon)


@pytest.mark.parametrize("after", BESIDE)
def test_ours_beside_are_those_of_the_journals(after):
    found, splits = cells("results", BESIDE[after]), splits_said(after)
    shown = table(after)
    assert {"dp-ebm-plus", "dp-ebm-gdp", "dp-random-boosting"} <= set(shown)
    for method, row in shown.items():
        for epsilon, stated in zip(LEVELS, row, strict=True):
            assert found[method, epsilon].splits("auc") == splits
            assert rounds_to(found[method, epsilon].mean("auc"), stated), (method, epsilon)
