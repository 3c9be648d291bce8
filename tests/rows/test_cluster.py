"""Rows on the workers of a Dask cluster give the bits of rows in memory, whoever dies."""

from __future__ import annotations

import gc
import math
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster, wait, worker_client

from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus import pairs
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.privacy.curator_base import GaussianMechanism
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import ScaledInteger
from dprepro.rows import cluster as cluster_module
from dprepro.rows.cluster import ClusterBackend, ClusterError, Seen
from tests.experiment.cluster import Cluster
from tests.released import published
from tests.rows import clustered

pytestmark = pytest.mark.cluster

MODELS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "labels": (DPEBMClassifier, {}, "y"),
    "adaptive": (DPEBMClassifier, {"sensitivity": "sound", "composition": "joint"}, "y"),
    "regression": (DPEBMRegressor, {"sensitivity": "sound"}, "z"),
    "plus, labels": (DPEBMPlusClassifier, {}, "y"),
    "plus, classes": (DPEBMPlusClassifier, {}, "k"),
    "plus, regression": (DPEBMPlusRegressor, {}, "z"),
    "plus, pairs": (
        DPEBMPlusRegressor, {"pairs": 2, "epsilon": 50.0, "n_epochs": 4}, "z"
    ),
}  # fmt: skip


def fitted(name: str, X: Any, y: Any, is_frame: bool = True) -> Any:
    model, settings, task = MODELS[name]
    settings = {"n_epochs": 2, "random_state": 0, **settings}
    made = model(domain=clustered.domain(task, is_frame), **settings)
    with pytest.MonkeyPatch.context() as patch:
        # The rows have no pair that stands out: without a margin the surest ones are kept.
        patch.setattr(pairs, "MARGIN", -math.inf)
        made.fit(X, y)
    assert bool(made.pairs_) == ("pairs" in settings)
    return made


def alone(name: str, is_frame: bool = True) -> str:
    return repr(published(fitted(name, *clustered.in_memory(MODELS[name][2], is_frame), is_frame)))


class Running:
    """A cluster whose workers do not come back when they are killed."""

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self._cluster, self.client = cluster, client

    def exactly(self, number: int) -> list[int]:
        """Start or end workers until there are so many; return the ids of their processes."""
        processes = self._cluster.workers
        processes[:] = [process for process in processes if process.poll() is None]
        if len(processes) < number:
            self._cluster.add_workers(number - len(processes), nanny=False)
        for process in processes[number:]:
            process.kill()
        while len(self.client.nthreads()) != number:
            time.sleep(0.05)
        return [process.pid for process in processes[:number]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with (
        Cluster(tmp_path_factory.mktemp("cluster"), os.environ) as cluster,
        Client(cluster.address, timeout=60) as client,
    ):
        yield Running(cluster, client)


@pytest.fixture
def two(running: Running) -> list[int]:
    return running.exactly(2)


@pytest.fixture
def three(running: Running) -> list[int]:
    return running.exactly(3)


@pytest.fixture
def five(running: Running) -> list[int]:
    return running.exactly(5)


def check_the_bits(name: str) -> None:
    for is_frame in (True, False):
        wanted = alone(name, is_frame)
        for partitions in (1, 3, 7):
            X, y = clustered.collections(MODELS[name][2], is_frame, partitions)
            assert repr(published(fitted(name, X, y, is_frame))) == wanted, (is_frame, partitions)


@pytest.mark.parametrize("name", MODELS)
def test_two_workers_give_the_bits_of_one_process(two: list[int], name: str) -> None:
    check_the_bits(name)


def test_a_fit_sets_what_a_fit_in_memory_sets(two: list[int]) -> None:
    for is_frame in (True, False):
        one = fitted("labels", *clustered.in_memory("y", is_frame), is_frame)
        other = fitted("labels", *clustered.collections("y", is_frame, 2), is_frame)
        assert one.n_features_in_ == other.n_features_in_
        assert one.classes_.tolist() == other.classes_.tolist()
        assert one.classes_.dtype == other.classes_.dtype
        assert hasattr(other, "feature_names_in_") == is_frame
        X = clustered.in_memory("y", is_frame)[0]
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_labels_as_texts_and_empty_partitions_are_no_matter(two: list[int]) -> None:
    table = clustered.frame().assign(y=lambda t: np.where(t["y"] == 1, "yes", "no"))
    parts = [table[:0], table[:300], table[300:300], table[300:]]
    X = dd.from_map(pickle.loads, [pickle.dumps(part) for part in parts], meta=table[:0])
    for name in ("labels", "plus, labels"):
        model, settings, _ = MODELS[name]
        domain = clustered.Domain(clustered.FEATURES, ("no", "yes"))
        made = [model(n_epochs=2, random_state=0, domain=domain, **settings) for _ in range(2)]
        made[0].fit(table[clustered.names(True)], table["y"])
        made[1].fit(X, "y")
        assert repr(published(made[0])) == repr(published(made[1]))
        assert made[0].classes_.tolist() == made[1].classes_.tolist() == ["no", "yes"]


def test_only_sums_travel_and_one_answer_a_worker(
    two: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: list[Any] = []
    wait_for_reply = ClusterBackend._wait_for_reply

    def spied(holder: ClusterBackend, held: Any, reply: Any) -> Any:
        replies.append(wait_for_reply(holder, held, reply))
        return replies[-1]

    monkeypatch.setattr(ClusterBackend, "_wait_for_reply", spied)
    rounds = rounds_of(monkeypatch)
    X, y = clustered.collections("z", True, 40)
    wait(X := X.persist())
    fitted("plus, regression", X, y)
    sums = [reply for reply in replies if isinstance(reply, ScaledInteger)]
    others = [part for reply in replies if not isinstance(reply, ScaledInteger) for part in reply]
    assert len(sums) == 2 * len(rounds)
    assert len(others) == 40
    assert all(isinstance(part, Seen) for part in others)
    # The largest sums are those of a histogram, 8 bytes a cell of its grid.
    assert max(len(pickle.dumps(whole)) for whole in sums) < 10_000 < 8 * 2 * clustered.N


def test_rows_that_a_fit_refuses_in_memory_are_refused(two: list[int]) -> None:
    table = clustered.frame()
    late = np.arange(len(table)) > 600
    for changed, message in (
        ({"x1": table["x1"].mask(late, np.inf)}, "Input x1 contains infinity"),
        ({"c": table["c"].mask(late, "secret")}, "c"),
        ({"y": table["y"].mask(late, 7)}, "y must hold the domain's labels '0' and '1' as text"),
        ({"y": table["y"].astype(float).mask(late)}, "Input y contains NaN"),
        ({"x1": table["x1"].astype(str).mask(late, "secret")}, "x1|withheld"),
    ):
        X = dd.from_pandas(table.assign(**changed), npartitions=3)
        with pytest.raises(ValueError, match=message) as caught:
            fitted("labels", X, "y")
        assert not {"secret", "701", "7.0", "inf'"} & set(str(caught.value).split())
    with pytest.raises(ValueError, match="too few rows"):
        fitted("labels", dd.from_pandas(table[:1], npartitions=1), "y")
    X = dd.from_pandas(table, npartitions=3)
    with pytest.raises(ValueError, match="X and y have inconsistent numbers of samples"):
        fitted("labels", X, X["y"][X["x1"] > 0].clear_divisions())


def test_a_partition_without_a_column_is_named(two: list[int]) -> None:
    table = clustered.frame()
    parts = [pickle.dumps(part) for part in (table, table.drop(columns="x1"))]
    X = dd.from_map(pickle.loads, parts, meta=table[:0])
    with pytest.raises(ClusterError, match=r"partition 1 could not be read: .*lacks a column"):
        fitted("labels", X, "y")


def check_that_the_workers_forget(running: Running) -> None:
    def tasks(dask_scheduler: Any = None) -> list[str]:
        return list(map(str, dask_scheduler.tasks))

    end = time.monotonic() + 60  # of a busy machine; a circle would hold them for longer
    while (left := running.client.run_on_scheduler(tasks)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == []


def test_the_workers_forget_the_rows(running: Running, two: list[int]) -> None:
    gc.collect()  # what tests before this one left
    fitted("plus, labels", *clustered.collections("y", True, 3))
    X = clustered.collections("y", True, 3)[0].assign(y=float("nan"))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        fitted("labels", X, "y")
    del X
    check_that_the_workers_forget(running)


def test_the_workers_of_a_slow_cluster_forget_the_rows_at_once(
    running: Running, two: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "LOOK_INTERVAL", 0.02)
    gc.collect()
    gc.disable()  # what is left is what holds itself, until Python looks for circles
    try:
        fitted("plus, labels", *clustered.collections("y", True, 40))
        check_that_the_workers_forget(running)
    finally:
        gc.enable()


# --- workers that are killed ----------------------------------------------------------------------


def rounds_of(
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[int], None] = lambda number: None,
    during: Callable[[int], None] = lambda number: None,
) -> list[Any]:
    """Return the questions of a fit as they come; call `before` and `during` with their number."""
    asked: list[Any] = []
    sent_in: list[int] = []
    answer, ask = ClusterBackend.answer, ClusterBackend._ask

    def answered(holder: ClusterBackend, question: Any) -> ScaledInteger:
        asked.append(question)
        before(len(asked))
        return answer(holder, question)

    def sent(holder: ClusterBackend, held: Any, question: Any) -> Any:
        reply = ask(holder, held, question)
        if held is holder._held[-1] and len(asked) not in sent_in:
            sent_in.append(len(asked))
            during(len(asked))
        return reply

    monkeypatch.setattr(ClusterBackend, "answer", answered)
    monkeypatch.setattr(ClusterBackend, "_ask", sent)
    return asked


def living(pids: list[int], dead: list[int]) -> int:
    """Return the process of a worker that was not killed, and note it among the dead."""
    dead.append(
        next(
            pid
            for pid in pids
            if pid not in dead
            and psutil.pid_exists(pid)
            and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        )
    )
    return dead[-1]


def draws_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a name for every time that noise is drawn."""
    drawn: list[str] = []
    for place, name in ((NoiseSource, "add_gaussian"), (GaussianMechanism, "hand_to_kernel")):
        method = getattr(place, name)

        def spied(self: Any, *given: Any, method: Any = method, name: str = name) -> Any:
            drawn.append(name)
            return method(self, *given)

        monkeypatch.setattr(place, name, spied)
    return drawn


@pytest.mark.parametrize("name", MODELS)
def test_five_workers_give_the_bits_of_one_process(five: list[int], name: str) -> None:
    check_the_bits(name)


def test_workers_that_die_in_sorting_between_rounds_and_in_one_change_no_bit(
    five: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        drawn = draws_of(patch)
        wanted = alone("adaptive")
        undisturbed = list(drawn)
    drawn = draws_of(monkeypatch)
    dead = []

    def before(number: int) -> None:
        if number == 4:
            os.kill(living(five, dead), signal.SIGKILL)
        if number == 6:
            os.kill(living(five, dead), signal.SIGSTOP)  # it cannot answer before it dies

    def during(number: int) -> None:
        if number == 6:
            os.kill(dead[-1], signal.SIGKILL)

    asked = rounds_of(monkeypatch, before, during)
    paths = clustered.written(tmp_path, clustered.frame(), 7)
    X = clustered.from_files(paths, dying=tmp_path / "died")
    assert repr(published(fitted("adaptive", X, "y"))) == wanted
    assert (tmp_path / "died").exists()
    assert len(dead) == 2
    assert len(asked) > 6
    assert drawn == undisturbed


def test_all_workers_but_one_die_and_no_bit_changes(
    three: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = alone("plus, regression")

    def before(number: int) -> None:
        if number == 6:
            for pid in three[1:]:
                os.kill(pid, signal.SIGKILL)

    asked = rounds_of(monkeypatch, before)
    drawn = draws_of(monkeypatch)
    X, y = clustered.collections("z", True, 7)
    assert repr(published(fitted("plus, regression", X, y))) == wanted
    assert drawn == ["add_gaussian"] * len(asked)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "could not be read again after its worker was lost: FileNotFoundError"),
        ("other rows", "was lost, and holds other rows now"),
    ],
)
def test_rows_that_cannot_be_read_again_end_the_fit(
    two: list[int],
    change: str | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    table = clustered.frame()
    paths = clustered.written(tmp_path, table, 4)

    def before(number: int) -> None:
        if number == 4:
            for path in paths:
                path.unlink()
            if change:
                clustered.written(tmp_path, table.assign(x1=-table["x1"]), 4)
            os.kill(two[0], signal.SIGKILL)

    rounds_of(monkeypatch, before)
    with pytest.raises(ClusterError, match=message) as caught:
        fitted("labels", clustered.from_files(paths), "y")
    assert str(tmp_path) not in str(caught.value)


def test_a_cluster_without_workers_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "WORKERLESS_LIMIT", 0.5)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Client(empty) as client,
        client.as_current(),
        pytest.raises(ClusterError, match=r"has had no workers for 0\.5 s: start some"),
    ):
        fitted("labels", *clustered.collections("y", True, 2))


def test_a_fit_in_a_task_on_workers_of_several_threads_has_the_same_bits() -> None:
    """As a user runs it who sends the whole fit to the cluster."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
        ) as threads,
        Client(threads) as client,
        client.as_current(),
    ):
        given = clustered.collections("y", True, 7)
        assert repr(published(fitted("labels", *given))) == alone("labels")
        found = client.submit(_fitted_in_a_task, *given, pure=False).result(timeout=60)
        assert found == alone("labels")


def _fitted_in_a_task(X: Any, y: Any) -> str:
    with worker_client():
        return repr(published(fitted("labels", X, y)))
