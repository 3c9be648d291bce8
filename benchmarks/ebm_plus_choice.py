"""How DP-EBM+ compares with others on tables that no result of it is about.

    .venv/bin/python benchmarks/ebm_plus_choice.py --splits 4
    .venv/bin/python benchmarks/ebm_plus_choice.py --ways "as it is" "bound 1" "whole paths" --mean

The mean AUROC (binary), or the mean RMSE over that of a constant (regression), is printed: of
DP-EBM+ as it is, of its coarse and of its fine way alone, and of a linear rival. "bound B" clips
residuals of labels at B at most, "whole paths" shrinks no function of few rows: the rules that
version 13 changed. "uncentred", "alike", "16 epochs" and "flat bound" leave out what version 14
brought, "short steps" what version 15 did (docs/dp-ebm-plus-versions.md). `signal` is what
`dprepro.ebm_plus.coarse.is_coarse` compares. Large tables are thinned.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from ebm_plus_ablation import uncentred
from replacing import replaced
from sklearn import metrics

from dprepro.data import load
from dprepro.ebm_plus import algorithm, booster, coarse, paths
from dprepro.experiment.splits import split_rows
from dprepro.methods.registry import Setting, get
from dprepro.privacy.gdp import mu_of

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
RIVALS = {"binary": ("dp-gd-logistic", {}), "regression": ("ada-ssp", {"knots": 5})}
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
DELTA, ROWS = 1e-6, 20_000


def score(
    method: str, table: tuple[Any, np.ndarray, Any], task: Any, epsilon: float, seed: int,
    split: tuple[np.ndarray, np.ndarray], params: dict[str, Any], log_loss: bool = False,
) -> float:  # fmt: skip
    """Return the metric of one fit on the test rows of one split."""
    (X, y, domain), (train, test) = table, split
    model: Any = get(method).build(Setting(task, epsilon, DELTA, domain, seed), **params)
    model.fit(X.iloc[train].reset_index(drop=True), y[train])
    if task == "binary" and log_loss:
        chances = np.clip(model.predict_proba(X.iloc[test])[:, 1], 1e-12, 1 - 1e-12)
        return float(metrics.log_loss(y[test] == model.classes_[1], chances))
    if task == "binary":
        return float(metrics.roc_auc_score(y[test], model.decision_function(X.iloc[test])))
    errors = model.predict(X.iloc[test]) - y[test]
    return float(np.sqrt(np.mean(errors**2)) / y[test].std())


def thinned(name: str) -> tuple[Any, np.ndarray, Any]:
    """Return at most `ROWS` rows of a table, and its domain."""
    data = load(name)
    picked = np.random.default_rng(0).permutation(len(data.y))[:ROWS]
    return data.X.iloc[picked].reset_index(drop=True), np.asarray(data.y)[picked], data.domain


def line(words: list[str]) -> None:
    print("| " + " | ".join(words) + " |", flush=True)


def shortened(booster: coarse.CoarseBooster, share: float) -> float:
    return gain(booster, share) * booster.bound / coarse.LARGEST_RESIDUAL


gain = coarse.CoarseBooster.gain


@contextmanager
def taking(way: str) -> Iterator[None]:
    """Let DP-EBM+ take one of the ways."""
    with ExitStack() as stack:
        if way in ("coarse", "fine"):
            stack.enter_context(replaced(algorithm, "is_coarse", lambda *_: way == "coarse"))
        elif way.startswith("bound "):
            bound = float(way.removeprefix("bound "))
            stack.enter_context(replaced(booster, "LARGEST_RESIDUAL", bound))
            stack.enter_context(replaced(coarse, "LARGEST_RESIDUAL", bound))
            stack.enter_context(replaced(coarse, "LEAST", min(bound, coarse.LEAST)))
        elif way == "whole paths":
            stack.enter_context(replaced(paths.Path, "trust", lambda _: 1.0))
            stack.enter_context(replaced(coarse, "_NOISE", 0.8))
        elif way == "uncentred":
            stack.enter_context(replaced(booster, "code", uncentred))
        elif way == "alike":
            stack.enter_context(replaced(booster.Booster, "rare", 0.0))
        elif way == "short steps":
            stack.enter_context(replaced(coarse.CoarseBooster, "gain", shortened))
        elif way == "flat bound":
            stack.enter_context(replaced(coarse, "LEAST", booster.LARGEST_RESIDUAL))
        elif way not in ("as it is", "rival") and not way.endswith(" epochs"):
            allowed = (
                "as it is, coarse, fine, rival, bound B, whole paths, uncentred, alike, "
                "flat bound, short steps, E epochs"
            )
            raise SystemExit(f"there is no way {way!r}; allowed: {allowed}")
        yield


def means(name: str, way: str, given: argparse.Namespace) -> list[float]:
    """Return the mean of the metric over the splits, at each epsilon."""
    task, table = TABLES[name], thinned(name)
    params: dict[str, Any]
    splits = [split_rows(len(table[1]), 0.2, 0, name, s) for s in range(given.splits)]
    method, params = RIVALS[task] if way == "rival" else ("dp-ebm-plus", {})
    if way.endswith(" epochs"):
        params = {"n_epochs": int(way.split()[0])}
    with taking(way):
        return [
            float(
                np.mean(
                    [
                        score(method, table, task, e, s, split, params, given.log_loss)
                        for s, split in enumerate(splits)
                    ]
                )
            )
            for e in given.epsilons
        ]


def signals(name: str, given: argparse.Namespace) -> list[str]:
    _, y, domain = thinned(name)
    per_mu = 0.8 * len(y) / math.sqrt(len(domain.features))
    return [f"{mu_of(e, DELTA) * per_mu:.0f}" for e in given.epsilons]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--ways", nargs="*", default=["as it is", "coarse", "fine", "rival"])
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--log-loss", action="store_true", help="of labels, instead of AUROC")
    parser.add_argument("--mean", action="store_true", help="print means over the tables only")
    given = parser.parse_args()
    line(["table", "", *(f"{epsilon:g}" for epsilon in given.epsilons)])
    line(["---"] * (len(given.epsilons) + 2))
    totals: dict[str, list[list[float]]] = {way: [] for way in given.ways}
    for name in given.tables:
        if not given.mean:
            line([name, "signal", *signals(name, given)])
        for way in given.ways:
            cells = means(name, way, given)
            totals[way].append(cells)
            if not given.mean:
                label = RIVALS[TABLES[name]][0] if way == "rival" else way
                line([name, label, *(f"{cell:.3f}" for cell in cells)])
    for way, found in totals.items():
        line(["mean", way, *(f"{cell:.4f}" for cell in np.mean(found, axis=0))])


if __name__ == "__main__":
    main()
