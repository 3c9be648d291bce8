"""The short form of the campaign: every 59th fault, and two runs that are killed four times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.campaign.cases import campaign, faults, kills
from tools.campaign.tried import Tried


def test_no_fault_of_a_call_loses_anything(tmp_path: Path) -> None:
    with campaign(tmp_path) as host:
        for start in ("new", "old"):
            assert min(host.calls[start][kind] for kind in ("open", "write", "fsync")) > 4
        cases = [*list(faults(host.calls))[::59], *kills(8, *host.microseconds.popitem())]
        tried = {case: answer for case, answer in host.run(cases) if answer["wrong"]}
    if tried:
        pytest.fail("\n".join(f"{case}: {answer}" for case, answer in tried.items()))


def test_a_campaign_that_was_killed_goes_on(tmp_path: Path) -> None:
    path, head = tmp_path / "out" / "tried.jsonl", {"microseconds": {"new": 100_000, "old": 90_000}}
    first, second, third = kills(12, "random kill", head["microseconds"])
    tried = Tried(path, "version 1", head)
    tried.add(first, {"codes": [-9, -9, 0, -9], "wrong": [], "said": ""})
    tried.add(second, {"codes": [0, 0, 0, 0], "wrong": ["lost"], "said": "what it said"})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"case": ["new", "ki')  # killed while it wrote

    tried = Tried(path, "version 1", {"microseconds": {"new": 7, "old": 7}})
    assert path.read_bytes() == whole
    same = kills(12, "random kill", tried.head["microseconds"])[:2]
    assert same == list(tried.answers) == [first, second]
    assert list(tried.wrong()) == [second]
    tried.add(third, {"codes": [-9, -9, -9, -9], "wrong": [], "said": ""})
    again = Tried(path, "version 1", {})
    assert again.answers == tried.answers
    lines = [line.split() for line in again.table().splitlines()]
    assert lines[1] == ["new", "random", "kill", "8", "7", *"0000000"]
    assert lines[2] == ["old", "random", "kill", "4", "0", "1", *"000000"]
    with pytest.raises(SystemExit, match="another version"):
        Tried(path, "version 2", head)
