"""How settings of the linear rivals were chosen: on tables that no result of theirs is about.

    .venv/bin/python benchmarks/rivals_choice.py --splits 3

Each setting differs from the defaults in what its name says. The mean AUROC (binary) or the mean
RMSE over that of a constant (regression) is printed; see docs/evidence/rivals-linear.md.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from dprepro.data.dataset import Dataset, load
from dprepro.experiment.splits import split_rows
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get

TABLES = {
    "dp-gd-logistic": ("mammography", "ai4i2020", "phishing"),
    "ada-ssp": ("bike-sharing", "parkinson"),
}
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "dp-gd-logistic": (
        {}, {"knots": 2}, {"knots": 5}, {"knots": 20}, {"progress": 0.5}, {"progress": 2.0},
        {"steps": 50}, {"steps": 200}, {"largest_rate": 16.0},
    ),
    "ada-ssp": (
        {}, {"knots": 5}, {"knots": 10}, {"strength": 1.0}, {"strength": 0.1},
        {"knots": 10, "strength": 1.0}, {"knots": 10, "strength": 0.1},
    ),
}  # fmt: skip
EPSILONS = (0.1, 0.5, 1.0, 8.0)
DELTA = 1e-6


def score(
    method: str, data: Dataset, name: str, epsilon: float, split: int, params: dict[str, Any]
) -> float:
    """Return the metric of one fit on the test rows of one split."""
    train, test = split_rows(len(data.y), 0.2, 0, name, split)
    task = "binary" if method == "dp-gd-logistic" else "regression"
    assert data.domain is not None
    model: Any = get(method).build(Setting(task, epsilon, DELTA, data.domain, split), **params)
    model.fit(data.X.iloc[train].reset_index(drop=True), data.y[train])
    rows, y = data.X.iloc[test], data.y[test]
    if task == "binary":
        return float(roc_auc_score(y, model.decision_function(rows)))
    return float(np.sqrt(np.mean((model.predict(rows) - y) ** 2)) / y.std())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    splits = range(parser.parse_args().splits)
    for method, names in TABLES.items():
        columns = [f"{name}, {epsilon:g}" for name in names for epsilon in EPSILONS]
        print(f"| {method} | " + " | ".join(columns) + " |")
        print("| --- " * (len(columns) + 1) + "|")
        tables = {name: load(name) for name in names}
        for params in SETTINGS[method]:
            cells = [
                np.mean([score(method, tables[name], name, e, s, params) for s in splits])
                for name in names
                for e in EPSILONS
            ]
            said = ", ".join(f"{key} {value:g}" for key, value in params.items()) or "as it is"
            print(f"| {said} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
