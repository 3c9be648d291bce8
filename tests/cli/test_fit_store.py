"""`dprepro fit --table`: where the rows are kept, and a fit that was killed goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from dprepro.cli import app, main
from dprepro.methods.dp_ebm_plus.sums import coded_sums
from dprepro.rows import table as tables
from dprepro.rows.answer_log import KeptAnswers
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import rows_of, write_table

KILLED = """
import os, signal, sys
from dprepro.rows.answer_log import KeptAnswers
keep, left = KeptAnswers.keep, [int(sys.argv.pop())]
def killed(*args):
    keep(*args)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
KeptAnswers.keep = killed
from dprepro.cli import main
main()
"""
"""The command line, killed after so many answers."""


@pytest.fixture
def options(tmp_path: Path) -> list[Any]:
    methods = [{"method": "dp-ebm-plus", "params": {"n_epochs": 2}}]
    config = write_table(tmp_path, "binary", rows_of("binary"), methods=methods, seed=5)
    frame = pd.DataFrame(rows_of("binary"), columns=["age", "dose", "ward", "y"])
    mine = tmp_path / "mine.parquet"
    frame.assign(age=frame["age"].astype(float), dose=pd.to_numeric(frame["dose"])).to_parquet(mine)
    return [
        "fit", config, "--method", "dp-ebm-plus", "--table", mine,
        "--output", tmp_path / "m.json",
    ]  # fmt: skip


def killed_after(answers: int, options: list[Any]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, options), str(answers)],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


def stopped_after(answers: int, options: list[Any]) -> None:
    """Do the same in this process, by an error."""
    keep, left = KeptAnswers.keep, [answers]

    def stop(*given: Any) -> None:
        keep(*given)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeptAnswers, "keep", stop)
        CliRunner().invoke(app, [*map(str, options)])
    assert left == [0]


def test_the_same_command_goes_on_after_a_kill(tmp_path: Path, options: list[Any]) -> None:
    model, store = tmp_path / "m.json", tmp_path / "m.json.store"
    dprepro(*options)
    uninterrupted = model.read_bytes()
    model.unlink()
    assert not store.exists()
    killed_after(6, options)
    assert not model.exists()
    assert len((store / "answers.jsonl").read_bytes().splitlines()) == 7
    config = Path(options[1])
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"n_epochs": 2', '"n_epochs": 3'))
    with pytest.raises(DpreproError, match="holds the rows of another fit"):
        dprepro(*options)
    config.write_text(text)
    dprepro(*options, "--jobs", 2)
    assert model.read_bytes() == uninterrupted
    assert not store.exists()


def test_damage_is_one_clear_line(
    tmp_path: Path, options: list[Any], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_after(6, options)
    store = tmp_path / "m.json.store"
    (store / "scores").write_bytes(b"short")
    monkeypatch.setattr(sys, "argv", ["dprepro", *map(str, options)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capsys.readouterr()
    assert said.err == (
        f"error: scores in {store} is damaged or missing: delete {store} and start again\n"
    )
    assert said.out == ""


def test_a_folder_of_ones_own(tmp_path: Path, options: list[Any]) -> None:
    dprepro(*options)
    released = (tmp_path / "m.json").read_bytes()
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(DpreproError, match="elsewhere holds other files"):
        dprepro(*options, "--store", other)
    assert [path.name for path in other.iterdir()] == ["notes.txt"]
    stopped_after(3, [*options, "--store", other / "rows"])
    assert (other / "rows" / "targets").exists()
    assert not (tmp_path / "m.json.store").exists()
    dprepro(*options, "--store", other / "rows")
    assert not (other / "rows").exists()
    assert (tmp_path / "m.json").read_bytes() == released


def test_a_model_that_could_not_be_saved_is_not_fitted_again(
    tmp_path: Path, options: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    dprepro(*options)
    released = (tmp_path / "m.json").read_bytes()
    passes = []

    def noted(*arguments: Any) -> Any:
        passes.append(1)
        return coded_sums(*arguments)

    def fail(*_: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr("dprepro.methods.dp_ebm_plus.curator.coded_sums", noted)
    with monkeypatch.context() as patch:
        patch.setattr("dprepro.release.provenance.save_fitted", fail)
        with pytest.raises(OSError, match="no room"):
            dprepro(*options)
    assert (tmp_path / "m.json.store").exists()
    assert passes
    passes.clear()
    dprepro(*options)
    assert passes == []
    assert (tmp_path / "m.json").read_bytes() == released
    assert not (tmp_path / "m.json.store").exists()


def test_an_encrypted_fit_starts_anew_and_says_so(tmp_path: Path, options: list[Any]) -> None:
    dprepro(*options)
    released = (tmp_path / "m.json").read_bytes()
    code = KILLED.replace("KeptAnswers", "UnkeptAnswers")
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, options), "--encrypt", "6"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    store = tmp_path / "m.json.store"
    assert b'{"encrypted": true}' in (store / "store.json").read_bytes()
    again = subprocess.run(
        [sys.executable, "-m", "dprepro", *map(str, options), "--encrypt"],
        capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "300"},
    )  # fmt: skip
    assert again.stderr == (
        f"warning: {store} is left of an encrypted fit that was interrupted. Its key is lost, so "
        "no fit can go on from there: it is deleted, and all rows are read again\n"
    )
    assert (tmp_path / "m.json").read_bytes() == released
    assert not store.exists()


@pytest.mark.parametrize("option", [["--store", "x"], ["--encrypt"]])
def test_without_a_table_there_is_nothing_to_keep(options: list[Any], option: list[str]) -> None:
    at = options.index("--table")
    with pytest.raises(DpreproError, match="--store and --encrypt are about the rows of --table"):
        dprepro(*options[:at], *options[at + 2 :], *option)


def test_progress_is_shown_on_a_terminal_alone(
    options: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "CHUNK_ROWS", 100)
    piped = dprepro(*options)
    assert "boosting" not in piped
    shown = StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr("dprepro.release.progress.standard_console", lambda: console)
    assert dprepro(*options) == piped
    assert "reading rows" in shown.getvalue()
    assert "boosting" in shown.getvalue()
    assert "left" in shown.getvalue()


def test_help_names_the_options() -> None:
    text = CliRunner().invoke(app, ["fit", "--help"]).output
    assert all(option in text for option in ("--store", "--encrypt", "--jobs", "OUTPUT.store"))
    assert json.dumps("--table")[1:-1] in text
