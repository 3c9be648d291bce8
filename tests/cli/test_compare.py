"""`dprepro compare`, on made-up journals and on the committed ones."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from matplotlib.image import imread
from scipy import stats
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.data import PRIVATE_PREFIX
from dprepro.experiment.journal import journal_bytes, journal_files
from dprepro.results import folder as results_module
from tests.report.journals import records, write

COMMITTED = Path(__file__).resolve().parents[2] / "results"
OURS, THEIRS = [0.92, 0.93, 0.9, 0.91], [0.9, 0.9, 0.9, 0.88]


def invoke(*arguments, width="80"):
    given = ["compare", *map(str, arguments)]
    return CliRunner().invoke(app, given, env={"COLUMNS": width})


def printed(*arguments):
    outcome = invoke(*arguments)
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    return outcome.stdout


@pytest.fixture
def folder(tmp_path):
    levels = (1.0, 4.0)
    lines = [
        *(r for e in levels for r in records(OURS, "mine", e)),
        *(r for e in levels for r in records(THEIRS, "ebm", e)),
        *(r for e in levels for r in records(OURS, "mine", e, dataset="shop")),
        *(r for e in levels for r in records(THEIRS, "ebm", e, dataset="shop")),
    ]
    write(tmp_path, "c", lines)
    return tmp_path


def rows(*arguments):
    return list(csv.DictReader(io.StringIO(printed(*arguments, "--format", "csv"))))


def test_a_method_can_be_named_as_tables_show_it(folder):
    assert printed("mine", "EBM", "--results", folder) == printed(
        "mine", "ebm", "--results", folder
    )


def test_options_choose_datasets_levels_configs_and_the_metric(folder):
    base = ("mine", "ebm", "--results", folder)
    assert len(rows(*base)) == 4
    assert {row["dataset"] for row in rows(*base, "--dataset", "shop")} == {"shop"}
    assert {row["epsilon_first"] for row in rows(*base, "--epsilon", 4)} == {"4.0"}
    assert len(rows(*base, "--config", "c", "--metric", "roc_auc")) == 4
    assert len(rows(*base, "--per-split", "--epsilon", 1)) == 8
    assert len(json.loads(printed(*base, "--format", "json"))["rows"]) == 4
    assert "AUROC (higher is better): mine minus ebm" in printed(*base)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine", "mine"], "name two different ones"),
        (["mine", "eb"], "did you mean 'ebm'"),
        (["mine", "ebm", "--dataset", "shap"], "did you mean 'shop'"),
        (["mine", "ebm", "--config", "d"], "no journal of config 'd'"),
        (["mine", "ebm", "--metric", "auk"], "did you mean 'auc'"),
        (["mine", "ebm", "--metric", "f1"], "no F1"),
        (["mine", "ebm", "--epsilon", "3"], "no privacy level in common among those asked for"),
        (
            ["mine", "ebm", "--epsilon", "nan"],
            "nan is not a privacy level. Allowed: numbers above 0",
        ),
        (["mine", "ebm", "--epsilon", "0"], "0 is not a privacy level. Allowed: numbers above 0"),
        (["mine", "ebm", "--per-split"], "add --format csv or --format json"),
    ],
)
def test_mistakes_are_refused_with_what_there_is(folder, arguments, message):
    outcome = invoke(*arguments, "--results", folder)
    assert outcome.exit_code != 0
    assert message in str(outcome.exception)


@pytest.fixture
def three(folder):
    lines = [r for d in ("adult", "shop") for r in records([0.95, 0.9, 0.92, 0.93], "third", 1.0,
             dataset=d)]  # fmt: skip
    write(folder, "d", lines)
    return folder


def test_three_names_or_all_are_ranked(three):
    named = json.loads(
        printed("mine", "EBM", "third", "--results", three, "--format", "json")
    )  # fmt: skip
    assert named["rankings"][0]["mean_ranks"] == {"third": 1.0, "mine": 2.0, "ebm": 3.0}
    every = json.loads(printed("--all", "--results", three, "--format", "json"))
    assert every["rankings"][0]["mean_ranks"] == named["rankings"][0]["mean_ranks"]
    two = printed("--all", "--config", "c", "--results", three)
    assert two == printed("mine", "ebm", "--results", three, "--config", "c")


@pytest.mark.parametrize("ending", ["pdf", "png", "svg"])
def test_ranks_are_drawn_to_a_file_with_the_same_bytes(three, tmp_path, ending):
    paths = [tmp_path / folder / f"ranks.{ending}" for folder in ("x", "y")]
    for path in paths:
        printed("mine", "ebm", "third", "--results", three, "--output", path)
    for name in (f"ranks.{ending}", f"ranks-wins.{ending}"):
        files = [path.with_name(name).read_bytes() for path in paths]
        assert files[0] == files[1] != b""


def test_ranks_have_the_size_that_is_asked_for(three, tmp_path):
    asked = ["--size", "3.3x2.4", "--font", "6", "--dpi", "100"]
    path = tmp_path / "ranks.png"
    printed("mine", "ebm", "third", "--results", three, "--output", path, *asked)
    for name in ("ranks.png", "ranks-wins.png"):
        assert imread(tmp_path / name).shape[:2] == (240, 330)


@pytest.mark.parametrize("format", ["latex", "markdown"])
def test_two_methods_have_the_formats_of_papers(folder, format):
    text = printed("mine", "ebm", "--results", folder, "--format", format)
    assert "AUROC (higher is better): mine minus ebm" in text
    assert text.count("0/1/3") + text.count("3/1/0") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no method to compare: name two methods or more, or give --all"),
        (["mine"], "one method, 'mine' to compare"),
        (["mine", "ebm", "thirt"], "did you mean 'third'"),
        (["mine", "ebm", "EBM"], "ebm named more than once"),
        (["mine", "--all"], "leave the names out"),
        (["--all", "--config", "d"], "finished results of one method, third"),
        (["mine", "ebm", "--output", "x.pdf"], "two methods have none"),
        (["mine", "ebm", "third", "--output", "x.doc"], "Allowed endings: .pdf, .png, .svg"),
        (["mine", "ebm", "third", "--epsilon", "4"], "third: no results at the privacy levels"),
        (["mine", "ebm", "third", "--per-split", "--format", "latex"], "add --format csv"),
    ],
)
def test_mistakes_among_many_are_refused_with_what_there_is(three, arguments, message):
    outcome = invoke(*arguments, "--results", three)
    assert outcome.exit_code != 0
    assert message in str(outcome.exception)


def test_the_committed_results_are_ranked_as_scipy_does():
    names = ("dp-ebm-gdp", "dp-ebm-sound", "dpboost-sound")
    found = json.loads(
        printed(*names, "--epsilon", 2, "--results", COMMITTED, "--format", "json")
    )  # fmt: skip
    (ranking,) = found["rankings"]
    signed = [
        [(1 if data["higher_is_better"] else -1) * data["means"][name] for name in names]
        for data in ranking["datasets"]
    ]
    assert len(signed) == 10
    ranks = [stats.rankdata([-score for score in row]) for row in signed]
    for name, column in zip(names, zip(*ranks, strict=True), strict=True):
        assert ranking["mean_ranks"][name] == pytest.approx(sum(column) / 10)
    statistic = stats.friedmanchisquare(*zip(*signed, strict=True)).statistic
    assert ranking["friedman"]["chi_squared"] == pytest.approx(statistic)


def test_private_rows_are_said_to_be_kept(tmp_path):
    shop = {"dataset": "shop", "data_fingerprint": f"{PRIVATE_PREFIX}x"}
    write(tmp_path, "c", [*records(OURS, "mine", **shop), *records(THEIRS, "ebm", **shop)])
    outcome = invoke("mine", "ebm", "--results", tmp_path)
    assert "PRIVATE DATA: exact scores" in outcome.stderr
    assert "keep it to yourself" in outcome.stderr


def values(config, label, epsilon):
    found = {}
    for line in journal_bytes(journal_files(COMMITTED)[config]).splitlines():
        entry = json.loads(line)
        task = entry.get("task", {})
        if (task.get("label"), task.get("epsilon")) == (label, epsilon):
            found[task["split"]] = entry["metrics"]["auc"]
    return [found[split] for split in sorted(found)]


def test_the_committed_results_read_no_more_than_they_need(monkeypatch):
    read = []
    whole = results_module.HeldJournal
    monkeypatch.setattr(
        results_module, "HeldJournal", lambda name, *more: read.append(name) or whole(name, *more)
    )
    arguments = ("dp-ebm-plus", "dp-ebm-gdp", "--results", COMMITTED)
    found = json.loads(printed(*arguments, "--format", "json"))
    assert read
    assert all(name.startswith(("plus-", "maddock-")) for name in read)
    assert {row["dataset"] for row in found["rows"]} >= {"adult", "telco", "cal-housing", "wine"}
    (row,) = [
        r for r in found["rows"] if (r["dataset"], r["epsilon_first"]) == ("adult", 1.0)
    ]  # fmt: skip
    ours, theirs = (values("plus-adult", label, 1.0) for label in ("dp-ebm-plus", "dp-ebm-gdp"))
    assert len(ours) == row["splits"] == 25
    # Nadeau and Bengio's t is Student's, made smaller by the correction.
    t = stats.ttest_rel(ours, theirs).statistic / ((1 / 25 + 0.25) * 25) ** 0.5
    assert row["p"] == pytest.approx(2 * stats.t(24).sf(abs(t)), rel=1e-9)
    assert row["better"] == "dp-ebm-plus"
    assert row["won"] == sum(a > b for a, b in zip(ours, theirs, strict=True))


def test_a_config_with_both_methods_hides_no_other_dataset(folder):
    labels = [*records(OURS, "a", method="twice"), *records(OURS, "b", method="twice")]
    write(folder, "several", [*labels, *records(THEIRS, "ebm")])
    write(folder, "one", records(OURS, "twice", dataset="bank"))
    write(folder, "two", records(THEIRS, "ebm", dataset="bank"))
    base = ("twice", "ebm", "--results", folder)
    assert {row["dataset"] for row in rows(*base)} == {"bank"}
    assert {row["dataset"] for row in rows(*base, "--dataset", "bank")} == {"bank"}
    outcome = invoke(*base, width="200")
    assert "'twice' is a method with several labels on adult: a, b. Name" in outcome.output
    refused = invoke(*base, "--dataset", "adult")
    assert "several labels on adult" in str(refused.exception)
