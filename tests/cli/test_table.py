import csv
import io
import json
import math
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.journal import JournalTable
from dprepro.runtime.errors import DpreproError
from tests.in_process import in_process
from tests.lab import lab
from tests.report.journals import records, spread, write

__all__ = ["in_process", "lab"]


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
    outcome = CliRunner().invoke(app, ["table", *map(str, arguments)], env={"COLUMNS": "180"})
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_named_results_come_in_the_printed_layout(results):
    text = table("--results", results, "adult", "telco", "prices")
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
    assert "adult" not in text


def test_without_arguments_what_there_is_is_listed(results):
    text = table("--results", results)
    assert text.startswith(f"{results}: 4 cells, from 2 configs")
    assert "Configs without a printed table: dprepro table NAME" in text
    assert "  one              (config unknown) (3 cells)" in text
    assert "±" not in text
    assert "prices" in text


def shown(*arguments):
    return [
        (row["table"], row["dataset"]) for row in json.loads(table(*arguments, "--format", "json"))
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["adult"], {("2", "adult")}),
        (["two"], {(None, "prices")}),
        (["one"], {("2", "adult"), ("2", "telco")}),
        (["2"], {("2", "adult"), ("2", "telco")}),
        (["table2"], {("2", "adult"), ("2", "telco")}),
        (["dp-ebm"], {("2", "adult"), ("2", "telco")}),
        (["telco", "two"], {("2", "telco"), (None, "prices")}),
        (["telco", "adult", "--dataset", "telco"], {("2", "telco")}),
        (["one", "--dataset", "telco", "--dataset", "prices"], {("2", "telco")}),
    ],
)
def test_a_name_is_a_dataset_a_config_a_table_or_a_document(results, names, expected):
    found = shown("--results", results, *names)
    assert set(found) == expected


def test_what_two_names_show_alike_is_shown_once(results):
    once = shown("--results", results, "2")
    assert shown("--results", results, "2", "table2") == once


def test_a_clash_is_marked_and_ends_no_other_table(results):
    write(results, "clashing", records(spread(0.7, 0.005), epsilon=1.0, seed=2))
    text = table("--results", results, "--metric", "auc", "--format", "markdown")
    assert r"\[2 results\]" in text
    assert "in clashing and one. Choose one with --config clashing" in text
    assert "0.920 ± 0.003" in text
    rows = json.loads(table("--results", results, "adult", "--format", "json"))
    found = {tuple(row["config"]): row["mean"] for row in rows if row["epsilon"] == 1.0}
    assert found == {("clashing",): pytest.approx(0.7), ("one",): pytest.approx(0.883)}
    text = table("--results", results, "--config", "one", "--format", "markdown")
    assert "0.883 ± 0.005" in text
    assert "2 results" not in text


def test_a_config_without_a_finished_task_is_known(results):
    write(results, "empty", [])
    with pytest.raises(DpreproError, match="no task has finished yet"):
        table("--results", results, "empty")
    alone = write(results / "alone", "empty", []).parent
    assert "No task has finished yet" in table("--results", alone)


def test_no_journal_is_read_twice(results, monkeypatch):
    paths = []

    def read(path):
        paths.append(path.stem)
        return JournalTable(path)

    monkeypatch.setattr("dprepro.results.folder.JournalTable", read)
    table("--results", results, "one", "two", "adult")
    assert sorted(paths) == ["one", "two"]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("command", ["table", "run"])
def test_a_torn_line_is_one_line_on_the_screen(lab, command):
    if command == "run":
        given = ["run", str(lab.config()), "--results", str(lab.results)]
        assert CliRunner().invoke(app, given).exit_code == 0
    else:
        write(lab.results, "lab", records([0.8, 0.9]))
    path = lab.results / "lab.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    given = ["table"] if command == "table" else ["run", lab.folder / "lab.yaml", "--jobs", 1]
    outcome = subprocess.run(
        [sys.executable, "-m", "dprepro", *map(str, given), "--results", str(lab.results)],
        env=lab.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (line,) = outcome.stderr.splitlines()
    assert line.startswith(f"warning: {path}, line ")
    assert ": the last line was torn by a crash and is dropped (" in line


def test_comparing_adds_published_values_and_verdicts(results):
    text = table("--results", results, "--compare", "--format", "markdown", "--dataset", "adult")
    assert "0.883 ± 0.005 (0.883 ± 0.005, equivalent)" in text
    assert "(0.880 ± 0.006, not run)" in text
    assert "Telco" not in text


def test_formats_agree(results):
    rows = json.loads(table("--results", results, "--format", "json"))
    frame = pd.read_csv(io.StringIO(table("--results", results, "--format", "csv")))
    assert [row["mean"] for row in rows] == pytest.approx(list(frame["mean"]))
    assert r"\toprule" in table("--results", results, "--format", "latex")


def test_the_margin_can_be_overridden(results):
    arguments = ["--results", results, "--compare", "--format", "json", "--dataset", "telco"]
    verdicts = [
        next(r["verdict"] for r in json.loads(table(*arguments, *more)) if r["method"] == "ebm")
        for more in ([], ["--margin", "auc=0.5"])
    ]
    assert verdicts == ["worse", "equivalent"]


def test_metric_config_and_spent_epsilon_choose_what_is_shown(results):
    assert "prices" not in table("--results", results, "--metric", "auc")
    assert "Adult" not in table("--results", results, "--config", "two")
    assert "ε 0.876" in table("--results", results, "--true-epsilon")
    assert "0.883" in table("--results", results, "--format", "rich")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "acu"], "did you mean 'auc'"),
        (["--metric", "mae"], "The results have: auc, rmse"),
        (["--dataset", "adlut"], "did you mean 'adult'"),
        (["--config", "tow"], "did you mean 'two'"),
        (["--paper", "dp-ebm-2020"], "did you mean 'dp-ebm-2021'"),
        (["--margin", "auc"], "METRIC=TERMS"),
        (["prizes"], "nothing is called 'prizes'; did you mean 'prices'"),
        (["adult", "--dataset", "prices"], "the names given hold no results of dataset"),
        (["dp-ebm-2021", "--paper", "lazybb-2022"], "not part of lazybb-2022, and --paper shows"),
        (["figure-2"], "no results of what Table figure-2 of lazybb-2022 prints"),
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


@pytest.mark.parametrize("format", ["rich", "markdown", "latex", "csv", "json"])
def test_a_name_of_any_content_steers_no_terminal_and_is_whole_in_data(tmp_path, format):
    name = "\x1b[31m=a|b:smile:[red]"
    write(tmp_path, "odd", records(spread(0.8, 0.005), label=name, dataset="=d|e", epsilon=1.0))
    text = table("--results", tmp_path, "--metric", "auc", "--format", format)
    if format == "csv":
        (row,) = csv.DictReader(io.StringIO(text))
        assert (row["method"], row["dataset"]) == (name, "'=d|e")
    elif format == "json":
        assert [(row["method"], row["dataset"]) for row in json.loads(text)] == [(name, "=d|e")]
    if format != "csv":
        assert "\x1b" not in text
    if format == "rich":
        assert r"\x1b[31m=a|b:smile:[red]" in text


def test_a_warning_and_an_error_show_a_name_as_it_is(tmp_path):
    write(tmp_path, "odd", records(spread(0.8, 0.005), epsilon=1.0))
    done = subprocess.run(
        [sys.executable, "-m", "dprepro", "table", "[red]:smile:\x1b[31m", "--results", tmp_path],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "[red]:smile:" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_paper_gets_the_methods_datasets_digits_and_rows_that_it_wants(results):
    chosen = ("--results", results, "--methods", "ebm,dp-ebm-gdp-2021", "--datasets", "telco,adult",
              "--digits", "1", "--drop-empty")  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(table(*chosen, "--format", "csv"))))
    found = [(r["dataset"], r["method"], r["mean"]) for r in rows]
    assert found == [("telco", "ebm", "0.7"), ("adult", "dp-ebm-gdp-2021", "0.9"),
                     ("adult", "ebm", "0.9")]  # fmt: skip
    text = table(*chosen, "--format", "latex", "--caption", "Mine", "--label", "tab:m")
    assert r"\caption{Mine}" in text
    assert r"Dataset & $\varepsilon$ & EBM" in text
    assert text.index("Telco") < text.index("Adult")
    assert "### Mine" in table(*chosen, "--format", "markdown", "--caption", "Mine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "ebm,dp-ebm-gpd"], "did you mean"),
        (["--label", "tab:x"], "--format latex"),
        (["--caption", "x"], "for one table, and these are 2"),
        (["--caption", "x", "--format", "csv"], "no captions"),
    ],
)
def test_choices_that_cannot_be_met_say_why(results, arguments, message):
    with pytest.raises(DpreproError, match=message):
        table("--results", results, *arguments)


def test_columns_rows_and_datasets_without_a_number_are_left_out_when_asked(results):
    chosen = ("--results", results, "2", "--methods", "dp-ebm-gdp-2021", "--format", "markdown")
    cells = table(*chosen, "--compare").count("|")
    assert "dp-logistic" not in table(*chosen)
    whole = table("--results", results, "2", "--format", "markdown", "--compare")
    dropped = table("--results", results, "2", "--format", "markdown", "--drop-empty")
    assert "| — |" not in table(*chosen, "--drop-empty")
    assert cells < whole.count("|")
    assert "Logistic regression" in whole
    assert "Logistic regression" not in dropped
