"""A command that takes long says what it does; a quick one says nothing."""

import gc
import io
import sys
import time

import pytest
from typer.testing import CliRunner

from dprepro import cli
from dprepro.cli import app, check, forensics, table
from dprepro.cli.streams import Patience, Waiting
from tests.report.journals import records, write


def test_a_quick_command_says_nothing(capsys):
    with Patience(60) as patience:
        patience.step("reading")
    assert capsys.readouterr().err == ""


def test_a_slow_command_says_what_it_does_and_what_comes_next(capsys):
    with Patience(0.05) as patience:
        patience.step("reading 3 journals")
        time.sleep(0.3)
        patience.step("drawing figures")
    assert capsys.readouterr().err == "reading 3 journals ...\ndrawing figures ...\n"


class Terminal(io.StringIO):
    def __init__(self, is_one):
        super().__init__()
        self.is_one = is_one

    def isatty(self):
        return self.is_one


@pytest.mark.parametrize(
    ("terminals", "seconds", "shows"),
    [
        ((True, True), 0, True),
        ((True, True), 60, False),
        ((True, False), 0, False),
        ((False, True), 0, False),
    ],
)
def test_a_waiting_line_stands_on_a_terminal_alone_and_goes_away(
    monkeypatch, terminals, seconds, shows
):
    output, error = map(Terminal, terminals)
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with Waiting(seconds) as waiting:
        waiting.step("reading")
        if seconds == 0:
            waiting._timer.join()
        began = time.monotonic()
        while shows and "reading" not in error.getvalue() and time.monotonic() < began + 60:
            time.sleep(0.01)
        waiting.step("comparing")
    said = error.getvalue()
    assert ("reading ..." in said) == shows
    assert said.endswith("\x1b[2K") == shows
    assert bool(said) == shows
    assert output.getvalue() == ""


@pytest.mark.parametrize("command", [check, forensics, table])
def test_the_commands_that_read_all_journals_say_that_they_do(monkeypatch, tmp_path, command):
    write(tmp_path, "adult", records([0.9, 0.91]))
    said = []
    monkeypatch.setattr(command.Waiting, "step", lambda self, text: said.append(text))
    name = command.__name__.rpartition(".")[2]
    outcome = CliRunner().invoke(app, [name, "--results", str(tmp_path)])
    assert not outcome.exception or isinstance(outcome.exception, SystemExit)
    assert said[0] == "reading the journals"


@pytest.mark.parametrize(
    ("command", "is_seldom"), [("table", True), ("report", True), ("fit", False)]
)
def test_only_what_reads_journals_looks_for_garbage_less_often(monkeypatch, command, is_seldom):
    kept = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["dprepro", command])
    monkeypatch.setattr(cli, "app", lambda: None)
    try:
        gc.set_threshold(700, 10, 10)
        with pytest.raises(SystemExit):
            cli.main()
        assert (gc.get_threshold()[0] > 700) is is_seldom
    finally:
        gc.set_threshold(*kept)
