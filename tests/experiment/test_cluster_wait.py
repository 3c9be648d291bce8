"""That a run on a cluster without workers says what it waits for; no cluster is needed."""

from __future__ import annotations

import pytest

from dprepro.experiment import cluster
from dprepro.experiment.cluster import DaskExecutor
from dprepro.experiment.executors import NowhereToRunError


def test_a_run_says_that_it_waits_for_workers_and_how_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "WORKERLESS_LIMIT", 0.01)
    monkeypatch.setattr(cluster, "LOOK_INTERVAL", 0.02)
    monkeypatch.setattr(DaskExecutor, "_look", lambda self: None)
    executor = object.__new__(DaskExecutor)
    executor._address, executor._slots = "here:8786", {}
    with pytest.raises(NowhereToRunError):
        executor._await_workers()
    said = capsys.readouterr().err
    assert said == (
        "no worker has joined the cluster at here:8786 yet; waiting for one, at most 0.01 s\n"
    )
