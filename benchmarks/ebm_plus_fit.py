"""Processor seconds of a fit of DP-EBM+ in two checkouts, in turn.

    .venv/bin/python benchmarks/ebm_plus_fit.py --old ../before --turns 3

Every turn fits each table once more in a new process of either checkout, on one thread; a fit
before it compiles. The least of all turns is printed in Markdown, and the ratio of both. Seconds
are of the processor, so other processes disturb them little. Epsilon is 1, delta 1e-6, and the rows
are those that train in the first split. "million" has 10^6 simulated rows of ten features.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.dataset import load
from dprepro.data.domain import Domain, NumericFeature
from dprepro.experiment.splits import split_rows
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get

HERE = Path(__file__).resolve().parents[1]
TABLES = ("telco", "adult", "credit", "cal-housing", "elevators", "pol", "million")


def table(name: str) -> tuple[pd.DataFrame, np.ndarray, Domain | None, str]:
    """Return the rows to fit to, their targets, the public domain and the task."""
    if name != "million":
        data = load(name)
        train, _ = split_rows(len(data.y), 0.2, 1, data.name, 0)
        return data.X.iloc[train].reset_index(drop=True), data.y[train], data.domain, data.task
    rng, names = np.random.default_rng(0), [f"x{k}" for k in range(10)]
    X = pd.DataFrame(rng.random((10**6, 10)), columns=names)
    y = (X.sum(axis=1) + rng.normal(size=len(X))).to_numpy().clip(0, 10)
    domain = Domain(tuple(NumericFeature(each, 0, 1) for each in names), (0.0, 10.0))
    return X, y, domain, "regression"


def seconds(name: str) -> float:
    """Return the processor seconds of the second of two fits."""
    X, y, domain, task = table(name)
    spent = 0.0
    for seed in range(2):
        model: Any = get("dp-ebm-plus").build(Setting(task, 1.0, 1e-6, domain, seed))
        start = time.process_time()
        model.fit(X, y)
        spent = time.process_time() - start
    return spent


def measured(checkout: Path, name: str) -> float:
    """Return the seconds of a fit in another process, by the code of a checkout."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    answer = subprocess.run(
        [sys.executable, __file__, "--one", name],
        env=os.environ | threads | {"PYTHONPATH": str(checkout)},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(answer.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", type=Path, help="another checkout")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", choices=TABLES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(seconds(given.one))
        return
    if given.old is None:
        parser.error("--old: give the folder of another checkout")
    print("| table | before, s | now, s | ratio |\n| --- | --- | --- | --- |")
    for name in given.tables:
        checkouts = (given.old.resolve(), HERE)
        turns = [[measured(each, name) for each in checkouts] for _ in range(given.turns)]
        old, new = np.min(turns, axis=0)
        print(f"| {name} | {old:.2f} | {new:.2f} | {new / old:.2f} |", flush=True)


if __name__ == "__main__":
    main()
