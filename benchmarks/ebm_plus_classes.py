"""How DP-EBM+ fits several classes, beside private rivals and models without privacy.

    .venv/bin/python benchmarks/ebm_plus_classes.py
    .venv/bin/python benchmarks/ebm_plus_classes.py --tables car --epsilons 1000 --splits 1

The mean over the splits is printed of accuracy, log loss and macro AUROC (one class against the
rest) on test rows, a fifth of all, drawn by class. Methods:

    classes          `dp-ebm-plus`: one query an epoch for all classes
    one at a time    `dp-ebm-plus` of two labels for each class against the rest. S fits share the
                     budget: each is mu / sqrt(S)-GDP; probabilities are scaled to add up to 1
    DP-EBM           the same with `dp-ebm-sound`
    logistic         the same with `dp-gd-logistic`
    forest           `dp-random-forest`: epsilon-DP, with the number of rows public
    majority         the rates of the classes, without privacy
    EBM              interpret's, without privacy and without pairs

Nothing was tuned on these tables.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from interpret.glassbox import ExplainableBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from dprepro.data.dataset import load
from dprepro.data.domain import Domain
from dprepro.data.encode import ENCODINGS
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.privacy.gdp import epsilon_of, mu_of

TABLES = ("car", "nursery", "optdigits", "satimage", "segment")
DELTA = 1e-6
FEWEST = 6
"""Rows that a class needs so that each split has it on both sides; other classes are left out."""

Rows = tuple[pd.DataFrame, np.ndarray]


def fitted(
    method: str, task: str, rows: Rows, new: pd.DataFrame, domain: Domain, epsilon: float, seed: int
) -> np.ndarray:
    """Return the probabilities of new rows by a method of the registry, float64 (n, S)."""
    entry = registry.get(method)
    encoded = ENCODINGS[entry.encoding](domain)
    delta = 0.0 if method == "dp-random-forest" else DELTA
    model = entry.build(Setting(task, epsilon, delta, domain, seed))
    model.fit(encoded.transform(rows[0]), rows[1])
    found = np.asarray(model.predict_proba(encoded.transform(new)))
    if found.shape[1] == len(domain.target):
        return found
    whole = np.zeros((len(found), len(domain.target)))
    whole[:, np.asarray(model.classes_, int)] = found
    return whole


def one_at_a_time(
    method: str, rows: Rows, new: pd.DataFrame, domain: Domain, epsilon: float, seed: int
) -> np.ndarray:
    """Return the probabilities by one fit of two labels for each class."""
    classes = len(domain.target)
    each = epsilon_of(mu_of(epsilon, DELTA) / math.sqrt(classes), DELTA)
    binary = replace(domain, target=("rest", "class"))
    parts = [
        fitted(method, "binary", (rows[0], (rows[1] == s).astype(int)), new, binary, each,
               100 * seed + s)[:, 1]
        for s in range(classes)
    ]  # fmt: skip
    found = np.column_stack(parts)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def majority(rows: Rows, new: pd.DataFrame, domain: Domain, *_: float) -> np.ndarray:
    """Return the rates of the classes for every new row."""
    rates = np.bincount(rows[1], minlength=len(domain.target)) / len(rows[1])
    return np.tile(rates, (len(new), 1))


def ebm(rows: Rows, new: pd.DataFrame, domain: Domain, *given: float) -> np.ndarray:
    """Return the probabilities by interpret's machine."""
    model = ExplainableBoostingClassifier(
        interactions=0, outer_bags=2, n_jobs=1, random_state=int(given[1])
    )
    return np.asarray(model.fit(*rows).predict_proba(new))


WAYS: dict[str, Callable[..., np.ndarray]] = {
    "classes": lambda *given: fitted("dp-ebm-plus", "multiclass", *given),
    "one at a time": lambda *given: one_at_a_time("dp-ebm-plus", *given),
    "DP-EBM": lambda *given: one_at_a_time("dp-ebm-sound", *given),
    "logistic": lambda *given: one_at_a_time("dp-gd-logistic", *given),
    "forest": lambda *given: fitted("dp-random-forest", "multiclass", *given),
    "majority": majority,
    "EBM": ebm,
}
PUBLIC = ("majority", "EBM")
"""Ways without epsilon."""


def table(name: str) -> tuple[pd.DataFrame, np.ndarray, Domain]:
    """Return a table as its card says, but for classes of fewer rows than `FEWEST`."""
    data = load(name)
    y = np.asarray(data.y).astype(int)
    kept = np.flatnonzero(np.bincount(y) >= FEWEST)
    rows = np.isin(y, kept)
    domain = replace(data.domain, target=tuple(data.domain.target[k] for k in kept))
    return data.X[rows].reset_index(drop=True), np.searchsorted(kept, y[rows]), domain


def scores(name: str, way: str, epsilon: float, split: int) -> tuple[float, float, float]:
    """Return accuracy, log loss and macro AUROC on the test rows of a split."""
    X, y, domain = table(name)
    train, test = train_test_split(np.arange(y.size), test_size=0.2, random_state=split, stratify=y)
    rows = X.iloc[train].reset_index(drop=True), y[train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = WAYS[way](rows, X.iloc[test].reset_index(drop=True), domain, epsilon, split)
    found = np.clip(found, 1e-6, 1.0)
    found /= found.sum(axis=1, keepdims=True)
    return (
        accuracy_score(y[test], found.argmax(axis=1)),
        log_loss(y[test], found),
        roc_auc_score(y[test], found, multi_class="ovr"),
    )


def main() -> None:
    """Print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 8.0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    given = parser.parse_args()
    measures = ("accuracy", "log loss", "macro AUROC")
    heads = [f"{measure}, {level:g}" for measure in measures for level in given.epsilons]
    print(f"| table | method | {' | '.join(heads)} |")
    print(f"| --- | --- |{' --- |' * len(heads)}")
    for name in given.tables:
        for way in given.ways:
            found = {
                level: np.mean([scores(name, way, level, s) for s in range(given.splits)], axis=0)
                for level in ([math.inf] if way in PUBLIC else given.epsilons)
            }
            means = [
                f"{found.get(level, found.get(math.inf))[k]:.3f}"
                for k in range(len(measures))
                for level in given.epsilons
            ]
            print(f"| {name} | {way} | {' | '.join(means)} |", flush=True)


if __name__ == "__main__":
    main()
