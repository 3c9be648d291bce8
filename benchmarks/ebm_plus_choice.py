"""How DP-EBM+ compares with others on tables that no result of it is about.

    .venv/bin/python benchmarks/ebm_plus_choice.py --splits 4

The mean AUROC (binary), or the mean RMSE over that of a constant (regression), is printed: of
DP-EBM+ as it is, of its coarse and of its fine way alone, and of a linear rival. `signal` is what
`dprepro.ebm_plus.coarse.is_coarse` compares; see docs/dp-ebm-plus.md. Large tables are thinned.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from dprepro.data import load
from dprepro.ebm_plus import algorithm
from dprepro.experiment.splits import split_rows
from dprepro.methods.registry import Setting, get
from dprepro.privacy.gdp import mu_of

TABLES = {
    "mammography": "binary",
    "ai4i2020": "binary",
    "phishing": "binary",
    "cod-rna": "binary",
    "adbench-cover": "binary",
    "bike-sharing": "regression",
    "parkinson": "regression",
}
RIVALS = {"binary": ("dp-gd-logistic", {}), "regression": ("ada-ssp", {"knots": 5})}
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
DELTA, ROWS = 1e-6, 20_000


def score(
    method: str, table: tuple[Any, np.ndarray, Any], task: Any, epsilon: float, seed: int,
    split: tuple[np.ndarray, np.ndarray], params: dict[str, Any],
) -> float:  # fmt: skip
    """Return the metric of one fit on the test rows of one split."""
    (X, y, domain), (train, test) = table, split
    model: Any = get(method).build(Setting(task, epsilon, DELTA, domain, seed), **params)
    model.fit(X.iloc[train].reset_index(drop=True), y[train])
    if task == "binary":
        return float(roc_auc_score(y[test], model.decision_function(X.iloc[test])))
    errors = model.predict(X.iloc[test]) - y[test]
    return float(np.sqrt(np.mean(errors**2)) / y[test].std())


def thinned(name: str) -> tuple[Any, np.ndarray, Any]:
    """Return at most `ROWS` rows of a table, and its domain."""
    data = load(name)
    picked = np.random.default_rng(0).permutation(len(data.y))[:ROWS]
    return data.X.iloc[picked].reset_index(drop=True), np.asarray(data.y)[picked], data.domain


def line(words: list[str]) -> None:
    print("| " + " | ".join(words) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--ways", nargs="*", default=["as it is", "coarse", "fine", "rival"])
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    given = parser.parse_args()
    line(["table", "", *(f"{epsilon:g}" for epsilon in EPSILONS)])
    line(["---"] * (len(EPSILONS) + 2))
    rule = algorithm.is_coarse
    for name in given.tables:
        task, table = TABLES[name], thinned(name)
        rows, features = 0.8 * len(table[1]), len(table[2].features)
        line(
            [
                name,
                "signal",
                *(f"{mu_of(e, DELTA) * rows / math.sqrt(features):.0f}" for e in EPSILONS),
            ]
        )
        splits = [split_rows(len(table[1]), 0.2, 0, name, s) for s in range(given.splits)]
        for way in given.ways:
            method, params = RIVALS[task] if way == "rival" else ("dp-ebm-plus", {})
            always = {"coarse": True, "fine": False}.get(way)
            algorithm.is_coarse = rule if always is None else lambda *_, a=always: a
            cells = [
                np.mean(
                    [
                        score(method, table, task, e, s, split, params)
                        for s, split in enumerate(splits)
                    ]
                )
                for e in EPSILONS
            ]
            line([name, method if way == "rival" else way, *(f"{cell:.3f}" for cell in cells)])


if __name__ == "__main__":
    main()
