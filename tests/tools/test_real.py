"""The short form of kills of real runs, and what the campaign holds against one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dprepro.runtime.files import cache_dir
from tools.campaign.cases import ROOT
from tools.campaign.real import KINDS, STATES, Chain, chains
from tools.campaign.real_runs import Place, left_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_killed_runs_of_real_methods_go_on_to_the_same_bits(tmp_path: Path) -> None:
    place = Place(tmp_path, ROOT)
    kernels = cache_dir() / "kernels"
    place.look(kernels if kernels.is_dir() else None)
    times = [int(place.seconds["warm"] * share * 1e6) for share in (0.5, 0.8)]
    found = Chain(place, "runner", None).tried("warm", times)
    assert (found["wrong"], found["said"]) == ([], "")
    assert found["met"] >= 1


def test_chains_are_of_all_kinds_and_a_longer_campaign_begins_as_a_shorter_one() -> None:
    cases = list(chains(400, dict.fromkeys(STATES, 9.0)))
    assert len(cases) == 100
    assert cases[:10] == list(chains(40, dict.fromkeys(STATES, 9.0)))
    kinds, states = Counter(case[1] for case in cases), Counter(case[0] for case in cases)
    assert kinds.keys() == KINDS.keys()
    assert states.keys() == STATES.keys()
    assert kinds["runner"] > 30
    assert states["warm"] > 50


LINES = [{"kind": "record", "key": key, "metrics": {"auc": 0.5}, "seconds": 1} for key in "ab"]


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([*LINES], set()),
        ([LINES[0], {**LINES[1], "seconds": 2}], set()),
        ([LINES[0]], {"lost"}),
        ([], {"lost"}),
        ([*LINES, LINES[0]], {"doubled"}),
        ([LINES[0], {**LINES[1], "metrics": {"auc": 0.6}}], {"different"}),
        ([LINES[0], LINES[0]], {"doubled", "lost"}),
    ],
)
def test_a_journal_is_judged(lines: list[dict[str, object]], wrong: set[str], tmp_path: Path):
    place = Place(tmp_path, ROOT)
    place.begin_journal()
    place.expected = {line["key"]: {k: line[k] for k in line if k != "seconds"} for line in LINES}
    place.journal.parent.mkdir()
    place.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert place.ended() == wrong


def test_files_and_processes_that_are_left_are_noticed(tmp_path: Path) -> None:
    place = Place(tmp_path, ROOT)
    place.begin_journal()
    assert place.other_files() == []
    left = [tmp_path / "case" / "tmp" / "x", tmp_path / "cache" / "kernels" / "v-ebm.bin.1.tmp"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert place.other_files() == list(map(str, left))
    process = subprocess.Popen(["sh", "-c", "sleep 100 & exit"], start_new_session=True)
    process.wait()
    assert left_of(process.pid, 0.2) == ["sleep 100"]
    assert left_of(process.pid, 0.2) == []
