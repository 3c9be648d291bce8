import io
import json
import math

import pandas as pd
import pytest

from dprepro.published.document import load_documents
from dprepro.report.judge.check import check_documents
from dprepro.report.judge.rerun import compare_records
from dprepro.report.layout.tables import build_tables
from dprepro.report.read.metrics import margins
from dprepro.report.read.results import Results
from dprepro.report.write.rows import (
    check_json,
    csv_tables,
    json_tables,
    rerun_json,
    table_rows,
    verdict_row,
)
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
    assert whole["cells"][0] == json.loads(json.dumps(verdict_row(report.verdicts[0])))


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
