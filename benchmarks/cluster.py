"""What a fit on a Dask cluster costs: docs/evidence/scale.md has the figures.

Run ``python benchmarks/cluster.py`` on an idle machine. It prints the latency of a round for 1, 2
and 5 local workers of few rows, the rounds of a fit, bytes a round on the loopback interface (what
goes through the scheduler counts twice), and how long a worker takes for a row.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import dprepro
from dprepro import DPEBMClassifier, DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.data.domain import Domain, NumericFeature
from dprepro.rows.cluster import ClusterBackend

FEATURES = 20
FEW_ROWS, MANY_ROWS = 1_000, 1_000_000
MODELS = {
    "DP-EBM, labels": (DPEBMClassifier, {"n_epochs": 20}, ("0", "1")),
    "DP-EBM+, labels": (DPEBMPlusClassifier, {}, ("0", "1")),
    "DP-EBM+, regression": (DPEBMPlusRegressor, {}, (-5.0, 5.0)),
}


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((rows, FEATURES)), columns=[f"x{k}" for k in range(FEATURES)])
    return frame.assign(y=(frame["x0"] + rng.normal(size=rows) > 0.5).astype(int))


def model(name: str) -> Any:
    kind, settings, target = MODELS[name]
    features = tuple(NumericFeature(f"x{k}", 0, 1) for k in range(FEATURES))
    return kind(domain=Domain(features, target), random_state=0, **settings)


@contextmanager
def rounds() -> Iterator[list[tuple[str, float]]]:
    """Collect the class of each question to the workers, and how long its round took in s."""
    found: list[tuple[str, float]] = []
    answer = ClusterBackend.answer

    def timed(holder: ClusterBackend, question: Any) -> Any:
        start = time.perf_counter()
        try:
            return answer(holder, question)
        finally:
            found.append((type(question).__name__, time.perf_counter() - start))

    ClusterBackend.answer = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        ClusterBackend.answer = answer  # type: ignore[method-assign]


def loopback_bytes() -> int:
    line = next(
        text
        for text in Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()
        if text.strip()[:3] == "lo:"
    )
    return int(line.split(":")[1].split()[0])


def show_rounds(workers: int, direct: bool, name: str) -> None:
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, direct_to_workers=direct) as client,
    ):
        X = client.persist(dd.from_pandas(table(FEW_ROWS), npartitions=2 * workers))
        model(name).fit(X, "y")  # workers load the kernels
        with rounds() as found:
            before, start = loopback_bytes(), time.perf_counter()
            model(name).fit(X, "y")
            taken, sent = time.perf_counter() - start, loopback_bytes() - before
    times = [seconds for _, seconds in found]
    print(
        f"{name:20s} {workers} workers, {'direct' if direct else 'through the scheduler'}: "
        f"{len(found)} rounds for {FEATURES} features, median "
        f"{1e3 * statistics.median(times):.2f} ms, 95 % {1e3 * np.quantile(times, 0.95):.2f} ms; "
        f"{sent / len(found):,.0f} bytes a round; fit {taken:.1f} s",
        flush=True,
    )


def show_rows(name: str) -> None:
    """Show what a worker of one thread takes for a row: to sort it, and in a round."""
    rows = table(MANY_ROWS)
    sorting: list[float] = []
    begin: Callable[..., None] = ClusterBackend.__init__

    def timed(*given: Any) -> None:
        start = time.perf_counter()
        begin(*given)
        sorting.append(time.perf_counter() - start)

    ClusterBackend.__init__ = timed  # type: ignore[method-assign]
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        X = client.persist(dd.from_pandas(rows, npartitions=1))
        model(name).fit(X, "y")  # the worker loads the kernels
        with rounds() as found:
            model(name).fit(X, "y")
    ClusterBackend.__init__ = begin  # type: ignore[method-assign]
    kinds = dict.fromkeys(kind for kind, _ in found)
    each = {k: statistics.median(seconds for kind, seconds in found if kind == k) for k in kinds}
    passes = ", ".join(f"{kind} {1e9 * t / MANY_ROWS:.2f}" for kind, t in each.items())
    print(
        f"{name:20s} ns a row: {passes}; "
        f"sorting {1e9 * sorting[-1] / MANY_ROWS / FEATURES:.1f} ns a value",
        flush=True,
    )


if __name__ == "__main__":
    print(f"dprepro {dprepro.__version__}")
    for name in MODELS:
        show_rounds(2, False, name)
    for workers, direct in ((1, False), (5, False), (2, True), (5, True)):
        show_rounds(workers, direct, "DP-EBM, labels")
    for name in MODELS:
        show_rows(name)
