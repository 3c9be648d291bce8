"""How DP-EBM+ with pairs compares with DP-EBM+ without, on tables that no result of it is about.

    .venv/bin/python benchmarks/ebm_plus_pairs.py --splits 3 --set ALONE=0.15 --set MARGIN=1

The mean AUROC (binary), or the mean RMSE over that of a constant (regression), is printed, and in
brackets how many pairs were kept. `--set` changes constants of `dprepro.methods.dp_ebm_plus.pairs`;
the present ones were chosen like this. In the simulated tables x0 and x1 act together, and so do x3
and x4.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from ebm_plus_choice import TABLES, line, thinned
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import Domain, NumericFeature
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm_plus import pairs
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get

SIMULATED = {"simulated": "regression", "simulated labels": "binary"}
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
ROWS = 16_000
DELTA = 1e-6

Rows = tuple[pd.DataFrame, np.ndarray, Domain]


def simulated(task: Any) -> Rows:
    """Return rows in which two pairs of eight features act together, and their domain."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((ROWS, 8)), columns=[f"x{k}" for k in range(8)])
    together = 2 * np.sin(6 * X["x0"]) * (X["x1"] - 0.5) + X["x3"] * X["x4"]
    y = together + X["x2"] + 0.3 * np.cos(5 * X["x5"]) + rng.normal(0, 0.3, ROWS)
    features = tuple(NumericFeature(name, 0, 1) for name in X)
    if task == "regression":
        return X, y.to_numpy(), Domain(features, (-2.0, 4.0))
    labels = np.random.default_rng(1).logistic(size=ROWS) < 3 * (y - y.mean())
    return X, labels.to_numpy().astype(float), Domain(features, ("0", "1"))


def score(
    table: Rows,
    task: Any,
    epsilon: float,
    seed: int,
    split: tuple[np.ndarray, np.ndarray],
    most: int,
) -> tuple[float, int]:
    """Return the metric of one fit on the test rows of one split, and how many pairs it kept."""
    (X, y, domain), (train, test) = table, split
    setting = Setting(task, epsilon, DELTA, domain, seed)
    model: Any = get("dp-ebm-plus").build(setting, pairs=most)
    model.fit(X.iloc[train].reset_index(drop=True), y[train])
    if task == "binary":
        return float(roc_auc_score(y[test], model.decision_function(X.iloc[test]))), len(
            model.pairs_
        )
    errors = model.predict(X.iloc[test]) - y[test]
    return float(np.sqrt(np.mean(errors**2)) / y[test].std()), len(model.pairs_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--tables", nargs="*", default=[*SIMULATED, *TABLES])
    parser.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", dest="changes")
    given = parser.parse_args()
    for change in given.changes:
        name, number = change.split("=")
        setattr(pairs, name, type(getattr(pairs, name))(number))
    line(["table", "pairs", *(f"{epsilon:g}" for epsilon in EPSILONS)])
    line(["---"] * (len(EPSILONS) + 2))
    for name in given.tables:
        task = (SIMULATED | TABLES)[name]
        table = simulated(task) if name in SIMULATED else thinned(name)
        splits = [split_rows(len(table[1]), 0.2, 0, name, s) for s in range(given.splits)]
        for most in (0, given.pairs):
            cells = []
            for epsilon in EPSILONS:
                found = [score(table, task, epsilon, s, q, most) for s, q in enumerate(splits)]
                metric, kept = np.mean(found, axis=0)
                cells.append(f"{metric:.3f}" + (f" ({kept:.1f})" if most else ""))
            line([name, str(most), *cells])


if __name__ == "__main__":
    main()
