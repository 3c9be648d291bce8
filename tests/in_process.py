"""A run without worker processes, each of which takes seconds to start.

For tests of what a run computes, writes and prints; `tests/experiment/test_run.py`,
`test_local.py`, `test_cluster.py` and `tests/cli/test_run.py` test the processes themselves.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from dprepro.experiment import local
from dprepro.experiment import run as run_module


class InProcess:
    """An executor that runs calls here and now."""

    def __init__(
        self, jobs: int, time_limit: float | None, warm_up: Any, processors: int = 1
    ) -> None:
        self.jobs = jobs

    def submit(self, fn: Any, /, *args: Any, affinity: Any = None) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future

    def close(self) -> None: ...

    def kill(self) -> None: ...


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "LocalExecutor", InProcess)
    monkeypatch.setattr(local, "start_ahead", lambda *given: None)
