"""Comparisons in terminals, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from dprepro.data import PRIVATE_PREFIX, SYNTHETIC_PREFIX
from dprepro.judge.comparing import compare_methods
from dprepro.report.comparing import (
    comparison_notes,
    comparison_rows,
    csv_rows,
    json_comparison,
    render_comparison,
    split_rows,
)
from dprepro.results.folder import read_results
from tests.report.journals import records, write

A, B = "dp-ebm-plus", "dp-ebm-gdp"
OURS, THEIRS = [0.92, 0.93, 0.9, 0.91], [0.9, 0.9, 0.9, 0.88]


def compared(folder, *groups, name="c"):
    write(folder, name, [record for group in groups for record in group])
    return compare_methods(read_results(folder), A, B)


def text(found, width=80):
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(render_comparison(found))
    return console.file.getvalue()


def notes(found):
    return "\n".join(comparison_notes(found))


@pytest.fixture
def found(tmp_path):
    return compared(tmp_path, records(OURS, A, 1.0), records(THEIRS, B, 1.0))


def test_a_row_has_difference_interval_p_winner_and_wins(found):
    (row,) = found.rows
    line = next(line for line in text(found, 120).splitlines() if line.strip().startswith("adult"))
    assert line.split() == [
        "adult", "1", "+0.020", "±0.014",
        f"{row.test.low:+.3f}", "to", f"{row.test.high:+.3f}", f"{row.test.p:.2g}", "-", "3/1/0",
    ]  # fmt: skip
    assert text(found).startswith("AUROC (higher is better): dp-ebm-plus minus dp-ebm-gdp")


def test_the_better_one_is_named_and_metrics_have_tables_of_their_own(tmp_path):
    noise = [0.001, -0.001, 0.002, 0.0, 0.0, 0.001]
    shop = {"dataset": "shop"}
    found = compared(
        tmp_path,
        records([0.9 + e for e in noise], A, 1.0),
        records([0.8] * 6, B, 1.0),
        records([9000 + e for e in noise], A, 1.0, "rmse", **shop),
        records([8000 + 1000 * e for e in noise], B, 1.0, "rmse", **shop),
    )
    assert "adjusted for 2 rows (Holm)" in notes(found)
    lines = text(found, 160).splitlines()
    of_adult, of_shop = (next(x for x in lines if name in x[:12]) for name in ("adult", "shop"))
    assert f" {A} " in of_adult
    assert f" {B} " in of_shop
    assert "+999.5 ±1.0 " in of_shop
    assert any("RMSE (lower is better)" in line for line in lines)
    (together,) = [line for line in lines if line.startswith("Epsilon 1")]
    assert f": {A} is better in the mean on 1 of 2 datasets, {B} on 1." in together
    assert together.endswith("Sign test: p 1, n 2.")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal_and_nothing_is_cut(tmp_path, width):
    long = {"dataset": "a-dataset-with-a-long-name"}
    found = compared(
        tmp_path,
        *(records([x * 1e5 for x in OURS], A, e, "rmse", **long) for e in (0.5, 1.0)),
        *(records([x * 1e5 for x in THEIRS], B, e, "rmse", **long) for e in (0.5, 1.0)),
    )
    printed = text(found, width)
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    assert "+2,000" in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "Random splits: interval and p are about new rows"),
        ({"evaluation": "folds"}, "Folds: interval and p are about new rows"),
        ({"evaluation": "test-set", "test_share": 0.0}, "not about new rows"),
        ({"data_fingerprint": f"{SYNTHETIC_PREFIX}x"}, "SYNTHETIC data"),
        ({"data_fingerprint": f"{PRIVATE_PREFIX}x"}, "PRIVATE rows, exact scores"),
        ({"tuned": True}, f"{A} is tuned, its parameters were chosen on rows of this dataset"),
    ],
)
def test_notes_say_what_the_numbers_are_about(tmp_path, keys, said):
    shop = {"dataset": "shop", **keys}
    found = compared(tmp_path, records(OURS, A, 1.0, **shop), records(THEIRS, B, 1.0, **shop))
    assert said in notes(found)
    assert "Holm" not in notes(found)  # there is one row


def test_notes_name_missing_splits_other_configs_and_domains(tmp_path):
    write(tmp_path, "one", records(OURS, A, 1.0, domain="public", ledger=None))
    found = compared(tmp_path, records([*THEIRS, 0.9], B, 1.0), name="two")
    said = notes(found)
    assert "adult: of two configs, one and two." in said
    assert f"adult: {A} has the public domain, {B} the observed one." in said
    assert f"adult: {A} is unverified, nothing says what epsilon it spends." in said
    failed = records(OURS, A, 1.0)
    failed[3] = replace(failed[3], status="failed", metrics={}, message="boom")
    write(tmp_path / "x", "c", [*failed, *records(THEIRS, B, 1.0)])
    assert "[3 of 4]" in text(compare_methods(read_results(tmp_path / "x"), A, B))


def test_a_difference_without_spread_has_no_p(tmp_path):
    found = compared(tmp_path, records([0.75] * 3, A, 1.0), records([0.5] * 3, B, 1.0))
    assert "adult: the difference is the same on all splits" in notes(found)
    (row,) = comparison_rows(found)
    assert (row["difference"], row["p"], row["ci_low"], row["better"]) == (0.25, None, None, None)


def test_flat_rows_are_the_numbers_of_the_test(found):
    (row,) = comparison_rows(found)
    test = found.rows[0].test
    assert row["difference"] == test.mean == pytest.approx(row["mean_first"] - row["mean_second"])
    assert (row["sd"], row["ci_low"], row["ci_high"], row["p"]) == (
        test.sd, test.low, test.high, test.p,
    )  # fmt: skip
    assert (row["won"], row["tied"], row["lost"], row["splits"]) == (3, 1, 0, 4)
    assert (row["first"], row["second"], row["config_first"]) == (A, B, "c")


def test_csv_has_a_row_for_each_level_or_each_split(tmp_path):
    found = compared(tmp_path, records(OURS, A, math.inf), records(THEIRS, B, 1.0))
    (row,) = csv.DictReader(io.StringIO(csv_rows(comparison_rows(found))))
    assert (row["epsilon_first"], row["epsilon_second"]) == ("inf", "1.0")
    splits = list(csv.DictReader(io.StringIO(csv_rows(split_rows(found)))))
    assert [int(split["split"]) for split in splits] == [0, 1, 2, 3]
    assert [float(split["value_first"]) for split in splits] == OURS
    assert [float(split["value_second"]) for split in splits] == THEIRS
    assert float(splits[1]["difference"]) == pytest.approx(0.03)


def test_json_has_rows_datasets_and_notes_and_is_strict(tmp_path):
    shop = {"dataset": "shop"}
    found = compared(
        tmp_path,
        records(OURS, A, math.inf), records(THEIRS, B, 1.0),
        records(OURS, A, math.inf, **shop), records(THEIRS, B, 1.0, **shop),
    )  # fmt: skip
    document = json.loads(json_comparison(found), parse_constant=pytest.fail)
    assert [row["dataset"] for row in document["rows"]] == ["adult", "shop"]
    assert document["rows"][0]["epsilon_first"] is None
    assert document["across_datasets"] == [
        {"epsilon": 1.0, "won": 2, "tied": 0, "lost": 0, "p_sign": 0.5, "p_wilcoxon": 0.5}
    ]
    assert "splits" not in document
    assert len(json.loads(json_comparison(found, per_split=True))["splits"]) == 8


def test_datasets_with_several_levels_are_named_once_and_set_apart(tmp_path):
    found = compared(
        tmp_path,
        *(
            records(values, label, epsilon, dataset=dataset)
            for dataset in ("adult", "shop", "telco")
            for epsilon in (0.5, 1.0, 2.0)
            for label, values in ((A, OURS), (B, THEIRS))
        ),
    )
    lines = text(found, 120).splitlines()
    first = next(i for i, line in enumerate(lines) if line.strip().startswith("adult"))
    starts = [line.strip().split(" ")[0] for line in lines[first : first + 11]]
    assert starts == ["adult", "1", "2", "", "shop", "1", "2", "", "telco", "1", "2"]
    assert "Over datasets: tests of Demsar" in notes(found)
    said = "Sign test: p 0.25, n 3; signed-rank test: p 0.25, n 3."
    assert " ".join(text(found, 120).split()).count(said) == 3  # levels
    assert "± its standard deviation" in json_comparison(found)


def test_datasets_with_one_level_have_no_blank_lines_between(tmp_path):
    groups = [
        records(values, label, 1.0, dataset=dataset)
        for dataset in ("adult", "shop")
        for label, values in ((A, OURS), (B, THEIRS))
    ]
    found = compared(tmp_path, *groups)
    lines = [line.strip().split(" ")[0] for line in text(found, 120).splitlines()]
    assert lines.index("shop") == lines.index("adult") + 1


def test_one_dataset_is_not_tested_over_datasets(found):
    assert "Over datasets" not in notes(found)
