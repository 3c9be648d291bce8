import io
import json
import math

import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.errors import DpreproError
from tests.report.journals import records, spread, write


@pytest.fixture
def results(tmp_path):
    lines = [
        *records(spread(0.883, 0.005), epsilon=1.0, ledger={"true_epsilon": 0.876}),
        *records(spread(0.92, 0.003), label="ebm", epsilon=math.inf),
        *records(spread(0.7, 0.003), label="ebm", epsilon=math.inf, dataset="telco"),
    ]
    write(tmp_path, "one", lines)
    write(tmp_path, "two", records(spread(4321, 9), metric="rmse", epsilon=1.0, dataset="prices"))
    return tmp_path


def table(*arguments):
    outcome = CliRunner().invoke(app, ["table", *map(str, arguments)])
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_the_default_is_the_printed_layout(results):
    text = table("--results", results)
    assert "dp-ebm-2021, Table 2" in text
    assert "0.883 ± 0.005" in text
    assert "4321 ± 9" in text
    assert text.index("Adult-Income") < text.index("Telco-Churn") < text.index("prices")


def test_results_is_the_default_folder(results, monkeypatch):
    monkeypatch.chdir(results)
    results.joinpath("results").mkdir()
    results.joinpath("two.jsonl").rename(results / "results" / "two.jsonl")
    text = table()
    assert "prices" in text
    assert "Adult" not in text


def test_comparing_adds_published_values_and_verdicts(results):
    text = table("--results", results, "--compare", "--format", "markdown", "--dataset", "adult")
    assert "0.883 ± 0.005 (0.883 ± 0.005, reproduced)" in text
    assert "(0.880 ± 0.006, not run)" in text
    assert "Telco" not in text


def test_formats_agree(results):
    rows = json.loads(table("--results", results, "--format", "json"))
    frame = pd.read_csv(io.StringIO(table("--results", results, "--format", "csv")))
    assert [row["mean"] for row in rows] == pytest.approx(list(frame["mean"]))
    assert r"\toprule" in table("--results", results, "--format", "latex")


def test_the_tolerance_can_be_overridden(results):
    arguments = ["--results", results, "--compare", "--format", "json", "--dataset", "telco"]
    verdicts = [
        next(r["verdict"] for r in json.loads(table(*arguments, *more)) if r["method"] == "ebm")
        for more in ([], ["--tolerance", "auc=0.5"])
    ]
    assert verdicts == ["worse", "reproduced"]


def test_metric_config_and_true_epsilon_choose_what_is_shown(results):
    assert "prices" not in table("--results", results, "--metric", "auc")
    assert "Adult" not in table("--results", results, "--config", "two")
    assert "ε 0.876" in table("--results", results, "--true-epsilon")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "acu"], "did you mean 'auc'"),
        (["--metric", "mae"], "The results have: auc, rmse"),
        (["--dataset", "adlut"], "did you mean 'adult'"),
        (["--config", "tow"], "did you mean 'two'"),
        (["--paper", "dp-ebm-2020"], "did you mean 'dp-ebm-2021'"),
        (["--tolerance", "auc"], "METRIC=TERMS"),
    ],
)
def test_mistakes_say_what_is_allowed(results, arguments, message):
    with pytest.raises(DpreproError, match=message):
        table("--results", results, *arguments)


def test_a_document_shows_only_what_it_prints(results):
    text = table("--results", results, "--paper", "dp-ebm-2021")
    assert "Adult-Income" in text
    assert "prices" not in text
    with pytest.raises(DpreproError, match="there are results of prices"):
        table("--results", results, "--paper", "dp-ebm-2021", "--config", "two")


def test_no_journals_say_how_to_write_some(tmp_path):
    with pytest.raises(DpreproError, match="dprepro run"):
        table("--results", tmp_path)


def test_the_help_gives_an_example():
    assert "Example: dprepro table" in table("--help")
