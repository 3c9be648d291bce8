"""The short form of the campaign: every 29th fault, and a few kills at random times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.cases import campaign, faults


def test_no_fault_of_a_call_loses_anything(tmp_path: Path) -> None:
    with campaign(tmp_path) as tried:
        for start in ("new", "old"):
            assert min(tried.counts[start][kind] for kind in ("open", "write", "fsync")) > 4
        assert tried.counts["old"]["rename"] > 0  # an old journal is upgraded
        tried.run(list(faults(tried.counts))[::29])
        tried.run(("new", "kill_after", after, 0, False) for after in (20_000, 60_000, 150_000))
    if tried.said:
        pytest.fail("\n".join(f"{case}: {answer}" for case, answer in tried.said))
