"""A progress bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console

from dprepro.release.progress import shown_progress, shown_steps
from dprepro.rows.table import report


def test_the_bar_has_a_share_and_the_time_left() -> None:
    shown = StringIO()
    with shown_progress(Console(file=shown, force_terminal=True, width=100)):
        report("reading rows", 30, None)
        report("reading rows", 60, None)
        for done in range(1, 4):
            report("boosting", done, 4)
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert re.search(r"boosting .* 75% \d:\d\d:\d\d left (\d:\d\d:\d\d|-:--:--)", lines)
    assert "60" not in lines  # no number of rows


def test_a_file_gets_nothing() -> None:
    shown = StringIO()
    with shown_progress(Console(file=shown, width=100)):
        report("boosting", 1, 4)
    assert shown.getvalue() == ""


def test_what_goes_on_from_the_beginning_is_said_with_its_time() -> None:
    shown = StringIO()
    with shown_progress(Console(file=shown, force_terminal=True, width=100), "fitting noisy"):
        pass
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert re.search(r"fitting noisy .*\d:\d\d:\d\d", lines)


def test_steps_are_named_and_counted() -> None:
    shown = StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    for number in shown_steps("fitting", [1, 2, 3], lambda n: f"model {n}", console):
        if number == 3:
            break
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert re.search(r"fitting model 3 .* 2/3 \d:\d\d:\d\d left", lines)


def test_standard_output_stays_there_while_a_bar_is_drawn_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = Console(file=StringIO(), stderr=True, force_terminal=True, width=100)
    for number in shown_steps("fitting", [1], str, console):
        print(number)
    assert capsys.readouterr().out == "1\n"


def test_steps_draw_nothing_in_a_file_or_on_a_dumb_terminal() -> None:
    for console in (
        Console(file=StringIO()),
        Console(file=StringIO(), force_terminal=True, _environ={"TERM": "dumb"}),
    ):
        assert list(shown_steps("fitting", [1, 2], str, console)) == [1, 2]
        with shown_progress(console, "fitting"):
            report("boosting", 1, 4)
        assert console.file.getvalue() == ""  # type: ignore[attr-defined]
