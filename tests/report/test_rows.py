import io
import json
import math

import pandas as pd
import pytest

from dprepro.judge.check import Again, check_documents
from dprepro.judge.rerun import compare_records
from dprepro.judge.snapshot import COLUMNS
from dprepro.papers.document import load_documents
from dprepro.report.layout import build_tables
from dprepro.report.rows import (
    again_json,
    check_json,
    csv_tables,
    json_tables,
    recorded_rows,
    rerun_json,
    table_rows,
    verdict_row,
)
from dprepro.results.folder import Results
from dprepro.results.margins import margins
from tests.report.journals import cell, records, spread
from tests.report.samples import COMPARE, PLAIN, tables

DOCUMENTS = list(load_documents().values())
GDP = cell(spread(0.8, 0.005, 25), epsilon=1.0)
EBM = cell(spread(0.92, 0.005, 25), label="ebm", epsilon=math.inf)
CLASSIC = cell(spread(0.88, 0.005, 25), label="dp-ebm-classic-2021", epsilon=1.0)
RESULTS = Results((GDP, CLASSIC, EBM))


def rows(compare=False):
    return list(table_rows(build_tables(RESULTS, DOCUMENTS, compare=compare), compare))


def test_a_non_private_cell_shared_by_two_columns_comes_once():
    found = [(row["method"], row["epsilon"]) for row in rows()]
    assert sorted(found, key=str) == [
        ("dp-ebm-classic-2021", 1.0),
        ("dp-ebm-gdp-2021", 1.0),
        ("ebm", None),
    ]


def test_a_row_holds_what_was_measured():
    row = next(row for row in rows() if row["method"] == "dp-ebm-gdp-2021")
    assert row["mean"] == pytest.approx(0.8)
    assert row["sd"] == pytest.approx(0.005)
    assert (row["splits"], row["planned"], row["failed"], row["delta"]) == (25, 25, 0, 1e-6)
    assert "verdict" not in row


def test_comparing_adds_one_row_for_each_printed_cell_with_its_verdict():
    found = rows(compare=True)
    printed = [c for c in DOCUMENTS[0].cells() if c.dataset == "adult"]
    assert len(found) == len(printed)
    row = next(r for r in found if (r["method"], r["epsilon"]) == ("dp-ebm-gdp-2021", 1.0))
    assert row["published_mean"] == 0.883
    assert row["verdict"] == "worse"
    assert row["difference"] == pytest.approx(0.8 - 0.883)
    assert row["ci_low"] < row["difference"] < row["ci_high"]
    assert row["equivalent"] is (row["p_equivalence"] < 0.05) is False
    missing = next(r for r in found if r["method"] == "dpboost-2021")
    assert (missing["mean"], missing["verdict"]) == (None, "not run")


def test_all_rows_have_the_same_keys():
    for compare in (False, True):
        assert len({tuple(row) for row in rows(compare)}) == 1


def test_a_check_is_strict_json_with_every_cell():
    report = check_documents([DOCUMENTS[0]], RESULTS, [], margins())
    whole = json.loads(json.dumps(check_json(report), allow_nan=False))
    assert len(whole["cells"]) == 184 == sum(whole["counts"].values())
    assert (whole["passes"], whole["unexplained"]) == (False, 1)
    assert whole["margins"]["auc"] == {"absolute": 0.005, "relative": 0.0}
    assert {row["limited_by"] for row in whole["cells"]} <= {None, "our splits"}
    first = {**verdict_row(report.verdicts[0]), "selected_from": 39}
    assert whole["cells"][0] == json.loads(json.dumps(first))
    chosen, others = whole["choices"]
    assert [row["settings"] for row in whole["choices"]] == ["chosen", "not chosen"]
    for verdict, count in whole["counts"].items():
        assert chosen[verdict] + others[verdict] == count
    assert {row["method"] for row in whole["cells"] if row["selected_from"] is None} >= {"logistic"}
    assert (whole["fitted"], whole["held_out"], whole["known"]) == ([], [], [])
    (column,) = (
        c for c in whole["documents"]["dp-ebm-2021"]["columns"] if c["method"] == "dp-ebm-gdp-2021"
    )
    assert (column["selected_from"], column["fitted"]) == (2, False)
    (on,) = column["selected_on"]
    assert (on["tables"], on["metrics"]) == (["2", "3"], ["auc", "rmse"])


def test_an_inconclusive_cell_says_what_limits_it():
    near = cell(spread(0.886, 0.005, 25), epsilon=1.0)
    report = check_documents([DOCUMENTS[0]], Results((near,)), [], margins())
    (row,) = [row for row in check_json(report)["cells"] if row["verdict"] == "inconclusive"]
    assert (row["limited_by"], row["splits_needed"]) == ("our splits", 69)


def test_claims_are_part_of_the_json():
    report = check_documents([DOCUMENTS[0]], RESULTS, [], margins())
    whole = json.loads(json.dumps(check_json(report), allow_nan=False))
    claims = {row["claim"]: row for row in whole["claims"]}
    assert (whole["unexplained_claims"], whole["stale_claims"]) == (0, [])
    best = claims["best-in-all"]
    assert (best["verdict"], best["explanation"]) == ("not run", None)
    assert best["published_whole"]["figures"] == {"won": 40, "settings": 40}
    assert len(best["missing"]) == 138
    assert len(best["impossible"]) == 20
    ran = claims["gdp-against-classic"]
    assert ran["measured"] is None, "no setting above epsilon 1 has run"
    assert "dp-ebm-2021 table 2: adult, dp-ebm-gdp-2021, epsilon 2" in ran["missing"]


def test_a_rerun_is_strict_json():
    report = compare_records(records([0.5]), records([0.6]))
    whole = json.loads(json.dumps(rerun_json(report), allow_nan=False))
    assert (whole["passes"], whole["matched"], len(whole["mismatches"])) == (False, 1, 1)
    assert whole["tolerances"] == {"dp-ebm-gdp-2021": 1e-6}


def test_a_method_that_is_not_compared_has_no_tolerance_in_json():
    same = records([0.5], label="logistic")
    whole = json.loads(json.dumps(rerun_json(compare_records(same, same)), allow_nan=False))
    assert (whole["passes"], whole["tolerances"]) == (True, {"logistic": None})


@pytest.mark.parametrize("style", [PLAIN, COMPARE])
def test_csv_reads_back(style):
    frame = pd.read_csv(io.StringIO(csv_tables(tables(style), style)))
    frame = frame[frame.dataset == "adult"]
    gdp = frame[(frame.method == "dp-ebm-gdp-2021") & (frame.epsilon == 1)]
    assert gdp["mean"].item() == pytest.approx(0.883)
    assert gdp.is_best.item()
    assert math.isinf(frame[frame.method == "ebm"].epsilon.item())
    broken = frame[frame.method == "broken"]
    assert (broken.failed.item(), broken["mean"].isna().item()) == (2, True)
    assert ("verdict" in frame) is style.compare


@pytest.mark.parametrize("style", [PLAIN, COMPARE])
def test_json_reads_back_to_the_same_numbers_as_csv(style):
    rows = json.loads(json_tables(tables(style), style))
    frame = pd.read_csv(io.StringIO(csv_tables(tables(style), style)))
    assert [row["method"] for row in rows] == list(frame.method)
    means = [math.nan if row["mean"] is None else row["mean"] for row in rows]
    assert means == pytest.approx(list(frame["mean"]), nan_ok=True)
    assert next(r for r in rows if r["method"] == "ebm")["epsilon"] is None


def test_what_is_recorded_are_the_printed_cells_then_the_rest_each_once():
    own = [cell(spread(0.7, 0.005), label="mine"), cell(spread(0.9, 0.005), dataset="mine")]
    results = Results((*RESULTS.cells, *own))
    report = check_documents([DOCUMENTS[0]], results, [], margins())
    found = recorded_rows(build_tables(results, [DOCUMENTS[0]], compare=True), report)
    assert len(found) == 184 + 2
    assert [row["method"] for row in found[:184]] == [c.published.method for c in report.verdicts]
    assert [(row["dataset"], row["method"]) for row in found[184:]] == [
        ("adult", "mine"), ("mine", "dp-ebm-gdp-2021")
    ]  # fmt: skip
    assert {row["config"] for row in found} == {"", "test"}
    assert all(tuple(row) == COLUMNS for row in found)


def test_a_row_of_a_verdict_has_no_number_of_planned_splits():
    """It would be that of the config: a printed cell wants those of its document."""
    judged = check_documents([DOCUMENTS[0]], RESULTS, [], margins()).verdicts
    measured = next(v for v in judged if v.result)
    row = verdict_row(measured)
    assert "planned" not in row
    assert (row["splits"], row["verdict"]) == (25, measured.verdict.value)


def test_one_split_has_a_mean_and_no_deviation():
    (row,) = table_rows(build_tables(Results((cell([0.8], label="mine"),)), []), False)
    assert (row["mean"], row["sd"], row["splits"]) == (0.8, None, 1)


def test_the_json_of_a_check_has_the_columns_of_each_document():
    report = check_documents([DOCUMENTS[0]], RESULTS, [], margins())
    (paper,) = check_json(report)["documents"].items()
    name, said = paper
    assert (name, said["cells"]) == (DOCUMENTS[0].paper, report.omnibus.cells)
    assert said["far"] == report.omnibus.far > 0
    assert said["sum_of_squares"] == report.omnibus.sum_of_squares
    assert [(c["dataset"], c["method"], c["verdict"]) for c in said["columns"]] == [
        (c.dataset, c.method, c.state.value) for c in report.columns
    ]
    assert said["columns"]
    empty = check_json(check_documents([DOCUMENTS[0]], Results(()), [], margins()))
    assert list(empty["documents"].values()) == [
        {"cells": 0, "far": 0, "sum_of_squares": None, "p_value": None, "columns": []}
    ]


def test_what_is_run_again_is_json_with_what_changed_or_null():
    report = compare_records(records([0.5]), records([0.5]))
    assert again_json(Again(report, None, 0))["changed"] is None
    assert again_json(Again(report, ("a cell",), 2)) == {
        "rerun": rerun_json(report), "changed": ["a cell"], "stale_entries": 2
    }  # fmt: skip


def test_json_keeps_names_as_they_are():
    shown = json_tables(build_tables(Results((cell([0.8], label="métode"),)), []), PLAIN)
    assert '"métode"' in shown
