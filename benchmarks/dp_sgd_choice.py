"""How the settings of dp-sgd-mlp were chosen: on tables that are not on the board.

    .venv/bin/python benchmarks/dp_sgd_choice.py --splits 2

Each setting differs from the defaults in what its name says. The mean AUROC or the mean RMSE over
that of a constant is printed; see docs/leaderboard.md. 10,000 rows at most are
fitted to, drawn by a seed.
"""

from __future__ import annotations

import argparse
import ast
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from dprepro.data.dataset import Dataset, load
from dprepro.experiment.splits import split_rows
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get

TABLES = ("phishing", "cod-rna", "diabetes", "support2", "bike-sharing")
SETTINGS: tuple[dict[str, Any], ...] = (
    {}, {"knots": 2}, {"knots": 5}, {"knots": 10}, {"width": 8}, {"width": 32},
    {"steps": 100}, {"steps": 200}, {"sampling": 0.05}, {"sampling": 0.2},
    {"clip_norm": 0.1}, {"clip_norm": 0.6},
    {"learning_rate": 0.06}, {"learning_rate": 0.25},
)  # fmt: skip
EPSILONS = (0.1, 1.0, 8.0)
DELTA = 1e-7
MOST_ROWS = 10_000


def score(data: Dataset, name: str, epsilon: float, split: int, params: dict[str, Any]) -> float:
    """Return the metric of one fit on the test rows of one split."""
    train, test = split_rows(len(data.y), 0.2, 0, name, split)
    train = np.random.default_rng(split).permutation(train)[:MOST_ROWS]
    assert data.domain is not None
    setting = Setting(data.task, epsilon, DELTA, data.domain, split)
    model: Any = get("dp-sgd-mlp").build(setting, **params)
    model.fit(data.X.iloc[train].reset_index(drop=True), data.y[train])
    rows, y = data.X.iloc[test], data.y[test]
    if data.task == "binary":
        return float(roc_auc_score(y, model.decision_function(rows)))
    return float(np.sqrt(np.mean((model.predict(rows) - y) ** 2)) / y.std())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--settings", nargs="+", type=ast.literal_eval, default=SETTINGS)
    given = parser.parse_args()
    columns = [f"{name}, {epsilon:g}" for name in given.tables for epsilon in given.epsilons]
    print("| dp-sgd-mlp | " + " | ".join(columns) + " |")
    print("| --- " * (len(columns) + 1) + "|")
    tables = {name: load(name) for name in given.tables}
    for params in given.settings:
        cells = [
            np.mean([score(tables[name], name, e, s, params) for s in range(given.splits)])
            for name in given.tables
            for e in given.epsilons
        ]
        said = ", ".join(f"{key} {value:g}" for key, value in params.items()) or "as it is"
        print(f"| {said} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
