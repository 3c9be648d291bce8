"""Judgements on held-out cells in terminals, as Markdown and as JSON."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from dprepro.judge.held_out import Judgement
from dprepro.judge.omnibus import Omnibus
from dprepro.report.write.forensics import json_held_out, markdown_held_out, render_held_out

FAILS = Judgement(
    ("paper", "3", "pol", "m"), "setting [a]", 7, "2", ("adult", "telco"), None, 12.34,
    Omnibus((2.0, 2.1), 0, 0.004), (10, 25),
)  # fmt: skip
HOLDS = Judgement(
    ("paper", "2", "adult", "m"), "m", 7, "", (), 2, 1.0, Omnibus((1.0,), 0, 0.3), (25, 25)
)


def shown(*judgements: Judgement, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, _environ={}).print(render_held_out(judgements))
    return stream.getvalue()


def test_a_terminal_shows_both_kinds_apart_and_how_settings_were_chosen() -> None:
    lines = [" ".join(line.split()) for line in shown(FAILS, HOLDS).splitlines()]
    first = lines.index("Chosen on other cells, judged once")
    second = lines.index("The settings of the column, on splits of another seed")
    assert "m 3 pol 10 to 25 12.3 2 0.004 fails" in lines[first:second]
    assert "m on pol: setting [a] (of 7, on Table 2: adult, telco)" in lines[first:second]
    assert "m 2 adult 2 25 1.0 1 0.3 not refuted" in lines[second:]


def test_a_kind_without_judgements_has_no_table() -> None:
    assert "another seed" not in shown(FAILS)
    assert "judged once" not in shown(HOLDS)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, shown(FAILS, HOLDS, width=width).splitlines())) <= width


def test_settings_with_one_choice_are_named_once() -> None:
    other = Judgement(("paper", "3", "elevators", "m"), *_rest(FAILS))
    assert " ".join(shown(FAILS, other).split()).count("m on pol, elevators: setting [a]") == 1


def _rest(found: Judgement) -> tuple:
    return tuple(getattr(found, name) for name in list(Judgement.__dataclass_fields__)[1:])


def test_markdown_has_a_table_of_each_kind() -> None:
    lines = markdown_held_out([FAILS, HOLDS]).splitlines()
    assert lines[0] == "### Chosen on other cells, judged once"
    assert lines[3] == "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |"
    assert r"| setting \[a\] (of 7, on Table 2: adult, telco) |" in lines[4]
    assert lines[-1] == "| m | 2 | adult | 2 | 25 | 1.0 | 1 | 0.3 | not refuted |"


def test_json_has_plain_values() -> None:
    first, second = json.loads(json.dumps(json_held_out([FAILS, HOLDS])))
    assert (first["dataset"], first["fails"], first["splits"]) == ("pol", True, [10, 25])
    assert (second["chosen_in"], second["chosen_on"], second["seed"]) == (None, [], 2)
