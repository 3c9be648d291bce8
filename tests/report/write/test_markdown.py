import re

import pytest

from dprepro.report.write.tables import markdown_tables
from tests.report.samples import COMPARE, PLAIN, measured, tables


def markdown_grid(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("style", [PLAIN, COMPARE])
def test_markdown_rows_have_as_many_fields_as_the_header(style):
    grid = markdown_grid(markdown_tables(tables(style), style))
    header, rule, *rows = grid
    assert header[:2] == ["Dataset", "ε"]
    assert set(rule) == {"---"}
    assert {len(row) for row in grid} == {len(header)}
    assert len(rows) == sum(len(g.rows) for t in tables(style) for g in t.groups)


def test_markdown_marks_best_incomplete_and_verdict():
    text = markdown_tables(tables(COMPARE), COMPARE)
    assert "| **0.883 ± 0.005** (0.883 ± 0.005, equivalent) |" in text
    assert "0.800 ± 0.005 (0.880 ± 0.006, worse)" in text
    assert r"0.700 ± 0.005 \[3/25\]" in text
    assert r"ValueError: a\|b\_c" in text


def test_every_row_has_dataset_and_level():
    cells = [measured(0.8, epsilon=epsilon) for epsilon in (0.5, 1.0)]
    assert [row[:2] for row in markdown_grid(markdown_tables(tables(PLAIN, cells), PLAIN))[2:]] == [
        ["Adult-Income", "0.5"], ["Adult-Income", "1"]
    ]  # fmt: skip
