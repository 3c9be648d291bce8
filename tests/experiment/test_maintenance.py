from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dprepro.experiment.journal import Journal, read_journal
from dprepro.experiment.maintenance import examine, prune, repair
from dprepro.experiment.record import Record
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_record import TASK


def test_a_sound_journal_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with Journal(path) as journal:
        journal.append({"kind": "environment"})
    raw = path.read_bytes()
    found = examine(path)
    assert (len(found.lines), found.records, list(found.problems)) == (2, 0, [])
    assert repair(path)[1] is None
    assert prune(path)[1] is None
    assert path.read_bytes() == raw


def test_a_journal_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"x\.jsonl"):
        repair(tmp_path / "x.jsonl")
    assert not list(tmp_path.iterdir())


def test_the_first_damaged_line_is_named_and_all_are_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with Journal(path) as journal:
        for _ in range(3):
            journal.append({"kind": "environment"})
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(whole[0] + b"one\n" + whole[1] + b"two\n" + b"".join(whole[2:]))
    damaged = path.read_bytes()
    with pytest.raises(DpreproError, match=r"x\.jsonl, line 2: .* `dprepro results repair x "):
        prune(path)
    found, kept = repair(path)
    assert kept == path.with_name("x.jsonl.bak")
    assert kept.read_bytes() == damaged
    assert kept.stat().st_mode & 0o777 == 0o600
    assert list(found.damaged) == [2, 4]
    assert path.read_bytes() == b"".join(whole)


@pytest.mark.parametrize(
    ("damage", "of_other"),
    [
        ((b'"platform":"B"', b'"platform":"X"'), {}),
        ((b'"platform":"B"', b'"platform":"X"'), {"taken_from": "y"}),
        ((b'{"kind":"environment","platform":"B"', b'{"kand":"environment","platform":"B"'), {}),
    ],
)
def test_records_after_a_damaged_environment_are_not_of_the_run_before(
    tmp_path: Path, damage: tuple[bytes, bytes], of_other: dict[str, str]
) -> None:
    path = tmp_path / "x.jsonl"
    with Journal(path) as journal:
        for host, split in (("A", 0), ("B", 1)):
            journal.append({**of_other, "kind": "environment", "platform": host})
            journal.append(Record(replace(TASK, split=split), "skipped", message="x"))
    path.write_bytes(path.read_bytes().replace(*damage))
    repair(path)
    held = read_journal(path)
    machines = [held.computed_in[record.task.key]["platform"] for record in held.records]
    assert machines == ["A", "unknown: the line that said it was damaged"]
    assert [each["platform"] for each in held.environments] == machines
    assert repair(path)[1] is None


def test_superseded_records_go_unless_it_is_only_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with Journal(path) as journal:
        for _ in range(2):
            journal.append(Record(TASK, "skipped", message="x"))
    whole = path.read_bytes()
    found, kept = prune(path, dry_run=True)
    assert (found.superseded, kept, path.read_bytes()) == (1, None, whole)
    kept = prune(path)[1]
    assert kept is not None
    assert kept.read_bytes() == whole
    assert read_journal(path).records == [Record(TASK, "skipped", message="x")]
    assert path.read_bytes().count(b"\n") == 2
    assert not examine(path).problems
