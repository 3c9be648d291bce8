"""When DP-EBM+ for regression may count later epochs more, and go further than its answers say.

    .venv/bin/python benchmarks/ebm_plus_clear.py --splits 6

`dprepro.methods.dp_ebm_plus.booster` takes noise for small from `_CLEAR` deviations on. The first
table has the RMSE over that of a constant, for several values of `_CLEAR`, on two tables that no
result is about and on a simulated one whose features depend on each other: twelve mixtures of four
numbers. "never" counts all epochs by their number, and goes as far as answers say. Where rows are
few, as of parkinson at 0.5, only the bound of residuals depends on it. The second table has the
root mean square error of functions on the simulated tables of `ebm_plus_bands.py`, whose features
are independent: there later epochs tell nothing more, and their noise is not averaged away.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import pandas as pd
from ebm_plus_bands import fit as fit_known

from dprepro.data.dataset import load
from dprepro.data.domain import Domain, NumericFeature
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm_plus import booster
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor

FROM = (math.inf, 1300.0, 2600.0, 5000.0)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
KNOWN = ((5000, 1.0), (5000, 8.0), (50_000, 0.5), (50_000, 1.0), (50_000, 8.0))


def collinear(rows: int = 13_000) -> tuple[Any, np.ndarray, Domain]:
    """Return twelve mixtures of four numbers with a little noise, and a linear target."""
    rng = np.random.default_rng(0)
    mixing, weights = rng.normal(size=(12, 4)), rng.normal(size=12)
    X = rng.normal(size=(rows, 4)) @ mixing.T + 0.3 * rng.normal(size=(rows, 12))
    y = X @ weights
    y = y / y.std() + 0.3 * rng.normal(size=rows)
    frame = pd.DataFrame(X.clip(-12, 12), columns=[f"x{k}" for k in range(12)])
    features = tuple(NumericFeature(name, -12, 12) for name in frame)
    return frame, y.clip(-8, 8), Domain(features, (-8.0, 8.0))


def table(name: str) -> tuple[Any, np.ndarray, Domain]:
    if name == "collinear":
        return collinear()
    data = load(name)
    return data.X, np.asarray(data.y), data.domain


def error(name: str, epsilon: float, splits: int) -> float:
    """Return the mean RMSE over splits, over the standard deviation of the test targets."""
    X, y, domain = table(name)
    found = []
    for split in range(splits):
        train, test = split_rows(len(y), 0.2, 0, name, split)
        model = DPEBMPlusRegressor(epsilon, domain=domain, random_state=split)
        model.fit(X.iloc[train].reset_index(drop=True), y[train])
        gaps = model.predict(X.iloc[test]) - y[test]
        found.append(np.sqrt(np.mean(gaps**2)) / y[test].std())
    return float(np.mean(found))


def error_of_functions(rows: int, epsilon: float, seeds: int) -> float:
    gaps = [fit_known("numbers", rows, epsilon, 100 + seed)[0][0] for seed in range(seeds)]
    return float(np.sqrt(np.mean(np.concatenate(gaps) ** 2)))


def line(*words: object) -> None:
    print("| " + " | ".join(map(str, words)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=6, help="and seeds of the second table")
    splits = parser.parse_args().splits
    line("table", "from", *(f"{epsilon:g}" for epsilon in EPSILONS))
    line(*["---"] * (len(EPSILONS) + 2))
    for name in ("bike-sharing", "parkinson", "collinear"):
        for start in FROM:
            booster._CLEAR = start
            cells = (f"{error(name, epsilon, splits):.4f}" for epsilon in EPSILONS)
            line(name, "never" if start == math.inf else f"{start:g}", *cells)
    line("functions", *(f"{rows:,} rows, {epsilon:g}" for rows, epsilon in KNOWN))
    line(*["---"] * (len(KNOWN) + 1))
    for start in FROM:
        booster._CLEAR = start
        cells = (f"{error_of_functions(rows, epsilon, splits):.3f}" for rows, epsilon in KNOWN)
        line("never" if start == math.inf else f"{start:g}", *cells)


if __name__ == "__main__":
    main()
