"""Whatever somebody does to the lines of a journal is noticed, by reading it and by its digest."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dprepro.experiment.journal import NO_END, Journal, lacks_end, read_journal
from dprepro.experiment.maintenance import difference, examine, read_sums, repair, write_sums
from dprepro.experiment.plan_record import StatedPlan
from dprepro.experiment.record import Record, written
from dprepro.runtime.append_only_file import JournalWarning
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_record import TASK
from tests.lab import of_format_1, of_format_2, plan_of

SEEDS = range(25)
RECORDS = [Record(replace(TASK, split=split), "ok", {"auc": split / 7}) for split in range(8)]
PLAN = plan_of({("l", 1.0): [record.task.key for record in RECORDS]}, title="t", splits=8)

Lines = list[bytes]
Edit = Callable[[Lines, random.Random], Lines]


def _one(lines: Lines, draw: random.Random) -> int:
    return draw.randrange(len(lines))


def delete(lines: Lines, draw: random.Random) -> Lines:
    place = _one(lines, draw)
    return lines[:place] + lines[place + 1 :]


def delete_many(lines: Lines, draw: random.Random) -> Lines:
    start = _one(lines, draw)
    end = draw.randint(start + 1, len(lines) if start else len(lines) - 1)
    return lines[:start] + lines[end:]


def delete_records(lines: Lines, draw: random.Random) -> Lines:
    """As one who keeps the better half."""
    gone = draw.sample([line for line in lines if b'"kind":"record"' in line], draw.randint(1, 4))
    return [line for line in lines if line not in gone]


def cut_off(lines: Lines, draw: random.Random) -> Lines:
    return lines[: draw.randrange(1, len(lines))]


def double(lines: Lines, draw: random.Random) -> Lines:
    place = _one(lines, draw)
    return lines[: place + 1] + lines[place:]


def repeat_later(lines: Lines, draw: random.Random) -> Lines:
    place = draw.randrange(len(lines) - 1)
    return [*lines, *lines[place : draw.randint(place + 1, len(lines) - 1)], lines[-1]]


def swap(lines: Lines, draw: random.Random) -> Lines:
    one, two = sorted(draw.sample(range(len(lines)), 2))
    return [*lines[:one], lines[two], *lines[one + 1 : two], lines[one], *lines[two + 1 :]]


def move(lines: Lines, draw: random.Random) -> Lines:
    one, two = draw.sample(range(len(lines)), 2)
    left = lines[:one] + lines[one + 1 :]
    return [*left[:two], lines[one], *left[two:]]


def change_a_digit(lines: Lines, draw: random.Random) -> Lines:
    place = _one(lines, draw)
    digits = [k for k, byte in enumerate(lines[place]) if chr(byte).isdigit()]
    at, changed = draw.choice(digits), bytearray(lines[place])
    changed[at] = 48 + (changed[at] - 48 + draw.randint(1, 9)) % 10
    return [*lines[:place], bytes(changed), *lines[place + 1 :]]


def insert(lines: Lines, draw: random.Random) -> Lines:
    """A record with a better score, as an earlier version or another journal would have it."""
    line = written(draw.choice(RECORDS).to_json() | {"metrics": {"auc": 0.99}}, draw.randbytes(9))
    line = draw.choice([of_format_1, of_format_2, bytes])(line)
    place = draw.randint(1, len(lines))
    return [*lines[:place], line, *lines[place:]]


EDITS = (
    delete, delete_many, delete_records, cut_off, double, repeat_later, swap, move,
    change_a_digit, insert,
)  # fmt: skip


def _journal(path: Path, entries: list[Record | StatedPlan | dict[str, str]]) -> None:
    with Journal(path) as journal:
        for entry in entries:
            journal.append(entry)


def new(path: Path) -> None:
    """Two runs, each with a machine of its own."""
    _journal(path, [PLAN, {"kind": "environment", "cpu": "A1"}, *RECORDS[:3]])
    _journal(path, [{"kind": "environment", "cpu": "B2"}, *RECORDS[3:]])


def grown(path: Path) -> None:
    """A journal of version 0.1.0 and 0.2.0 to which a run has added lines."""
    new(path)
    lines = path.read_bytes().splitlines(keepends=True)
    old = of_format_1(b"".join(lines[:3])) + of_format_2(b"".join(lines[3:6]))
    path.write_bytes(old)
    _journal(path, [{"kind": "environment", "cpu": "B2"}, *RECORDS[3:]])


@pytest.mark.filterwarnings("ignore::dprepro.runtime.append_only_file.JournalWarning")
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("start", [new, grown])
def test_an_edited_line_is_named_and_no_run_goes_on(
    tmp_path: Path, start: Callable[[Path], None], edit: Edit
) -> None:
    path = tmp_path / "x.jsonl"
    start(path)
    assert not examine(path).problems
    lines = path.read_bytes().splitlines(keepends=True)
    tried = 0
    for seed in SEEDS:
        edited = edit(lines, random.Random(seed))
        if edited == lines:
            continue  # a line that was moved behind an equal one
        tried += 1
        path.write_bytes(b"".join(edited))
        problems = examine(path).problems
        if edited != lines[: len(edited)]:
            assert problems, seed
            with pytest.raises(DpreproError, match=rf"{path}, line {problems[0][0]}: "):
                read_journal(path)
        elif not lacks_end(path.read_bytes()):
            # As it stood when an earlier run ended. Nothing in the journal can tell the two apart,
            # but what the plan asks for is missing.
            assert examine(path).missing == 8 - b"".join(edited).count(b'"kind":"record"')
        else:
            assert [text for _, text in problems] == [NO_END]
    assert tried > 15


@pytest.mark.parametrize("old", [of_format_1, of_format_2])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_journal_of_an_earlier_version_differs_from_its_digest(
    tmp_path: Path, edit: Edit, old: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "x.jsonl"
    new(path)
    raw = old(path.read_bytes())
    path.write_bytes(raw)
    write_sums(tmp_path)
    told = read_sums(tmp_path)["x.jsonl"]
    lines = raw.splitlines(keepends=True)
    for seed in SEEDS:
        edited = edit(lines, random.Random(seed))
        path.write_bytes(b"".join(edited))
        said, since = difference(path, told)
        assert since == 0
        if len(edited) == len(lines):
            assert (said == "") == (edited == lines)
        else:
            assert ("more" if len(edited) > len(lines) else "fewer") + " than recorded" in said


@pytest.mark.filterwarnings("ignore::dprepro.runtime.append_only_file.JournalWarning")
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_journal_can_be_repaired_and_goes_on(tmp_path: Path, edit: Edit) -> None:
    path = tmp_path / "x.jsonl"
    for number, start in enumerate((new, grown)):
        start(path)
        lines = path.read_bytes().splitlines(keepends=True)
        edited = b"".join(edit(lines, random.Random(number)))
        path.write_bytes(edited)
        found, kept = repair(path)
        assert bool(found.problems) == (kept is not None)
        assert kept is None or kept.read_bytes() == edited
        assert not examine(path).problems
        known = {record.task.key for record in read_journal(path).records}
        _journal(path, [record for record in RECORDS if record.task.key not in known])
        assert {record.task.key for record in read_journal(path).records} == set(PLAN.cells[0].keys)
        assert not examine(path).problems
        path.unlink()


def test_a_run_that_goes_on_says_that_no_run_had_ended(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    new(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    assert [text[:20] for _, text in examine(path).problems] == ["no run has ended her"]
    journal = Journal(path)
    with pytest.warns(JournalWarning, match=r"x\.jsonl: no run has ended here"):
        journal.__enter__()
    assert not examine(path).problems  # a run goes on
    journal.append(RECORDS[-1])
    journal.__exit__(None, None, None)
    assert not examine(path).problems


@pytest.mark.parametrize("error", [KeyboardInterrupt, DpreproError])
def test_a_run_that_is_interrupted_ends_its_journal(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "x.jsonl"
    with pytest.raises(error), Journal(path) as journal:  # noqa: PT012 - both lines are the run
        journal.append(RECORDS[0])
        raise error
    assert not examine(path).problems
    assert path.read_bytes().count(b'{"kind":"end"') == 1
    with Journal(path):
        pass
    assert path.read_bytes().count(b"\n") == 2  # nothing more to say


@pytest.mark.filterwarnings("ignore::dprepro.runtime.append_only_file.JournalWarning")
def test_a_journal_goes_on_wherever_it_was_cut(tmp_path: Path) -> None:
    """A process is killed at any byte: no line that was whole is lost, and the chain goes on."""
    path = tmp_path / "x.jsonl"
    grown(path)
    raw = path.read_bytes()
    start = raw.rindex(b"\n", 0, raw.index(b'"format":3')) + 1
    ends = [place for place in range(start, len(raw)) if raw[place] == ord("\n")]
    for cut in [*range(start, len(raw), 67), *ends, *(place + 1 for place in ends)]:
        path.write_bytes(raw[:cut])
        known = raw[:cut].count(b'"kind":"record"', 0, raw.rfind(b"\n", 0, cut))
        with Journal(path) as journal:
            held = read_journal(path).records
            assert held == RECORDS[: len(held)]
            assert len(held) == known
            for record in RECORDS[known:]:
                journal.append(record)
        assert not examine(path).problems
        assert read_journal(path).records == RECORDS


def test_line_ends_of_another_system_are_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for start in (new, grown):
        start(path)
        raw = path.read_bytes()
        write_sums(tmp_path)
        path.write_bytes(raw.replace(b"\n", b"\r\n"))
        ((number, text),) = examine(path).problems
        assert number == 1
        assert "lines end in CR LF, as git writes them with core.autocrlf" in text
        assert difference(path, read_sums(tmp_path)["x.jsonl"]) == (text, 0)
        with pytest.raises(DpreproError, match=r"x\.jsonl, line 1: lines end in CR LF"):
            read_journal(path)
        repair(path)
        assert path.read_bytes() == raw
        path.unlink()
