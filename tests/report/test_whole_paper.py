"""Journals that hold exactly the printed numbers must give the printed tables back."""

import io
import json
import math
import re

import pandas as pd
import pytest

from dprepro.judge.check import check_documents
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import load_documents
from dprepro.report.formatting import Style, number, words
from dprepro.report.latex import latex_tables
from dprepro.report.layout import build_tables
from dprepro.report.rows import csv_tables, json_tables
from dprepro.results.folder import JournalPlan, read_results
from dprepro.results.margins import level, margins
from tests.report.journals import records, spread, write

PAPER = load_documents()["dp-ebm-2021"]
PRINTED = {(c.dataset, c.method, c.epsilon): c for c in PAPER.cells()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One journal a dataset, 25 splits a cell."""
    folder = tmp_path_factory.mktemp("results")
    for dataset in {cell.dataset for cell in PAPER.cells()}:
        lines = [
            record
            for c in PAPER.cells()
            if c.dataset == dataset
            for record in records(
                spread(c.mean, c.std), c.method, c.epsilon, c.metric, dataset=dataset
            )
        ]
        write(folder, dataset, lines)
    plans = {path.stem: JournalPlan(25, PAPER.paper) for path in folder.glob("*.jsonl")}
    return read_results(folder, plan_of=plans.get)


@pytest.fixture(scope="module")
def tables(results):
    return build_tables(results, [PAPER], compare=True)


def test_every_cell_but_the_private_data_is_reproduced(results):
    report = check_documents([PAPER], results, [], margins())
    assert report.passes(require_all=True)
    assert not [cell for cell in report.verdicts if cell.verdict.is_deviation]
    assert report.counts[Verdict.EQUIVALENT] + report.counts[Verdict.INCONCLUSIVE] == 184 - 23
    assert report.counts[Verdict.IMPOSSIBLE] == 23
    for cell in report.verdicts:
        if cell.verdict.is_final:
            rounding = 1e-12 * cell.published.mean
            assert abs(cell.difference) <= rounding
            assert cell.comparison.low <= rounding
            assert cell.comparison.high >= -rounding


def test_there_are_two_tables_of_four_datasets_and_six_rows(tables):
    assert [(t.paper, t.table) for t in tables] == [("dp-ebm-2021", "2"), ("dp-ebm-2021", "3")]
    for table in tables:
        assert [column.title for column in table.columns] == [
            column.title for column in PAPER.tables[table.table].columns[:4]
        ]
        assert [group.dataset for group in table.groups] == list(PAPER.tables[table.table].datasets)
        assert all(len(group.rows) == 6 for group in table.groups)


def test_every_entry_of_the_tables_is_the_printed_one(tables):
    places = [(t, g, e) for t in tables for g in t.groups for row in g.rows for e in row]
    assert len(places) == 2 * 4 * 6 * 4
    for table, group, entry in places:
        printed = PRINTED[group.dataset, entry.label, entry.epsilon]
        shown = words(entry, group, table.metric.name, Style(compare=True))
        assert shown.measured == shown.published
        assert shown.measured == number(printed.mean, printed.std, printed.decimals)
        assert shown.mark == ""


@pytest.mark.parametrize(
    ("dataset", "epsilon", "bold"),
    [
        ("adult", 0.5, {"dp-ebm-gdp-2021"}),
        ("adult", 4.0, {"dp-ebm-gdp-2021", "dp-ebm-classic-2021"}),
        ("adult", math.inf, {"lightgbm"}),
        ("credit", math.inf, {"ebm"}),
        ("elevators", 4.0, {"dp-ebm-gdp-2021"}),
        ("elevators", 8.0, {"dp-ebm-gdp-2021", "dp-ebm-classic-2021"}),
        ("elevators", math.inf, {"lightgbm"}),
        ("wine-white", 0.5, {"dp-ebm-gdp-2021"}),
    ],
)
def test_bold_stands_where_the_paper_has_it(tables, dataset, epsilon, bold):
    (group,) = [g for t in tables for g in t.groups if g.dataset == dataset]
    (row,) = [row for row in group.rows if row[0].epsilon == epsilon]
    assert {entry.label for entry in row if entry.is_best} == bold


def test_dp_ebm_gdp_is_bold_in_nearly_all_private_rows(tables):
    rows = [row for t in tables for g in t.groups for row in g.rows]
    private = [row for row in rows if math.isfinite(row[0].epsilon)]
    assert len(private) == 40
    assert all(row[3].is_best for row in private), "the paper: best in all 40 settings"


def _latex_numbers(text):
    """Read each measured number of a LaTeX table: {(dataset heading, epsilon, column): mean}."""
    numbers, heading = {}, ""
    for line in text.splitlines():
        fields = [f.strip() for f in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]
        if len(fields) < 3 or not re.fullmatch(r"[\d.]+|\$\\infty\$", fields[1]):
            continue
        heading = fields[0] or heading
        for column, field in enumerate(fields[2:]):
            match = re.search(r"([\d.]+) \$\\pm\$ ([\d.]+)", field)
            numbers[heading, fields[1], column] = (float(match[1]), float(match[2]))
    return numbers


def test_latex_holds_every_number(tables):
    found = _latex_numbers(latex_tables(tables, Style()))
    expected = {}
    for table in tables:
        for group in table.groups:
            for row in group.rows:
                for column, entry in enumerate(row):
                    printed = PRINTED[group.dataset, entry.label, entry.epsilon]
                    head = r"$\infty$" if math.isinf(entry.epsilon) else level(entry.epsilon)
                    place = (group.title, head, column)
                    expected[place] = (printed.mean, printed.std)
    assert found == expected


def test_csv_and_json_hold_each_printed_cell_once(tables):
    style = Style(compare=True)
    frame = pd.read_csv(io.StringIO(csv_tables(tables, style)))
    rows = json.loads(json_tables(tables, style))
    assert len(frame) == len(rows) == 184
    for row in rows:
        epsilon = math.inf if row["epsilon"] is None else row["epsilon"]
        printed = PRINTED[row["dataset"], row["method"], epsilon]
        assert row["mean"] == pytest.approx(printed.mean, abs=1e-12)
        assert (row["published_mean"], row["published_sd"]) == (printed.mean, printed.std)
    keys = list(zip(frame.dataset, frame.method, frame.epsilon, strict=True))
    assert set(keys) == set(PRINTED)
    assert frame["mean"].to_numpy() == pytest.approx(frame["published_mean"].to_numpy())
