from __future__ import annotations

from pathlib import Path

from dprepro.experiment.journal import Journal
from dprepro.experiment.mending import examine, prune, repair


def test_a_sound_journal_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with Journal(path) as journal:
        journal.append({"kind": "environment"})
    raw = path.read_bytes()
    found = examine(path)
    assert (len(found.lines), found.records, list(found.problems)) == (1, 0, [])
    assert repair(path)[1] is None
    assert prune(path)[1] is None
    assert path.read_bytes() == raw
