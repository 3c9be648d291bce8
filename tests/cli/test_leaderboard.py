"""`dprepro leaderboard`, on made-up journals and on committed ones."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.data import PRIVATE_PREFIX
from dprepro.experiment.config import load_experiments
from dprepro.experiment.plan import plan
from dprepro.methods import registry
from tests.judge.test_leaderboard import LEVELS, SOUND, lines_of
from tests.report.journals import records, write

COMMITTED = Path(__file__).resolve().parents[2] / "results"
MEANS = [[0.8, 0.8], [0.7, 0.75], [0.6, 0.6]]
ESCAPE = "\x1b"


def invoke(*arguments, width="80"):
    given = ["leaderboard", *map(str, arguments)]
    return CliRunner().invoke(app, given, env={"COLUMNS": width})


def printed(*arguments, width="80"):
    outcome = invoke(*arguments, width=width)
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    return outcome.stdout


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "board-one", lines_of("one", MEANS))
    write(tmp_path, "mine-board-two", lines_of("two", [[2, 2], [3, 3]], "rmse"))
    write(tmp_path, "other", lines_of("three", [[0.9, 0.9]] * 3))
    return tmp_path


def test_journals_of_the_board_are_read_and_others_when_named(folder):
    found = json.loads(printed("--results", folder, "--json"))["boards"]
    tables = {board["board"]: {cell["table"] for cell in board["cells"]} for board in found}
    assert tables == {"binary": {"one"}, "regression": {"two"}, "all kinds": {"one", "two"}}
    other = json.loads(printed("--results", folder, "--config", "oth*", "--format", "json"))
    assert {cell["table"] for cell in other["boards"][0]["cells"]} == {"three"}


def test_every_format_has_every_method_and_the_same_ranks(folder):
    given = ("--results", folder, "--task", "binary")
    rows = list(csv.DictReader(io.StringIO(printed(*given, "--format", "csv"))))
    assert [(row["label"], float(row["mean_rank"])) for row in rows] == [
        ("a", 1), ("b", 2), ("c", 3)
    ]  # fmt: skip
    methods = json.loads(printed(*given, "--json"))["boards"][0]["methods"]
    assert [method["mean_rank"] for method in methods] == [1, 2, 3]
    for format in ("table", "markdown", "latex"):
        text = printed(*given, "--format", format, width="300")
        assert re.search(r"a\b.*1\.00.*100.*\b0\.750.*add/remove-one.*yes.*exact.*no", text)
        assert "last in cells" not in text


def test_options_choose_levels_tables_and_methods(folder):
    write(folder, "board-four", lines_of("four", MEANS))

    def cells(*options):
        found = json.loads(printed("--results", folder, "--task", "binary", "--json", *options))
        return [(c["table"], c["epsilon"], *c["ranks"]) for c in found["boards"][0]["cells"]]

    assert len(cells()) == 2 * len(LEVELS)
    assert cells("--epsilon", 3, "--dataset", "one") == [("one", 3.0, "a", "b", "c")]
    assert cells("--epsilon", 3, "--dataset", "one", "--method", "c", "--method", "a") == [
        ("one", 3.0, "a", "c")
    ]


def test_what_is_missing_is_said_and_ranked_last(folder):
    write(folder, "board-one", lines_of("one", [[0.8, float("nan")], *MEANS[1:]]))
    text = printed("--results", folder, "--task", "binary", width="200")
    assert "a is last in cells without a result: 1 not run." in text
    assert re.search(r"a +2\.00 +50 +0\.375 +- +1/2", text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "bord-*"], "no journal 'bord-*'"),
        (["--config", "bord-*"], "`dprepro run board` writes"),
        (["--method", "dp-emb"], "no private method 'dp-emb' in the journals read"),
        (["--epsilon", "2"], "no results at epsilon 2 in the journals read. They have: 0.5, 3"),
        (["--metric", "auk"], "did you mean 'auc'"),
        (["--dataset", "on"], "did you mean 'one'"),
        (["--audited"], "no board is left"),
        (["--task", "multiclass"], "no board is left"),
    ],
)
def test_mistakes_are_refused_with_what_there_is(folder, arguments, message):
    outcome = invoke(*arguments, "--results", folder)
    assert outcome.exit_code != 0
    assert message in str(outcome.exception)


def test_without_journals_a_line_says_what_writes_them(tmp_path):
    outcome = invoke("--results", tmp_path)
    assert "no journals (*.jsonl, *.parquet)" in str(outcome.exception)


def test_one_file_puts_a_method_on_tables_of_the_board(folder):
    path = folder / "mine.yaml"
    path.write_text("include: [board-vote-complete, board-car]\nmethods: [dp-one-rule]\n")
    run = ["run", str(path), "--results", str(folder), "--splits", "2", "--epsilon", "3"]
    outcome = CliRunner().invoke(app, [*run, "--jobs", "1"])
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    assert {"mine-board-vote-complete.jsonl", "mine-board-car.jsonl"} <= {
        file.name for file in folder.iterdir()
    }
    piece = COMMITTED / "board" / "board-vote-complete.parquet"
    (folder / piece.name).write_bytes(piece.read_bytes())
    given = ("--results", folder, "--task", "binary", "--dataset", "vote-complete")
    (board,) = json.loads(printed(*given, "--epsilon", 3, "--json"))["boards"]
    assert {cell["splits"] for cell in board["cells"]} == {2}
    assert "dp-one-rule" in board["cells"][0]["means"]
    everything = json.loads(printed("--results", folder, "--config", "mine-*", "--config",
                                    "board-vote*", "--epsilon", 3, "--json"))  # fmt: skip
    assert "car: nothing has finished there" in everything["boards"][0]["notes"][-2]


def test_the_board_that_comes_with_dprepro_is_shown_and_every_table_is_whole(tmp_path, monkeypatch):
    page = (COMMITTED.parent / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    left_out = re.search(r"\*\*Not run yet\*\*: ([^.]+)\.", page)[1].split(", ")
    monkeypatch.chdir(tmp_path)
    outcome = invoke("--json")
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    assert "these are the shipped runs" in " ".join(outcome.stderr.split())
    found = {
        (cell["table"], cell["epsilon"], label): cell["splits"]
        for board in json.loads(outcome.stdout)["boards"]
        for cell in board["cells"]
        for label in cell["means"]
    }
    planned = {
        (one.task.dataset, one.task.epsilon, one.task.label): config.splits
        for config in load_experiments("board")
        for one in plan(config, identify=False, try_parameters=False)
        if registry.get(one.task.method).takes_epsilon and f"`{config.name}`" not in left_out
    }
    assert found == planned


def test_a_folder_of_own_runs_hides_the_shipped_board(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    (folder.parent / "results").mkdir()
    write(folder.parent / "results", "other", lines_of("three", [[0.9, 0.9]] * 3))
    outcome = invoke()
    assert "no journal '*board-*' in results" in str(outcome.exception)
    assert "--shipped shows those that come with dprepro" in str(outcome.exception)
    outcome = invoke("--shipped", "--task", "regression", "--json")
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    assert json.loads(outcome.stdout)["boards"][0]["cells"]


def test_private_rows_are_named(tmp_path):
    lines = records([0.8] * 3, "a", 0.5, ledger=SOUND, data_fingerprint=f"{PRIVATE_PREFIX}1")
    lines += records([0.7] * 3, "b", 0.5, ledger=SOUND, data_fingerprint=f"{PRIVATE_PREFIX}1")
    write(tmp_path, "board-mine", lines)
    assert "PRIVATE DATA: exact scores" in invoke("--results", tmp_path).stderr


def test_any_committed_configs_make_a_board(tmp_path):
    found = json.loads(printed("--results", COMMITTED, "--config", "plus-*", "--json"))
    boards = {board["board"]: board for board in found["boards"]}
    assert set(boards) == {"binary", "regression", "all kinds"}
    by_label = {row["label"]: row for row in boards["regression"]["methods"]}
    assert by_label["dp-ebm-plus"]["sound"] is True
    assert by_label["dp-ebm-plus"]["form"] == "functions"
    assert by_label["dp-ebm-gdp"]["sound"] is False  # it reads its domain from the rows
    assert by_label["dp-ebm-gdp"]["audit"] == "EXCEEDED"
    sound = invoke("--results", COMMITTED, "--config", "plus-*", "--sound", "--task", "regression")
    assert "dp-ebm-gdp " not in sound.stdout
    for line in sound.stdout.splitlines():
        assert len(line) <= 80


def test_a_pipe_gets_plain_text(folder):
    command = [sys.executable, "-m", "dprepro", "leaderboard", "--results", str(folder)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ESCAPE not in found.stdout
    assert "binary: 1 table, 2 cells" in found.stdout
    wrong = subprocess.run([*command, "--method", "x"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: no private method 'x'")
