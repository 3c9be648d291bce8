"""Options that several commands share, and what is said of private rows."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from dprepro.cli import app, options
from dprepro.cli.options import method_titles, read, read_held_out, warn
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.record import Record
from dprepro.judge import deviations
from dprepro.methods import registry
from dprepro.papers.document import load_documents
from dprepro.report.draw.panels import build_panels
from dprepro.report.layout import build_tables
from dprepro.runtime import files
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, spread, write

SEVERAL = "Give the option for each level: --epsilon 1 --epsilon 4"
TERMINAL = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
ONE = "This command takes one level at a time: --epsilon 1"


def said(command: str) -> str:
    outcome = CliRunner().invoke(app, command.split())
    assert outcome.exit_code == 2
    return " ".join(outcome.output.replace("│", " ").split())


@pytest.mark.parametrize("command", ["run a", "compare a b", "ledger a", "tune a", "plot shapes a"])
def test_commands_that_take_several_levels_say_how(command: str) -> None:
    assert SEVERAL in said(f"{command} --epsilon 1,4")


@pytest.mark.parametrize("command", ["fit a", "tree a", "votes a", "release a", "plot margins a"])
def test_commands_that_take_one_level_say_so(command: str) -> None:
    assert ONE in said(f"{command} --epsilon 1;4")


PICTURES = [
    "compare a b c",
    "plot curves",
    "plot shapes",
    "plot filters a",
    "plot margins a",
    "plot sweep a",
]


@pytest.mark.parametrize("command", PICTURES)
def test_all_commands_that_draw_take_a_size_letters_and_dots(command: str) -> None:
    assert "'3' is not a size. Allowed are width and height in inches" in said(
        f"{command} --size 3"
    )
    assert "greater than or equal to 4" in said(f"{command} --font 3")
    assert "greater than or equal to 50" in said(f"{command} --dpi 3")


def test_what_is_no_number_is_named_with_what_is_allowed() -> None:
    assert "'one' is not a number. Allowed are numbers above 0" in said("run a --epsilon one")
    assert "'0,5' is not a number. A fraction has a point: 0.5." in said("fit a --epsilon 0,5")


@pytest.mark.parametrize("given", ["-1", "nan", "small"])
def test_a_tolerance_is_a_number_of_0_or_more(given: str) -> None:
    assert "'--tolerance'" in said(f"check --fast --config a --tolerance {given}")


@pytest.mark.parametrize("command", ["fit", "ledger", "plot shapes", "run"])
def test_a_level_of_a_method_without_privacy_is_refused(command: str) -> None:
    output = " --output model.json" if command == "fit" else ""
    outcome = CliRunner().invoke(
        app, f"{command} quickstart --method ebm --epsilon 1{output}".split()
    )
    assert "ebm has no privacy budget, so --epsilon 1 cannot be kept" in str(outcome.exception)


def test_a_method_without_privacy_has_no_ledger() -> None:
    outcome = CliRunner().invoke(app, ["ledger", "quickstart", "--method", "ebm"])
    assert "nothing is spent without a privacy budget" in str(outcome.exception)


@pytest.mark.parametrize("is_private", [True, False])
def test_only_private_rows_are_warned_of_and_not_among_the_results(
    is_private: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    warn(is_private, "the picture shows held-out rows")
    said = capsys.readouterr()
    assert said.out == ""
    assert ("PRIVATE DATA: the picture shows held-out rows" in said.err) == is_private


def test_builtin_configs_say_how_many_splits_and_which_document(tmp_path):
    config = load_config("adult")
    write(tmp_path, "adult", records(spread(0.9, 0.01, 3)))
    (cell,) = read(tmp_path).cells
    assert cell.planned == config.splits
    assert cell.papers == {config.published.paper}


def test_journals_of_unknown_configs_are_read_without_a_plan(tmp_path):
    write(tmp_path, "mine", records(spread(0.9, 0.01, 3)))
    (cell,) = read(tmp_path).cells
    assert (cell.planned, cell.papers) == (3, None)


def test_what_no_longer_counts_is_left_out_without_a_word(tmp_path, capsys):
    write(tmp_path, "mine", [*records([0.9]), *records([0.8], method_version=2)])
    (cell,) = read(tmp_path).cells
    assert cell.values["auc"] == (0.8,)
    assert capsys.readouterr() == ("", "")


def test_the_plan_of_a_built_in_config_counts_where_its_journal_states_none(tmp_path):
    wanted = [planned.task for planned in plan(load_config("mnist-maps"))]
    old = replace(wanted[0], params={"n_maps": 77})
    lines = [Record(task, "ok", {"accuracy": 0.9}) for task in (*wanted[:2], old)]
    write(tmp_path, "mnist-maps", lines)
    found = {cell.task.key for cell in read(tmp_path).cells}
    assert found == {task.key for task in wanted[:2]}
    write(tmp_path, "mnist-maps", lines[2:])  # another config of that name
    assert {cell.task.key for cell in read(tmp_path).cells} == {old.key}


def test_a_plan_that_only_the_data_tell_is_left_to_the_records(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "dprepro.experiment.plan.plan", lambda config: (_ for _ in ()).throw(DpreproError("none"))
    )
    write(tmp_path, "adult", records(spread(0.9, 0.01, 3)))
    (cell,) = read(tmp_path).cells
    assert (cell.planned, cell.papers) == (25, {"dp-ebm-2021"})


def test_methods_have_titles():
    assert method_titles()["dp-ebm-joint"] == "DPEBM-Joint"


def test_a_broken_method_of_ones_own_costs_only_the_titles(tmp_path, monkeypatch, capsys):
    registry.all_methods.cache_clear()
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / "gone"))
    assert method_titles() == {}
    assert "methods are shown by name" in capsys.readouterr().err


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """An empty working folder, and a folder of runs that come with dprepro: Adult and Telco."""
    come_with, here = tmp_path / "package", tmp_path / "here"
    here.mkdir()
    lines = [*records(spread(0.8, 0.01, 3), "dp-llm", 1.0)]
    write(come_with, "adult", [*records(spread(0.9, 0.01, 3), "dp-ebm-gdp", 1.0), *lines])
    write(come_with, "telco", records(spread(0.7, 0.01, 3), "dp-llm", 1.0, dataset="telco"))
    usual = files.builtin
    (come_with / "models").symlink_to(usual("results") / "models")  # which claims are about
    for module in ("runtime.files", "cli.options", "cli.compare"):
        monkeypatch.setattr(
            f"dprepro.{module}.builtin",
            lambda kind: come_with if kind == "results" else usual(kind),
        )
    monkeypatch.setattr(deviations, "builtin", usual)  # explanations name recorded results
    monkeypatch.chdir(here)
    return here / "results"


def run(*arguments):
    done = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_without_runs_of_ones_own_the_shipped_ones_are_shown(shipped):
    out, err = run("table", "adult", "--format", "csv")
    assert "dp-ebm-gdp" in out
    assert "(shipped run)" not in out
    assert "shipped runs, which come with dprepro" in err


def test_runs_of_ones_own_are_shown_alone_and_a_line_says_how_to_add_the_others(
    shipped, monkeypatch
):
    write(shipped, "adult", records(spread(0.9, 0.01, 3), "dp-ebm-gdp", 1.0)[:2])
    out, err = run("table", "adult", "--format", "csv")
    assert "shipped" not in out
    assert err == ""  # where it goes into a file, nobody has to be told
    monkeypatch.setattr(options, "sys", TERMINAL)
    assert run("table", "adult", "--format", "csv")[1].splitlines() == [
        "Your own runs. Those that come with dprepro: --results shipped; beside yours: --shipped"
    ]
    write(shipped, "adult", records(spread(0.87, 0.01, 2)))
    assert run("check", "--paper", "dp-ebm")[1].splitlines() == [
        "Your own runs. Those that come with dprepro: --results shipped"
    ]
    alone, err = run("table", "telco", "--results", "shipped", "--format", "csv")
    assert "dp-llm" in alone
    assert err == ""


def test_both_are_shown_side_by_side_and_equal_tasks_are_compared(shipped):
    given = records(spread(0.9, 0.01, 3), "dp-ebm-gdp", 1.0)
    write(shipped, "adult", given[:2])
    out, err = run("table", "adult", "--shipped", "--format", "csv")
    methods = [row["method"] for row in csv.DictReader(io.StringIO(out)) if row["mean"]]
    assert methods[:2] == ["dp-ebm-gdp", "dp-ebm-gdp (shipped run)"]
    assert err.splitlines() == ["2 of your tasks are among the shipped runs: with equal metrics"]
    write(shipped, "adult", [given[0], replace(given[1], metrics={"auc": 0.5})])
    assert "1 with other metrics" in run("table", "adult", "--shipped", "--format", "csv")[1]


def test_a_config_may_be_on_either_side_but_has_to_be_on_one(shipped):
    write(shipped, "adult", records([0.9, 0.8], "dp-ebm-gdp", 1.0))
    out, _ = run("table", "--config", "telco", "--shipped", "--format", "csv")
    assert {row["method"] for row in csv.DictReader(io.StringIO(out))} == {"dp-llm (shipped run)"}
    done = CliRunner().invoke(app, ["table", "--config", "nowhere", "--shipped"])
    assert "no journal of config 'nowhere'" in str(done.exception)


def test_compare_takes_the_name_of_a_shipped_run(shipped, monkeypatch):
    write(shipped, "adult", records(spread(0.9, 0.01, 3), "dp-ebm-gdp", 1.0))
    for first, second in (
        ("dp-ebm-gdp", "dp-ebm-gdp (shipped run)"),
        ("dp-llm (shipped run)", "dp-ebm-gdp"),
        ("dp-llm (shipped run)", "dp-ebm-gdp (shipped run)"),
    ):
        out, err = run("compare", first, second, "--format", "csv")
        (row,) = csv.DictReader(io.StringIO(out))
        assert (row["first"], row["second"], row["splits"]) == (first, second, "3")
        assert err == ""
    monkeypatch.setattr(options, "sys", TERMINAL)
    assert "METHOD (shipped run)" in CliRunner().invoke(app, ["compare", "a", "b"]).stderr


def test_the_mark_is_never_cut_off_beside_a_curve(shipped):
    write(shipped, "adult", records([0.9, 0.8], "dp-ebm-gdp", 1.0))
    tables = build_tables(read(shipped, None, shipped=True), [], "auc", compare=True)
    titles = [curve.title for panel in build_panels(tables) for curve in panel.curves]
    assert "shipped run: dp-ebm-gdp" in titles


def test_the_folder_of_the_shipped_runs_itself_has_nothing_beside_it(shipped):
    come_with = files.builtin("results")
    assert read(come_with, None, shipped=True).journals == ("adult", "telco")


def test_what_was_chosen_is_judged_with_the_journals_of_hypotheses_besides(tmp_path):
    documents = load_documents()
    paper = documents["dp-ebm-2021"]
    for name, method, seed in (
        ("mine", "dp-linear", 1),
        ("forensics-splits-credit", "dp-linear", 2),
    ):
        lines = [
            record
            for c in paper.cells()
            if (c.dataset, c.method) == ("wine-white", method)
            for record in records(
                spread(c.mean, c.std), f"{method} {seed}" if seed > 1 else method, c.epsilon,
                "rmse", dataset="wine-white", method=method, seed=seed,
            )
        ]  # fmt: skip
        write(tmp_path, name, lines)
    found = read(tmp_path)
    assert found.journals == ("mine",)
    (judged,) = read_held_out(tmp_path, found, [paper])
    assert (judged.place[2:], judged.seed) == (("wine-white", "dp-linear"), 2)
    assert read_held_out(tmp_path, found, [documents["sbdt-2024"]]) == []


def test_a_journal_may_have_the_name_of_a_config_that_only_includes_others(tmp_path):
    write(tmp_path, "plus", records(spread(0.9, 0.01, 3)))
    assert read(tmp_path).journals == ("plus",)
