from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from dprepro.data import PRIVATE_PREFIX, SYNTHETIC_PREFIX
from dprepro.experiment import display as display_module
from dprepro.experiment.config import ExperimentConfig, load_config
from dprepro.experiment.display import (
    LiveDisplay,
    PlainDisplay,
    cells_table,
    display_for,
    duration,
    notes,
    number,
    pending_table,
    profile_table,
)
from dprepro.experiment.forecast import Expected, Forecast
from dprepro.experiment.pending import Pending
from dprepro.experiment.plan import PlannedTask
from dprepro.experiment.record import Record
from dprepro.experiment.run import Summary, Tally
from tests.experiment.test_record import TASK
from tests.lab import Lab

TASKS = [
    replace(TASK, label="noisy", split=split, epsilon=epsilon)
    for split in range(2)
    for epsilon in (1.0, 8.0)
]
LEDGER = {"releases": [{"mechanism": "laplace"}]}
RECORDS = [
    Record(task, "ok", metrics={"auc": 0.8 + 0.1 * task.split}, seconds={"fit": 2.0}, ledger=LEDGER)
    for task in TASKS
]


@pytest.fixture
def config(lab: Lab) -> ExperimentConfig:
    return load_config(lab.config(methods=["noisy", "plain"]))


def _console(terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=120, force_terminal=terminal, _environ={})


def _text(*renderables: object) -> str:
    console = _console()
    console.print(*renderables)
    return console.file.getvalue()  # type: ignore[attr-defined]


def _outlook(done: int = 0) -> Pending:
    planned = tuple(PlannedTask(task) for task in TASKS)
    return Pending(planned, tuple(RECORDS[:done]), tuple(TASKS[done:]), (), 0)


def _tally(*records: Record) -> Tally:
    tally = Tally("auc")
    tally.extend(records)
    return tally


def test_cells_show_mean_and_sd_and_where_splits_are_missing(config: ExperimentConfig) -> None:
    plain = Record(replace(TASK, label="plain", epsilon=math.inf), "ok", metrics={"auc": 0.9})
    text = _text(cells_table(config, _tally(*RECORDS, plain)))
    title, head, _, *rows, legend = [line for line in text.splitlines() if line.strip()]
    assert title.strip() == "lab: auc, mean ± sd over 2 of 3 split(s)"
    assert head.split() == ["epsilon", "1", "8", "none"]
    cell = ["0.8500", "±0.0707"]
    assert rows[0].split() == ["noisy", *cell, *cell]
    assert rows[1].split() == ["plain", "0.9000", "[1/3]"]
    assert legend == "[n/m]: only n of m splits finished."


def test_without_missing_splits_nothing_is_explained(config: ExperimentConfig) -> None:
    assert "[n/m]" not in _text(cells_table(config, _tally(*RECORDS)))


def _table_2(width: int, spread: bool) -> list[list[str]]:
    """Return the words of each line of a filled table of Adult's config."""
    wide = load_config("adult")
    tasks = [
        replace(TASK, label=m.label, epsilon=epsilon, split=split)
        for m in wide.methods
        for epsilon in (*wide.epsilons, math.inf)
        for split in (0, 1)
    ]
    values = (Record(task, "ok", metrics={"auc": 0.5 + 0.1 * task.split}) for task in tasks)
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(cells_table(wide, _tally(*values), spread))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return [line.split() for line in lines]


def test_table_2_fits_eighty_columns() -> None:
    methods = len(load_config("adult").methods)
    assert sum(line[1:] == ["0.5500"] * 6 for line in _table_2(80, spread=False)) == methods
    lines = _table_2(80, spread=True)
    assert sum(line[1:] == ["0.5500"] * 6 for line in lines) == methods
    assert sum(line == ["±0.0707"] * 6 for line in lines) == methods  # each below its mean


def test_table_2_takes_a_line_a_method_where_there_is_room() -> None:
    cells = ["0.5500", "±0.0707"] * 6
    lines = _table_2(120, spread=True)
    assert sum(line[1:] == cells for line in lines) == len(load_config("adult").methods)


@pytest.mark.parametrize("width", [30, 40, 60])
@pytest.mark.parametrize("spread", [False, True])
def test_no_number_is_cut_where_table_2_does_not_fit(width: int, spread: bool) -> None:
    lines = _table_2(width, spread)
    words = [word for line in lines for word in line]
    cells = 6 * len(load_config("adult").methods)
    assert words.count("0.5500") == cells
    assert words.count("±0.0707") == (cells if spread else 0)
    assert not any("…" in word for word in words)
    assert words.count("epsilon") > 1  # each part has the methods


def test_the_plan_is_counted_by_method(config: ExperimentConfig) -> None:
    failed = Record(TASKS[0], "failed", message="x")
    skip = PlannedTask(replace(TASK, label="plain"), "no")
    outlook = Pending(
        (*(PlannedTask(task) for task in TASKS), skip),
        (failed, *RECORDS[1:3]),
        tuple(TASKS[3:]),
        (Record(skip.task, "skipped", message="no"),),
        0,
    )
    ahead = Forecast((Expected("noisy", 1, 120.0), Expected("other", 2)))
    text = _text(pending_table(config, outlook, ahead)).split("─")[-1]
    assert [line.split() for line in text.splitlines() if line.strip()] == [
        ["noisy", "4", "2", "1", "0", "1", "2", "min"],
        ["plain", "1", "0", "0", "1", "0"],
        ["all", "5", "2", "1", "1", "1", "2", "min", "+", "?"],
    ]


def test_the_plan_says_how_many_records_no_longer_count(config: ExperimentConfig) -> None:
    words = " ".join(
        _text(pending_table(config, replace(_outlook(), stale=3), Forecast(()))).split()
    )
    assert "3 record(s) have settings that the config no longer asks for" in words
    assert "asked for" not in _text(pending_table(config, _outlook(), Forecast(())))


def test_plain_lines_tell_beginning_failures_and_end(config: ExperimentConfig) -> None:
    console = _console()
    display = display_for(config, console)
    assert isinstance(display, PlainDisplay)
    display.begin(_outlook(done=1), jobs=2)
    for task in TASKS[1:3]:
        display.advance(Record(task, "failed", message="RuntimeError: [no] luck"))
    display.advance(RECORDS[3])
    display.end()
    first, failure, last = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first == "lab: 4 tasks: 1 done before, 0 skipped, 3 to run on 2 worker(s)"
    assert failure == "lab: noisy, ε=8 failed: RuntimeError: [no] luck"
    assert last.startswith("lab: 3/3 in ")
    assert last.endswith("noisy, ε=8: auc 0.9000 (1 split)")


def test_plain_lines_come_at_intervals(config: ExperimentConfig) -> None:
    counts = []
    for interval in (0.0, 1e9):
        console = _console()
        display = PlainDisplay(config, console, interval)
        display.begin(_outlook(), jobs=1)
        for record in RECORDS[:3]:
            display.advance(record)
        counts.append(len(console.file.getvalue().splitlines()))  # type: ignore[attr-defined]
    assert counts == [4, 1]


def test_a_skipped_task_has_a_line_without_a_metric(config: ExperimentConfig) -> None:
    console = _console()
    display = PlainDisplay(config, console, interval=0.0)
    display.begin(_outlook(), jobs=1)
    display.advance(Record(TASKS[0], "skipped", message="no"))
    said = console.file.getvalue().splitlines()[1]  # type: ignore[attr-defined]
    assert re.fullmatch(r"lab: 1/4 in \d\.\d s", said)


def test_a_line_comes_when_its_time_has_come(
    config: ExperimentConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([1000.0, 1005.0, 1010.0])
    monkeypatch.setattr(display_module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(
        display_module,
        "Eta",
        lambda *_: SimpleNamespace(advance=lambda _: None, seconds_left=None, in_words=""),
    )
    console = _console()
    display = PlainDisplay(config, console, interval=10.0)
    display.begin(_outlook(), jobs=1)
    display.advance(RECORDS[0])
    assert len(console.file.getvalue().splitlines()) == 1  # type: ignore[attr-defined]
    display.advance(RECORDS[1])
    assert "2/4 in 10.0 s" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_table_without_results_says_that_no_split_has_finished(config: ExperimentConfig) -> None:
    text = _text(cells_table(config, _tally()))
    assert "over 0 of 3 split(s)" in text
    assert "[n/m]" not in text


def test_a_terminal_gets_a_live_table_with_a_bar(config: ExperimentConfig) -> None:
    console = _console(terminal=True)
    display = display_for(config, console)
    assert isinstance(display, LiveDisplay)
    display.begin(_outlook(done=1), jobs=1)
    for record in RECORDS[1:3]:
        display.advance(record)
    display.advance(Record(TASKS[3], "failed", message="x"))
    text = _text(display._render())
    display.end()
    assert re.search(r"noisy +0\.8500 +0\.8000 \[1/3\]", text)
    assert "3/3" in text
    assert "1 failed" in text


def test_a_dumb_terminal_gets_plain_lines(config: ExperimentConfig) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(display_for(config, console), PlainDisplay)


def test_pace_and_time_left_are_shown_when_they_are_known(config: ExperimentConfig) -> None:
    plain, live = _console(), _console(terminal=True)
    displays = PlainDisplay(config, plain, interval=0.0), LiveDisplay(config, live)
    for display in displays:
        display.begin(_outlook(), jobs=1)
        display.advance(RECORDS[0])
        first = _text(display._render()) if isinstance(display, LiveDisplay) else ""
        display.advance(RECORDS[1])
        last = _text(display._render()) if isinstance(display, LiveDisplay) else ""
        display.end()
    _, one, two = plain.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert "tasks/" not in one
    assert re.search(r" tasks/s, about \d", two)
    assert "tasks/" not in first
    assert re.search(r"2/4 .*left about \d.* tasks/s", last)


def test_nothing_to_do_shows_no_bar(config: ExperimentConfig) -> None:
    console = _console(terminal=True)
    display = LiveDisplay(config, console)
    display.begin(_outlook(done=4), jobs=1)
    display.end()
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_notes_name_failures_skips_leftovers_and_times() -> None:
    failed = Record(replace(TASK, label="bad"), "failed", message="boom")
    skipped = Record(replace(TASK, label="none"), "skipped", message="no such task")
    summary = Summary("lab", _tally(*RECORDS, failed, skipped), ran=5, wall_seconds=75, stale=3)
    text = "\n".join(notes(summary, Path("results/lab.jsonl")))
    assert "failed: bad, 1 task(s): boom" in text
    assert "skipped: none, 1 task(s): no such task" in text
    assert "with --retry-failed, or when the card or their settings have changed" in text
    assert "3 record(s)" not in text  # what no longer counts is not spoken of
    assert "5 task(s) run in 1:15, 1 from before or skipped; journal: results/lab.jsonl" in text


def test_a_clean_run_has_one_note() -> None:
    summary = Summary("lab", _tally(*RECORDS), ran=4, wall_seconds=2.0)
    assert len(list(notes(summary, Path("x")))) == 1


@pytest.mark.parametrize("ledger", [None, {"true_epsilon": 0.0, "releases": []}])
def test_a_method_that_shows_no_releases_is_named(ledger: dict | None) -> None:
    bare = [replace(record, ledger=ledger) for record in RECORDS[:2]]
    said, _ = notes(Summary("lab", _tally(*RECORDS[2:], *bare), 4, 2.0), Path("x"))
    assert said.startswith("noisy, 2 task(s): unverified: it keeps no ledger of its releases")


def test_the_profile_shares_out_the_time() -> None:
    other = Record(replace(TASK, label="plain"), "ok", metrics={"auc": 1}, seconds={"predict": 2.0})
    third = replace(other, task=replace(TASK, label="third"), seconds={"predict": 0.0})
    text = _text(profile_table(Summary("lab", _tally(*RECORDS, other, third), 6, 9.0)))
    assert "\n\n" not in text.strip()
    rows = [line.split() for line in text.split("─")[-1].splitlines() if line.strip()]
    assert rows == [
        ["noisy", "0.00", "8.00", "0.00", "80%"],
        ["plain", "0.00", "0.00", "2.00", "20%"],
        ["third", "0.00", "0.00", "0.00", "0%"],
    ]


def test_a_profile_without_times_has_no_shares() -> None:
    bare = [replace(record, seconds={"fit": 0.0}) for record in RECORDS]
    text = _text(profile_table(Summary("lab", _tally(*bare), 4, 0.0)))
    assert text.split("─")[-1].split() == ["noisy", "0.00", "0.00", "0.00", "0%"]


def test_a_table_of_all_splits_names_their_number_alone(config: ExperimentConfig) -> None:
    third = [replace(r, task=replace(r.task, split=2)) for r in RECORDS[:2]]
    text = _text(cells_table(config, _tally(*RECORDS, *third)))
    assert "over 3 split(s)" in text


def test_skipped_tasks_are_counted_at_the_beginning(config: ExperimentConfig) -> None:
    skipped = PlannedTask(replace(TASK, label="plain"), "no")
    console = _console()
    outlook = _outlook(done=1)
    record = Record(skipped.task, "skipped", message="no")
    ahead = replace(outlook, planned=(*outlook.planned, skipped), done=(*outlook.done, record))
    PlainDisplay(config, console).begin(ahead, jobs=0)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert said == "lab: 5 tasks: 1 done before, 1 skipped, 3 to run\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.2, "59.2 s"), (60, "1:00"), (187, "3:07"), (3787, "1:03:07")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.88312, "0.8831"),
        (-9.9999, "-9.9999"),
        (10.0, "10.00"),
        (-29.714, "-29.71"),
        (999.994, "999.99"),
        (1000.0, "1,000"),
        (85_652.4, "85,652"),
    ],
)
def test_numbers_suit_their_size(value: float, text: str) -> None:
    assert number(value) == text


def test_synthetic_data_show_above_and_below_the_table(config: ExperimentConfig) -> None:
    made_up = [
        replace(r, task=replace(r.task, data_fingerprint=f"{SYNTHETIC_PREFIX}f")) for r in RECORDS
    ]
    assert "of SYNTHETIC data" in _text(cells_table(config, _tally(*made_up)))
    lines = list(notes(Summary("lab", _tally(*made_up), 4, 1.0), Path("lab.jsonl")))
    assert lines[0].startswith("SYNTHETIC DATA")
    assert "SYNTHETIC" not in _text(cells_table(config, _tally(*RECORDS)))
    assert not any(
        "SYNTHETIC" in n for n in notes(Summary("lab", _tally(*RECORDS), 4, 1.0), Path())
    )


def test_private_data_show_below_the_table(config: ExperimentConfig) -> None:
    private = [
        replace(r, task=replace(r.task, data_fingerprint=f"{PRIVATE_PREFIX}f-g")) for r in RECORDS
    ]
    lines = list(notes(Summary("lab", _tally(*private), 4, 1.0), Path("lab.jsonl")))
    assert any(line.startswith("PRIVATE DATA: the journal holds exact scores") for line in lines)
    others = notes(Summary("lab", _tally(*RECORDS), 4, 1.0), Path())
    assert not any("PRIVATE" in line for line in others)
