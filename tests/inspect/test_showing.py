"""A progress bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import re
from io import StringIO

from rich.console import Console

from dprepro.inspect.showing import shown_progress
from dprepro.rows.progress import report


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
