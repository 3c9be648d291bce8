"""How a fit grows: with threads, with rows in memory, and with rows in a table on disk.

Seconds are those of the clock: with threads the processor's would hide what is gained. So run it on
an idle machine; nothing here asserts a time. Prints Markdown.

    threads  1 and 2 threads in turn: credit fraud, and synthetic rows in memory
    memory   the bytes of a step of DP-EBM in a bare loop, and what waking a thread takes
    tables   DP-EBM+ and DP-EBM from a parquet file, in a process of its own that reads in chunks,
             and `dprepro release --table`; interpret-core's DP-EBM in memory, as far as it fits

Example: python benchmarks/scale.py --sections tables --max-rows 30000000 --folder /scratch
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pyarrow as pa
import pyarrow.parquet
from ebm_fit import as_markdown
from machine import describe
from problems import Problem, fit_quietly
from scipy.special import expit

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.methods.dp_ebm_plus.algorithm import EPOCHS
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.rows.backends import even_parts
from dprepro.rows.table import Table
from dprepro.runtime.threads import Threads

FEATURES = 30
ROW_GROUP = 2**18
EPSILON, DELTA = 1.0, 1e-6

Rows = list[dict[str, Any]]


def models(domain: Domain | None, n_jobs: int, epochs: int) -> dict[str, Any]:
    """Return one unfitted model of each kind; `epochs` are those of DP-EBM."""
    common: dict[str, Any] = {"n_jobs": n_jobs, "random_state": 0}
    private = {**common, "domain": domain}
    return {
        "dp-ebm-sound": DPEBMClassifier(
            EPSILON, DELTA, composition="joint", sensitivity="sound", n_epochs=epochs, **private
        ),
        "dp-ebm-plus": DPEBMPlusClassifier(EPSILON, DELTA, observed=True, **private),
        "ebm": EBMClassifier(n_epochs=epochs, **common),
    }


def threads(given: argparse.Namespace) -> Rows:
    """One thread and two, in turn: the best of some fits, seconds of the clock."""
    rows: Rows = []
    for problem, epochs in (
        (problems.real("credit", given.data_dir), 300),
        (problems.synthetic(given.memory_rows, 5), 300),
    ):
        for name in models(None, 1, 1):
            if name == "ebm" and len(problem.y) > 10**6:
                continue  # minutes, and its bags say nothing new
            seconds: dict[int, list[float]] = {1: [], 2: []}
            fit_quietly(models(problem.domain, 2, 2)[name], problem.small())
            for _ in range(given.repeats):
                for n_jobs, found in seconds.items():
                    found.append(_seconds(models(problem.domain, n_jobs, epochs)[name], problem))
            one, two = min(seconds[1]), min(seconds[2])
            rows.append(
                {"data": problem.name, "rows": f"{len(problem.y):,}", "method": name,
                 "1 thread, s": one, "2 threads, s": two, "times faster": one / two}
            )  # fmt: skip
    return rows


def _seconds(model: Any, problem: Problem) -> float:
    start = time.perf_counter()
    fit_quietly(model, problem)
    return time.perf_counter() - start


def memory(given: argparse.Namespace) -> Rows:
    """Limits of threads: 10 bytes a row in a bare loop, and a thread that is woken for nothing."""
    return [_limits(given.memory_rows, n_jobs) for n_jobs in (1, 2)]


def _limits(size: int, n_jobs: int) -> dict[str, Any]:
    loop, states = _bare_loop(), np.zeros(size, np.int32)
    before, now = np.ones((2, size), np.uint8)
    parts = list(even_parts(size, n_jobs))
    with Threads(n_jobs) as shared:
        passes = _best_of(
            lambda: shared.map(lambda at: loop(states[at], before[at], now[at]), parts)
        )
        woken = _best_of(lambda: shared.map(lambda at: at, parts))
    return {
        "threads": n_jobs, "ns a row": 1e9 * passes / size, "GB/s": 10e-9 * size / passes,
        "woken, us": 1e6 * woken,
    }  # fmt: skip


def _bare_loop() -> Any:
    """Return what reads and writes what a step does, and computes next to nothing."""
    from numba import njit

    @njit(nogil=True)
    def loop(states: Any, before: Any, now: Any) -> None:
        for i in range(states.size):
            states[i] = np.int32(states[i] + before[i] - now[i])

    return loop


def _best_of(run: Callable[[], Any], repeats: int = 30) -> float:
    """Return the shortest of some times, in seconds of the clock."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def tables(given: argparse.Namespace) -> Rows:
    """Tables of 30 numeric features on disk: seconds of the clock, and peak memory."""
    rows: Rows = []
    powers = [10**k for k in range(5, 12) if 10**k < given.max_rows]
    for size in (*powers, given.max_rows):
        path = given.folder / f"dprepro-scale-{size}.parquet"
        write_table(path, size)
        try:
            for method, epochs in (
                ("dp-ebm-plus", 0),
                ("release", 0),
                ("dp-ebm-sound", given.epochs),
            ):
                rows.append(_row(size, method, epochs, path, given))
            if size <= given.peer_rows:
                rows.append(_row(size, "interpret-core", given.epochs, path, given))
        finally:
            path.unlink()
    return rows


def _row(
    size: int, method: str, epochs: int, path: Path, given: argparse.Namespace
) -> dict[str, Any]:
    asked = [method, str(path), str(given.folder), str(epochs), str(given.jobs)]
    command = [sys.executable, __file__, "--child", *asked]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return {"rows": f"{size:,}", "method": method, "epochs": epochs or EPOCHS} | found


def write_table(path: Path, size: int) -> None:
    """Write normal features as float32, and labels of which half depend on them."""
    names = [f"x{k}" for k in range(FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in names] + [("y", pa.string())])
    with pa.parquet.ParquetWriter(path, schema, compression="none", use_dictionary=["y"]) as file:
        for columns in _chunks(size):
            file.write_batch(pa.record_batch(columns, schema=schema), ROW_GROUP)


def _chunks(size: int) -> Iterator[list[Any]]:
    rng = np.random.default_rng(0)
    for start in range(0, size, ROW_GROUP):
        rows = min(ROW_GROUP, size - start)
        X = rng.standard_normal((FEATURES, rows), dtype=np.float32)
        y = rng.random(rows) < expit(np.sin(2 * X[0]) + X[1])
        yield [*X, np.where(y, "yes", "no")]


def child(method: str, path: str, folder: str, epochs: str, jobs: str) -> None:
    """Fit in this process, and print seconds and the peak of its memory."""
    import resource

    features = tuple(NumericFeature(f"x{k}", -4, 4) for k in range(FEATURES))
    domain = Domain(features, ("no", "yes"))
    start = time.perf_counter()
    if method == "interpret-core":
        frame = pa.parquet.read_table(path).to_pandas()
        problem = Problem("table", frame.drop(columns="y"), (frame["y"] == "yes").to_numpy(int))
        problem.__dict__["domain"] = domain
        problems.dp_ebm("interpret-core", problem, 0, int(epochs)).fit(problem.X, problem.y)
    elif method == "release":
        release(Path(path), Path(folder))
    else:
        table = Table.open(path, store=Path(folder) / "dprepro-scale-store")
        fit_quietly_to(models(domain, int(jobs), int(epochs) or 1)[method], table)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"s": seconds, "peak MiB": peak}))


def release(path: Path, folder: Path) -> None:
    """Release DP-EBM+ of a table, as the command does, with a budget book in the folder."""
    from dprepro.cli import app

    with tempfile.TemporaryDirectory(dir=folder) as place:
        os.environ["DPREPRO_STATE"] = place
        card = {
            "name": "scale", "task": "binary", "file": path.name, "target": "y", "positive": "yes",
            "labels": ["no", "yes"],
            "features": {f"x{k}": {"numeric": [-4, 4]} for k in range(FEATURES)},
        }  # fmt: skip
        named = Path(place) / "scale.yaml"
        named.write_text(json.dumps(card), encoding="utf-8")
        budget = ["--epsilon", str(EPSILON), "--delta", str(DELTA)]
        options = ["--table", str(path), "--clip", "--yes", "--output", str(Path(place) / "out")]
        with contextlib.redirect_stdout(io.StringIO()):
            app(["release", str(named), *budget, *options], standalone_mode=False)


def fit_quietly_to(model: Any, table: Table) -> None:
    """Fit to a table; the warning about the seed is expected."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table, "y")


SECTIONS: dict[str, Callable[[argparse.Namespace], Rows]] = {
    "threads": threads,
    "memory": memory,
    "tables": tables,
}


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--data-dir", type=Path, help="folder of local files, else $DPREPRO_DATA")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="for tables and stores")
    parser.add_argument("--memory-rows", type=int, default=10**7)
    parser.add_argument("--max-rows", type=int, default=10**7, help="of the tables on disk")
    parser.add_argument("--peer-rows", type=int, default=10**6, help="as far as the peer follows")
    parser.add_argument("--epochs", type=int, default=20, help="of DP-EBM from a table")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print("\n".join(f"- {name}: {value}" for name, value in describe().items()))
    for name in given.sections:
        print(f"\n{SECTIONS[name].__doc__}\n\n{as_markdown(SECTIONS[name](given))}", flush=True)


if __name__ == "__main__":
    main()
