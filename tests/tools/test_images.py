"""Whatever a crash of the machine leaves of the last writes, nothing acknowledged is lost."""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from dprepro.experiment.journal import Journal, read_journal
from dprepro.experiment.record import Record
from dprepro.runtime.append_only_file import JournalWarning
from tests.experiment.test_record import TASK
from tools.campaign.images import recorded

RECORDS = [Record(replace(TASK, split=split), "ok", {"auc": split / 7}) for split in range(6)]
IMAGES = 400


@pytest.mark.parametrize("old", [0, 2])
def test_nothing_acknowledged_is_lost_to_a_crash(tmp_path: Path, old: int) -> None:
    folder, path = tmp_path / "results", tmp_path / "results" / "x.jsonl"
    folder.mkdir()
    for record in RECORDS[:old]:  # as version 0.1.0 wrote them
        with path.open("a") as file:
            file.write(json.dumps(record.to_json(), separators=(",", ":")) + "\n")
    with recorded(folder) as moments, Journal(path) as journal:
        for record in RECORDS[old:]:
            journal.append(record)
            moments.acknowledge()  # type: ignore[attr-defined]
    draw = random.Random(11)
    torn = 0
    for disk in draw.choices(moments, k=IMAGES):
        path.unlink(missing_ok=True)
        image = disk.image(path, draw)
        if image is not None:
            path.write_bytes(image)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", JournalWarning)
            with Journal(path) as journal:
                there = read_journal(path).records
                assert there == RECORDS[: len(there)]
                assert len(there) >= old + disk.done
                for record in RECORDS[len(there) :]:
                    journal.append(record)
        torn += bool(said)
        assert read_journal(path).records == RECORDS
    assert torn > IMAGES / 20  # many images were torn
