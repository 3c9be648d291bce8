"""How DP-EBM+ compares with others on tables that no result of it is about.

    .venv/bin/python benchmarks/ebm_plus_choice.py --splits 4
    .venv/bin/python benchmarks/ebm_plus_choice.py --ways "as it is" "each bin" "no curves" --mean
    .venv/bin/python benchmarks/ebm_plus_choice.py --ways all --splits 2 --changes

The mean AUROC (binary), or the mean RMSE over that of a constant (regression), is printed: of
DP-EBM+ as it is, of a linear rival, and of the ways that leave out or change one part of it; these
are listed in `ebm_plus_ways.py`. `--changes` prints for each way, in place of the last means, the
mean change over the tables of labels and over those of numbers, and its standard error over the
tables: of AUROC, and of the RMSE in percent. Large tables are thinned. `--few-rows` takes the
tables of few_row_tables.py instead, all of them regression; `--tables` takes single ones of either.
`--positives 300` leaves out all other rows with the positive label, so that it is rare.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import few_row_tables
import numpy as np
from ebm_plus_ways import NAMED, epochs, taking
from sklearn import metrics

from dprepro.data.dataset import load
from dprepro.experiment.splits import split_rows
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get

TABLES = {
    "mammography": "binary",
    "ai4i2020": "binary",
    "phishing": "binary",
    "cod-rna": "binary",
    "adbench-cover": "binary",
    "diabetes": "binary",
    "mushroom": "binary",
    "bike-sharing": "regression",
    "parkinson": "regression",
}
NUMBERS = {name for name, task in TABLES.items() if task == "regression"}
LABELS = [name for name in TABLES if name not in NUMBERS]
RIVALS = {"binary": ("dp-gd-logistic", {}), "regression": ("ada-ssp", {"knots": 5})}
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
ROWS = 20_000
ALL = [
    *NAMED, "histograms 0.06", "usual size 0.33", "clipped at 0.5", "clipped at 1", "unclipped 6",
    "32 epochs",
]  # fmt: skip
"""The ways of `--ways all`, with numbers that one may ask about."""


def score(
    method: str, table: tuple[Any, np.ndarray, Any], task: Any, budget: tuple[float, float],
    seed: int, split: tuple[np.ndarray, np.ndarray], params: dict[str, Any],
    log_loss: bool = False,
) -> float:  # fmt: skip
    """Return the metric of one fit on the test rows of one split."""
    (X, y, domain), (train, test) = table, split
    model: Any = get(method).build(Setting(task, *budget, domain, seed), **params)
    model.fit(X.iloc[train].reset_index(drop=True), y[train])
    if task == "binary" and log_loss:
        chances = np.clip(model.predict_proba(X.iloc[test])[:, 1], 1e-12, 1 - 1e-12)
        return float(metrics.log_loss(y[test] == model.classes_[1], chances))
    if task == "binary":
        return float(metrics.roc_auc_score(y[test], model.decision_function(X.iloc[test])))
    errors = model.predict(X.iloc[test]) - y[test]
    return float(np.sqrt(np.mean(errors**2)) / y[test].std())


def thinned(
    name: str, rows: int = ROWS, positives: int | None = None
) -> tuple[Any, np.ndarray, Any]:
    """Return at most so many rows of a table and so many of them positive, and its domain."""
    data = load(name)
    picked = np.random.default_rng(0).permutation(len(data.y))
    if positives is not None:
        is_positive = np.asarray(data.y)[picked] == max(data.y)
        picked = picked[~is_positive | (is_positive.cumsum() <= positives)]
    picked = picked[:rows]
    return data.X.iloc[picked].reset_index(drop=True), np.asarray(data.y)[picked], data.domain


def line(words: list[str]) -> None:
    print("| " + " | ".join(words) + " |", flush=True)


def means(name: str, way: str, given: argparse.Namespace) -> list[float]:
    """Return the mean of the metric over the splits, at each epsilon."""
    task, table = task_of(name), table_of(name, given)
    params: dict[str, Any]
    splits = [split_rows(len(table[1]), 0.2, 0, name, s) for s in range(given.splits)]
    method, params = RIVALS[task] if way == "rival" else ("dp-ebm-plus", epochs(way))

    def mean(budget: tuple[float, float]) -> float:
        found = [
            score(method, table, task, budget, s, split, params, given.log_loss)
            for s, split in enumerate(splits)
        ]
        return float(np.mean(found))

    with taking("as it is" if way == "rival" else way):
        return [mean((epsilon, given.delta)) for epsilon in given.epsilons]


def task_of(name: str) -> str:
    return TABLES.get(name, "regression")


def table_of(name: str, given: argparse.Namespace) -> tuple[Any, np.ndarray, Any]:
    if given.few_rows or name not in TABLES:
        return few_row_tables.table(name)
    return thinned(name, given.rows, given.positives)


def changes(found: dict[str, dict[str, list[float]]], log_loss: bool) -> list[list[str]]:
    """Return lines of a table: by how much each way differs from the first, for either task.

    `found` has the metrics of each way, by table: a number for each epsilon. The RMSE, and the log
    loss, are compared by their ratio, in percent.
    """
    first, *others = found
    lines = []
    for task in ("binary", "regression"):
        names = [name for name in found[first] if task_of(name) == task]
        by_ratio = log_loss or task == "regression"
        for way in others if names else []:
            own, whole = (np.array([found[w][name] for name in names]) for w in (way, first))
            lines.append([task, way, *of_tables(own / whole - 1, 100, 2)] if by_ratio else
                         [task, way, *of_tables(own - whole, 1, 4)])  # fmt: skip
    return lines


def of_tables(found: np.ndarray, times: float, digits: int) -> list[str]:
    """Return the mean over tables, float64 (tables, epsilons), and its standard error."""
    mean = times * found.mean(axis=0)
    if len(found) < 2:
        return [f"{each:+.{digits}f}" for each in mean]
    error = times * found.std(axis=0, ddof=1) / math.sqrt(len(found))
    return [f"{m:+.{digits}f} ± {e:.{digits}f}" for m, e in zip(mean, error, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--ways", nargs="*", default=["as it is", "rival"], help="or all")
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--few-rows", action="store_true", help="tables of few_row_tables.py")
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each table, at most")
    parser.add_argument("--positives", type=int, help="rows of a table with the positive label")
    parser.add_argument("--log-loss", action="store_true", help="of labels, instead of AUROC")
    parser.add_argument("--mean", action="store_true", help="print what is of all tables only")
    parser.add_argument(
        "--changes", action="store_true", help="from the first way, over the tables"
    )
    given = parser.parse_args()
    if given.positives and (given.few_rows or {*(given.tables or TABLES)} & NUMBERS):
        parser.error("--positives is for tables of labels; allowed: " + ", ".join(LABELS))
    ways = ALL if given.ways == ["all"] else given.ways
    line(["table", "", *(f"{epsilon:g}" for epsilon in given.epsilons)])
    line(["---"] * (len(given.epsilons) + 2))
    found: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
    for name in given.tables or (few_row_tables.TABLES if given.few_rows else TABLES):
        for way in ways:
            cells = found[way][name] = means(name, way, given)
            if not given.mean:
                label = RIVALS[task_of(name)][0] if way == "rival" else way
                line([name, label, *(f"{cell:.4f}" for cell in cells)])
    if given.changes:
        for words in changes(found, given.log_loss):
            line(words)
        return
    for way, tables in found.items():
        line(["mean", way, *(f"{cell:.4f}" for cell in np.mean([*tables.values()], axis=0))])


if __name__ == "__main__":
    main()
