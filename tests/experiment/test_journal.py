from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tracemalloc
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dprepro.experiment import record as record_codec
from dprepro.experiment.journal import Journal, JournalTable, entries, read_journal
from dprepro.experiment.record import Record
from dprepro.runtime.append_only_file import JournalWarning
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_record import TASK
from tests.lab import of_format_1, of_format_2, plan_of

ENVIRONMENT = {"kind": "environment", "python": "3"}


def _record(split: int, auc: float = 0.5) -> Record:
    return Record(replace(TASK, split=split), "ok", metrics={"auc": auc})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with an environment and two records."""
    path = tmp_path / "results" / "x.jsonl"
    with Journal(path) as journal:
        journal.append(ENVIRONMENT)
        journal.append(_record(0))
        journal.append(_record(1))
    return path


def test_what_was_appended_is_read(path: Path) -> None:
    contents = read_journal(path)
    assert contents.environments == [ENVIRONMENT]
    assert contents.records == [_record(0), _record(1)]


def test_a_later_run_adds_and_the_later_record_of_a_key_wins(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(ENVIRONMENT)
        journal.append(_record(0, auc=0.9))
    contents = read_journal(path)
    assert len(contents.environments) == 2
    assert contents.records == [_record(1), _record(0, auc=0.9)]


def test_each_record_knows_the_environment_that_precedes_it(tmp_path: Path) -> None:
    later = {**ENVIRONMENT, "python": "4"}
    written = [_record(0), _record(1), ENVIRONMENT, _record(1), _record(2), later, _record(2)]
    with Journal(tmp_path / "x.jsonl") as journal:
        for entry in written:
            journal.append(entry)
    computed_in = read_journal(tmp_path / "x.jsonl").computed_in
    assert computed_in == {_record(1).task.key: ENVIRONMENT, _record(2).task.key: later}


@pytest.mark.parametrize(
    "tail", [b'{"kind":"rec', b"{", b"\x00" * 40, b"\x00" * 40 + b"\n", b"1.5"]
)
def test_a_torn_last_line_is_dropped_with_a_warning(path: Path, tail: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    with pytest.warns(JournalWarning, match="the last line was torn"):
        assert read_journal(path).records == [_record(0), _record(1)]
    with pytest.warns(JournalWarning), Journal(path) as journal:
        journal.append(_record(2))
    assert path.read_bytes().startswith(whole)
    assert read_journal(path).records == [_record(0), _record(1), _record(2)]


def test_every_way_to_tear_the_last_line_leaves_the_earlier_ones(path: Path) -> None:
    whole = path.read_bytes()
    starts = [place + 1 for place, byte in enumerate(whole) if byte == 10]
    for cut in range(starts[1] + 1, len(whole), 7):
        path.write_bytes(whole[:cut])
        if cut in starts:
            continue  # between two lines
        with pytest.warns(JournalWarning, match="torn"):
            found = read_journal(path).records
        assert found == [_record(0), _record(1)][: 1 + (cut > starts[2])]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("garbage", "line 2: not a journal line"),
        ('{"kind": "other"}', "line 2: not a journal line .unknown kind 'other'"),
        ("[1]", "line 2: not a journal line"),
        ('{"kind": "record", "task": {}}', "line 2: a record of another version"),
        (
            '{"kind": "plan", "cells": []}',
            "line 2: a plan of another version of dprepro .*`dprepro results repair x",
        ),
    ],
)
def test_damage_elsewhere_is_an_error_that_names_the_line(
    path: Path, line: str, problem: str
) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    with pytest.raises(DpreproError, match=problem):
        read_journal(path)


def test_a_missing_journal_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match="`dprepro run adult` writes it"):
        read_journal(tmp_path / "adult.jsonl")


def test_only_one_run_at_a_time(path: Path) -> None:
    with Journal(path), pytest.raises(DpreproError, match="another run is writing"), Journal(path):
        pass
    with Journal(path) as journal:  # the lock is free again
        journal.append(_record(2))
    assert len(read_journal(path).records) == 3


def test_a_lock_dies_with_its_holder(path: Path) -> None:
    code = (
        "import os, pathlib\nfrom dprepro.experiment.journal import Journal\n"
        f"Journal(pathlib.Path({str(path)!r})).__enter__()\nos._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    with Journal(path) as journal:
        journal.append(_record(2))
    assert len(read_journal(path).records) == 3


def test_fresh_keeps_every_old_journal(path: Path) -> None:
    old = path.read_bytes()
    for split in (5, 6):
        with Journal(path, fresh=True) as journal:
            journal.append(_record(split))
    assert read_journal(path).records == [_record(6)]
    assert path.with_name("x.jsonl.bak").read_bytes() == old
    assert read_journal(path.with_name("x.jsonl.bak1")).records == [_record(5)]


def test_a_journal_to_which_nothing_was_added_leaves_no_file(tmp_path: Path) -> None:
    with Journal(tmp_path / "x.jsonl"):
        pass
    assert not list(tmp_path.glob("*.jsonl"))


def test_every_line_is_strict_json_on_disk_at_once(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(_record(2))
        assert json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["task"]["split"] == 2
        with pytest.raises(ValueError, match="not JSON compliant"):
            journal.append({"kind": "environment", "x": float("nan")})
    assert len(read_journal(path).records) == 3


FULL_DISK = """
import pathlib, resource, sys
from dprepro.experiment.journal import Journal
from tests.experiment.test_journal import _record
path = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 700, resource.RLIM_INFINITY))
with Journal(path) as journal:
    for split in range(2, 99):
        journal.append(_record(split))
        print(split, flush=True)
"""


def test_a_file_in_place_of_the_folder_is_named_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("no folder")
    path = tmp_path / "results" / "x.jsonl"
    said = "a file has the name of a folder.*: move that file away, then give the same command"
    with pytest.raises(DpreproError, match=said), Journal(path):
        pass


def test_a_full_disk_ends_the_run_and_keeps_whole_lines(path: Path) -> None:
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert "DpreproError" in done.stderr
    assert "make room there, then give the same command again" in done.stderr
    written = [int(line) for line in done.stdout.split()]
    assert written
    splits = [record.task.split for record in read_journal(path).records]
    assert splits == [0, 1, *written]
    with Journal(path) as journal:
        journal.append(_record(99))
    assert len(read_journal(path).records) == len(splits) + 1


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DpreproError, match="cannot be written"),
        Journal(tmp_path / "file" / "x.jsonl"),
    ):
        pass


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", "abc"),
        ("params", 3),
        ("metrics", {"auc": "<b>"}),
        ("metrics", {"auc": math.nan}),
    ],
)
def test_a_record_that_is_none_is_named_with_its_line(
    path: Path, field: str, value: object
) -> None:
    *lines, last, _ = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(last)
    (record["task"] if field in record["task"] else record)[field] = value
    path.write_text("\n".join([*lines, json.dumps(record)]) + "\n")
    with pytest.raises(DpreproError, match="line 3"):
        read_journal(path)


def test_a_bottomless_line_is_named(path: Path) -> None:
    path.write_text(
        path.read_text(encoding="utf-8")
        + '{"kind": '
        + "[" * 100_000
        + "\n"
        + path.read_text(encoding="utf-8")
    )
    with pytest.raises(DpreproError, match="line 5"):
        read_journal(path)


def test_the_plan_that_was_stated_last_counts(tmp_path: Path) -> None:
    plans = [plan_of({("l", 1.0): [TASK.key]}, title=text) for text in "ab"]
    with Journal(tmp_path / "x.jsonl") as journal:
        assert read_journal(journal.path).plan is None
        for plan in plans:
            journal.append(plan)
            journal.append(_record(0))
    found = read_journal(tmp_path / "x.jsonl")
    assert found.plan == plans[1]
    assert found.records == [_record(0)]
    assert JournalTable(tmp_path / "x.jsonl").last_plan == plans[1]


def test_a_journal_may_state_no_plan(path: Path, tmp_path: Path) -> None:
    assert JournalTable(path).last_plan is None
    assert JournalTable(tmp_path / "nowhere.jsonl").last_plan is None
    assert read_journal(path).plan is None


def _flipped(raw: bytes, bit: int) -> bytes:
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_flipped_bit_is_noticed_and_named(path: Path) -> None:
    raw = path.read_bytes()
    starts = [0, *(k + 1 for k, byte in enumerate(raw) if byte == 10)]
    for bit in range(0, 8 * len(raw), 3):
        line = sum(start <= bit // 8 for start in starts)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                for _ in entries(_flipped(raw, bit), path):
                    pass
                texts = [str(entry.message) for entry in said]
            except DpreproError as error:
                texts = [str(error)]
        # A newline that turns into another character joins two lines; one that appears cuts one.
        assert any(f"{path}, line {number}" in t for t in texts for number in (line, line + 1)), bit


@pytest.mark.parametrize("old", [of_format_1, of_format_2])
def test_lines_of_earlier_versions_stay_and_the_next_one_covers_them(
    path: Path, old: Callable[[bytes], bytes]
) -> None:
    before = old(path.read_bytes())
    path.write_bytes(before)
    path.chmod(0o640)
    with Journal(path):
        assert read_journal(path).records == [_record(0), _record(1)]
    assert path.read_bytes() == before  # nothing was appended
    with Journal(path) as journal:
        journal.append(_record(2))
    assert path.read_bytes().startswith(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(read_journal(path).records) == 3
    path.write_bytes(path.read_bytes().replace(b'"python":"3"', b'"python":"4"', 1))
    with pytest.raises(DpreproError, match=r"line (1: damaged|4: damaged: it is not what)"):
        read_journal(path)


@pytest.mark.parametrize(
    ("given", "instead", "problem"),
    [
        (b'"status":"ok"', b'"status":"banana"', "status is 'banana'"),
        (b'"split":1', b'"split":"1"', "split is '1'"),
        (b'"split":1', b'"split":2', "its key is"),
        (b'"message":""', b'"message":"","more":1', "unknown fields: more"),
        (b'"auc":0.5', b'"auc":true', "auc is True"),
    ],
)
def test_a_record_of_an_earlier_version_is_checked(
    path: Path, given: bytes, instead: bytes, problem: str
) -> None:
    path.write_bytes(of_format_1(path.read_bytes()).replace(given, instead))
    with pytest.raises(DpreproError, match=rf"line [23]: a record of another .*{problem}"):
        read_journal(path)


def test_a_format_of_the_future_is_refused(path: Path) -> None:
    line = record_codec.written({"kind": "environment"}).replace(b'"format":3', b'"format":4')
    head = line.partition(b',"crc32"')[0]
    path.write_bytes(b'%b,"crc32":"%08x"}\n' % (head, zlib.crc32(head)))
    with pytest.raises(DpreproError, match="its format is 4, and this dprepro reads 1 to 3"):
        read_journal(path)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_two_names_of_a_journal_are_one(path: Path, tmp_path: Path, link: Any) -> None:
    other = tmp_path / "other.jsonl"
    link(path, other)
    with Journal(path), pytest.raises(DpreproError, match="another run is writing"), Journal(other):
        pass


def _replace(path: Path) -> bytes:
    new = path.with_name("new")
    new.write_bytes(b"theirs")
    new.replace(path)
    return b"theirs"


def _go_back(path: Path) -> bytes:
    """As `git checkout` does with an earlier state."""
    earlier = path.read_bytes().split(b"\n")[0] + b"\n"
    new = path.with_name("new")
    new.write_bytes(earlier)
    new.replace(path)
    return b""


def _delete(path: Path) -> bytes:
    shutil.rmtree(path.parent)
    return b""


def _change(path: Path) -> bytes:
    text = path.read_bytes().replace(b"0.5", b"0.6")
    path.write_bytes(text)
    return text


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (_replace, "somebody replaced it .* nothing is lost; what stood there is in .*bak$"),
        (_go_back, "somebody replaced it .* nothing is lost$"),
        (_delete, "somebody deleted it .* nothing is lost$"),
        (_change, "somebody changed it .* nothing is lost; what stood there is in .*bak$"),
    ],
)
def test_what_others_do_to_a_journal_loses_nothing(
    path: Path, happens: Callable[[Path], bytes], said: str
) -> None:
    with Journal(path) as journal:
        theirs = happens(path)
        with pytest.warns(JournalWarning, match=said):
            journal.append(_record(2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            journal.append(_record(3))
        with pytest.raises(DpreproError, match="another run is writing"), Journal(path):
            pass  # it is still locked
    assert read_journal(path).records == [_record(split) for split in range(4)]
    backup = path.with_name("x.jsonl.bak")
    assert (backup.read_bytes() if backup.exists() else b"") == theirs


def test_a_journal_that_vanishes_after_the_last_line_comes_back(path: Path) -> None:
    journal = Journal(path).__enter__()
    journal.append(_record(2))
    path.unlink()
    with pytest.warns(JournalWarning, match="somebody deleted it"):
        journal.__exit__(None, None, None)
    assert len(read_journal(path).records) == 3


def test_a_run_gives_way_to_one_that_took_the_journals_place(path: Path) -> None:
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Journal(path))
        path.unlink()
        with Journal(path) as second:
            second.append(_record(5))
            with pytest.raises(DpreproError, match="another run took its place") as told:
                first.append(_record(2))
            first.__exit__(told.type, told.value, told.tb)
            stack.pop_all()
            second.append(_record(6))
    assert read_journal(path).records == [_record(5), _record(6)]
    kept = read_journal(path.with_name("x.jsonl.bak"))
    assert kept.records == [_record(split) for split in range(3)]


def test_what_a_killed_run_left_unfinished_goes(path: Path) -> None:
    left = path.with_name(f".{path.name}.new")
    left.write_bytes(b"half")
    with Journal(path):
        assert not left.exists()


def test_a_line_more_takes_no_memory_that_grows_with_the_journal(path: Path) -> None:
    filler = record_codec.written({"kind": "environment", "text": "x" * 2**20})
    end = record_codec.written({"kind": "end"})
    path.write_bytes(record_codec.chained_anew([filler[:-1]] * 8 + [end[:-1]]))
    record = _record(0)
    with Journal(path) as journal:
        journal.append(record)  # may move what is kept to where it can grow
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            journal.append(record)
            peak = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
    assert peak < 2**19
    assert read_journal(path).records[-1] == record
