from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client

from dprepro.experiment import cluster as cluster_module
from dprepro.experiment import environment, executors
from dprepro.experiment.cluster import DaskExecutor, client_of
from dprepro.experiment.config import load_config
from dprepro.experiment.executors import MachineFaultError, TimeLimitError, WorkerDiedError
from dprepro.experiment.pending import Pending
from dprepro.experiment.record import Record
from dprepro.experiment.run import Options, Summary, run
from dprepro.methods import registry
from dprepro.runtime.errors import DpreproError
from tests.experiment import calls
from tests.experiment.cluster import Cluster
from tests.lab import Lab

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One laboratory for the module, since workers keep the environment they started with."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPREPRO_METHODS", lab.environment["DPREPRO_METHODS"])
        patch.setenv("PAUSES", "yes")
        registry.all_methods.cache_clear()
        yield lab
    registry.all_methods.cache_clear()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, shared_lab: Lab) -> Iterator[Cluster]:
    """Two workers."""
    with Cluster(tmp_path_factory.mktemp("two"), shared_lab.environment) as cluster:
        cluster.add_workers(2)
        yield cluster


@pytest.fixture
def executor(two: Cluster) -> Iterator[DaskExecutor]:
    executor = DaskExecutor(two.address, time_limit=1.0, warm_up=calls.nothing)
    yield executor
    executor.kill()


class Reacts:
    """An observer that does something once the first record is in."""

    def __init__(self, action: Any) -> None:
        self._action = action

    def begin(self, outlook: Pending, jobs: int) -> None:
        self.jobs = jobs

    def advance(self, record: Record) -> None:
        action, self._action = self._action, lambda: None
        action()

    def end(self) -> None: ...


def _run(
    lab: Lab, name: str, address: str | None = None, action: Any = lambda: None
) -> tuple[Summary, Reacts]:
    methods = [
        {"method": "noisy", "params": {"pause": 0.3 if address else 0.0}},
        "dp-ebm-gdp",
        "logistic-fair",
    ]
    config = load_config(lab.config(name, methods=methods, domain="public", splits=2))
    where = {"executor": "dask", "address": address} if address else {"jobs": 1}
    observer = Reacts(action)
    # Beside another journal it would take over what that one has, and run nothing.
    return run(config, Options(results=lab.folder / name, **where), observer), observer  # type: ignore[arg-type]


def _records(lab: Lab, name: str) -> list[dict[str, Any]]:
    lines = (lab.folder / name / f"{name}.jsonl").open()
    return [record for record in map(json.loads, lines) if record["kind"] == "record"]


def _results(lab: Lab, name: str) -> list[Any]:
    """Return what a journal says, but for the pause that a test asked for."""
    found = []
    for record in _records(lab, name):
        task = {k: v for k, v in record["task"].items() if k != "params"}
        found.append((sorted(task.items(), key=str), record["metrics"], record["ledger"]))
    return sorted(found, key=str)


@pytest.fixture(scope="module")
def local(shared_lab: Lab) -> list[Any]:
    """The results of this machine's own processes."""
    _run(shared_lab, "local")
    return _results(shared_lab, "local")


class TestCalls:
    def test_results_and_errors_come_back(self, executor: DaskExecutor) -> None:
        assert executor.jobs == 2
        futures = [executor.submit(pow, 2, n) for n in range(8)]
        failing, stuck = executor.submit(calls.fail, "as told"), executor.submit(calls.sleep)
        exiting, threads = executor.submit(os._exit, 3), executor.submit(calls.threads)
        assert [future.result(60) for future in futures] == [2**n for n in range(8)]
        with pytest.raises(ValueError, match="as told"):
            failing.result(60)
        with pytest.raises(TimeLimitError, match="time limit of 1 s exceeded"):
            stuck.result(60)
        with pytest.raises(WorkerDiedError, match=r"died \(EXIT\(3\)\)"):
            exiting.result(60)
        assert threads.result(60) == "1"

    def test_calls_of_one_affinity_share_a_process(self, executor: DaskExecutor) -> None:
        for future in [executor.submit(calls.nap, affinity=None) for _ in range(4)]:
            future.result(60)  # both processes have started
        groups = [[executor.submit(calls.nap, affinity=n)] for n in "ab"]
        for n, group in zip("ab", groups, strict=True):
            group += [executor.submit(calls.nap, affinity=n) for _ in range(4)]
        # One worker may help the other with its last calls.
        first, second = ({future.result(60) for future in group[:3]} for group in groups)
        assert len(first) == len(second) == 1
        assert first != second

    def test_killing_ends_processes_and_leaves_the_workers(
        self, two: Cluster, tmp_path: Path
    ) -> None:
        executor = DaskExecutor(two.address)
        futures = [executor.submit(calls.note_pid_and_sleep, tmp_path) for _ in range(3)]
        while len(pids := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            time.sleep(0.05)
        executor.kill()
        for future in futures:
            with pytest.raises(CancelledError):
                future.result(1)
        assert not any(psutil.pid_exists(pid) for pid in pids)
        assert len(two.pids()) == 2

    def test_a_worker_that_cannot_serve_is_named(self, two: Cluster) -> None:
        executor = DaskExecutor(two.address, warm_up=calls.cannot_prepare)
        with pytest.raises(DpreproError, match=r"^Dask worker tcp://127.* on .*: no data here$"):
            executor.submit(pow, 2, 2).result(60)
        executor.kill()

    def test_a_worker_with_other_libraries_is_refused(
        self, two: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(environment, "__version__", "0.0.1")
        executor = DaskExecutor(two.address)
        with pytest.raises(DpreproError, match=r"dprepro \S+ instead of 0\.0\.1\. Results"):
            executor.submit(pow, 2, 2).result(60)
        executor.kill()

    def test_a_call_that_takes_every_worker_down_is_given_up(
        self, two: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(executors, "MOST_ATTEMPTS", 2)
        executor = DaskExecutor(two.address)
        deadly, good = executor.submit(calls.kill_parent), executor.submit(pow, 2, 5)
        assert good.result(60) == 32
        with pytest.raises(
            MachineFaultError, match=r"worker tcp.* was lost .*; .*worker tcp.* was lost"
        ):
            deadly.result(60)
        assert executor.submit(pow, 2, 6).result(60) == 64  # the nannies brought them back
        executor.close()


class TestRuns:
    def test_the_cluster_gives_the_bits_of_the_local_pool(
        self, two: Cluster, shared_lab: Lab, local: list[Any]
    ) -> None:
        summary, observer = _run(shared_lab, "cluster", two.address)
        assert (summary.failed, observer.jobs) == (0, 2)
        assert _results(shared_lab, "cluster") == local

    def test_a_lost_worker_costs_no_task(
        self, two: Cluster, shared_lab: Lab, local: list[Any]
    ) -> None:
        pid = two.pids()[0]
        kill = partial(os.kill, pid, signal.SIGKILL)
        summary, _ = _run(shared_lab, "loss", two.address, kill)
        assert not psutil.pid_exists(pid)
        assert summary.tally.statuses == {"ok": len(local)}
        assert _results(shared_lab, "loss") == local

    def test_trouble_on_the_cluster_leaves_the_journal_whole(
        self, shared_lab: Lab, tmp_path: Path, local: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No workers, one that lacks the data, one that goes away, and then the scheduler."""
        monkeypatch.setattr(cluster_module, "WORKERLESS_LIMIT", 0.5)
        journal = shared_lab.folder / "trouble" / "trouble.jsonl"
        with Cluster(tmp_path, shared_lab.environment) as cluster:
            with pytest.raises(DpreproError, match=r"no workers for 0\.5 s; start some with `dask"):
                _run(shared_lab, "trouble", cluster.address)
            assert not journal.exists()

            cluster.add_workers(nanny=False, DPREPRO_DATA="/nowhere")
            with pytest.raises(
                DpreproError, match=r"Dask worker tcp.*DPREPRO_DATA is '/nowhere', which is not"
            ):
                _run(shared_lab, "trouble", cluster.address)
            assert not _records(shared_lab, "trouble")
            cluster.kill_workers()

            cluster.add_workers(nanny=False)
            with pytest.raises(DpreproError, match=r"has had no workers .* are in the journal"):
                _run(shared_lab, "trouble", cluster.address, cluster.kill_workers)
            first = len(_records(shared_lab, "trouble"))

            cluster.add_workers(nanny=False)
            with pytest.raises(DpreproError, match=r"was lost\. Finished tasks are in the"):
                _run(shared_lab, "trouble", cluster.address, cluster.scheduler.kill)
        assert 0 < first < len(_records(shared_lab, "trouble")) < len(local)
        kept = journal.read_bytes()
        summary, _ = _resume(shared_lab)
        assert journal.read_bytes().startswith(kept)
        assert summary.ran < len(local)
        assert _results(shared_lab, "trouble") == local


def _resume(lab: Lab) -> tuple[Summary, Reacts]:
    """Go on from the journal of `trouble`, with the config it was begun with, on this machine."""
    observer = Reacts(lambda: None)
    config = load_config(lab.folder / "trouble.yaml")
    return run(config, Options(results=lab.folder / "trouble", jobs=1), observer), observer


class TestAddresses:
    @pytest.fixture(autouse=True)
    def _be_quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cluster_module, "CONNECT_LIMIT", 1.0)

    def test_nobody_there(self, shared_lab: Lab) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        start = time.monotonic()
        with pytest.raises(DpreproError, match=rf"no Dask scheduler answers at '127.*:{port}'"):
            _run(shared_lab, "nobody", f"127.0.0.1:{port}")
        assert time.monotonic() - start < 10
        assert not (shared_lab.folder / "nobody" / "nobody.jsonl").exists()

    def test_something_else_there(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            with pytest.raises(DpreproError, match="no Dask scheduler answers"):
                DaskExecutor(f"127.0.0.1:{port}")

    @pytest.mark.parametrize("address", ["localhost", "", "not an address", "host:port"])
    def test_not_an_address(self, address: str) -> None:
        with pytest.raises(DpreproError, match="--address takes the HOST:PORT"):
            DaskExecutor(address)

    def test_a_message_that_comes_while_it_connects_is_no_matter(
        self, two: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tries = []

        async def interrupted(client: Client, timeout: Any = None) -> None:
            tries.append(client)
            if len(tries) < 3:
                raise AssertionError  # as Dask does for two messages
            await connect(client, timeout)

        connect = Client._ensure_connected
        monkeypatch.setattr(Client, "_ensure_connected", interrupted)
        with client_of(two.address, 10) as client:
            assert len(client.nthreads()) == 2
        assert len(tries) == 3

    def test_dask_is_an_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(DpreproError, match=r"pip install 'dprepro\[dask\]'"):
            DaskExecutor("127.0.0.1:8786")
