"""The first worker of a run starts ahead of the plan, and the run takes it over."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from dprepro.experiment import local, worker
from dprepro.experiment.local import LocalExecutor

CONFIG = """
dataset: breast-cancer
metric: auc
epsilons: [1]
splits: 2
seed: 1
domain: public
methods: [dp-logistic-fair, {method: logistic, label: plain}]
"""


def children() -> set[int]:
    return {
        child.pid for child in psutil.Process().children() if "LokyProcess" in str(child.cmdline())
    }


@pytest.fixture(autouse=True)
def none_is_left():
    before = children()
    yield
    local.end_ahead()
    assert children() <= before


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One that is not there, so that nothing is imported for it: that is left to the run."""
    return tmp_path / "gone.yaml"


def test_a_run_takes_over_the_worker_whatever_went_wrong_in_it(config: Path) -> None:
    before = children()
    local.start_ahead(str(config))
    (started,) = children() - before
    executor = LocalExecutor(jobs=1)
    assert executor.submit(os.getpid).result(60) == started
    assert local.take_ahead() is None
    executor.close()


def test_a_worker_that_nobody_takes_ends(config: Path) -> None:
    before = children()
    local.start_ahead(str(config))
    assert len(children() - before) == 1
    local.end_ahead()
    assert children() == before


def test_a_worker_that_was_killed_ahead_is_replaced(config: Path) -> None:
    before = children()
    local.start_ahead(str(config))
    (started,) = children() - before
    os.kill(started, signal.SIGKILL)
    executor = LocalExecutor(jobs=1)
    assert executor.submit(os.getpid).result(60) != started
    executor.close()


def test_one_that_looks_for_kernels_elsewhere_is_not_taken(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.start_ahead(str(config))
    monkeypatch.setenv("DPREPRO_KERNELS", "elsewhere")
    assert local.take_ahead() is None


@pytest.mark.parametrize("error", [OSError(11, "no more processes"), RuntimeError("no thread")])
def test_a_machine_that_refuses_leaves_it_to_the_run(
    config: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(idle_limit: float | None = None) -> None:
        raise error

    monkeypatch.setattr(local, "new_pool", refused)
    local.start_ahead(str(config))
    assert local.take_ahead() is None


def test_interrupts_still_reach_this_process(config: Path) -> None:
    local.start_ahead(str(config))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_system_without_masks_of_signals_starts_a_worker_too(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Windows is."""
    before = children()
    monkeypatch.delattr(signal, "pthread_sigmask")
    local.start_ahead(str(config))
    assert len(children() - before) == 1
    local.end_ahead()


def test_it_gets_ready_for_the_methods_that_are_asked_for(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(CONFIG)
    asked: list[list[str]] = []
    monkeypatch.setattr(worker, "_need_kernels", lambda names, task: asked.append(names) or False)
    worker.get_ready(str(config))
    worker.get_ready(str(config), ["plain"])
    assert asked == [["dp-logistic-fair", "logistic"], ["logistic"]]
