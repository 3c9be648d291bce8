"""Random boosting on the one split that the replication data of Maddock et al. 2022 were made on.

The authors' replication holds out 30 % of the rows by scikit-learn's `train_test_split` with
`random_state=1` and `stratify`, and repeats the noise three times. On that split, fits differ from
theirs in noise and splits of trees alone, so that fewer repeats tell more than ten splits. This
prints each row's mean over some repeats beside the printed one, with
z = (ours - printed) / (s sqrt(1/3 + 1/repeats)), s pooled of both.

    DPREPRO_DATA=... python benchmarks/maddock_split.py
    DPREPRO_DATA=... python benchmarks/maddock_split.py --beside dp-ebm-plus --repeats 25

`--beside` takes other methods instead, with public ranges, and prints the best row of the table at
each epsilon beside them.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from dprepro.data.dataset import Dataset, load
from dprepro.data.domain import Domain
from dprepro.methods.entry import Setting
from dprepro.methods.random_boosting.estimator import DPRandomBoostingClassifier
from dprepro.methods.registry import get
from dprepro.papers.published_cell import load_published

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
DATASET = "give-me-some-credit-complete"
THEIR_SPLIT, THEIR_REPEATS = 1, 3

Rows = tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]


def settings(config: str) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
    """Yield label, epsilon and parameters of each entry of a config that has numbers of trees."""
    for entry in yaml.safe_load((CONFIGS / f"{config}.yaml").read_text())["methods"]:
        for epsilon, trees in entry.get("by_epsilon", {}).items():
            yield entry["label"], float(epsilon), {**entry["params"], **trees}


def scores(rows: Rows, epsilon: float, params: Mapping[str, Any], repeats: int) -> np.ndarray:
    """Return AUROC of so many fits, float64 (repeats,)."""
    X, X_test, y, y_test = rows
    domain = Domain.observe(X, y, "binary")
    return np.array(
        [
            roc_auc_score(
                y_test,
                DPRandomBoostingClassifier(
                    epsilon=epsilon, domain=domain, random_state=seed, **params
                )
                .fit(X, y)
                .decision_function(X_test),
            )
            for seed in range(repeats)
        ]
    )


def beside(
    name: str, rows: Rows, domain: Domain | None, budget: tuple[float, float], repeats: int
) -> np.ndarray:
    """Return AUROC of so many fits of a method with its defaults, float64 (repeats,)."""
    X, X_test, y, y_test = rows
    found = []
    for seed in range(repeats):
        model: Any = get(name).build(Setting("binary", *budget, domain, seed))
        model.fit(X, y)
        found.append(roc_auc_score(y_test, model.decision_function(X_test)))
    return np.array(found)


def their_split(dataset: Dataset) -> Rows:
    """Return features and labels of the authors' training and test rows."""
    X, X_test, y, y_test = train_test_split(
        dataset.X, dataset.y, test_size=0.3, random_state=THEIR_SPLIT, stratify=dataset.y
    )
    return X.reset_index(drop=True), X_test, np.asarray(y), np.asarray(y_test)


def print_beside(names: list[str], repeats: int) -> None:
    """Print each method's mean at each epsilon, and the best printed row there."""
    delta = float(yaml.safe_load((CONFIGS / "maddock-credit1.yaml").read_text())["delta"])
    cells, dataset = load_published("maddock-2022"), load(DATASET)
    rows = their_split(dataset)
    for name in names:
        for epsilon in sorted({cell.epsilon for cell in cells}):
            best = max((c for c in cells if c.epsilon == epsilon), key=lambda c: c.mean)
            found = beside(name, rows, dataset.domain, (epsilon, delta), repeats)
            print(
                f"{name:24} {epsilon:4g}  {found.mean():.4f} sd {found.std(ddof=1):.4f}  "
                f"best printed {best.mean:.4f} sd {best.std or 0:.4f} ({best.method})",
                flush=True,
            )


def main() -> None:
    """Print one line a row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--config", nargs="+", default=["maddock-credit1", "forensics-maddock-credit1"]
    )
    parser.add_argument("--beside", nargs="+", metavar="METHOD", help="such as dp-ebm-plus")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.beside:
        print_beside(given.beside, given.repeats)
        return
    rows = their_split(load(DATASET))
    printed = {(c.method, c.epsilon): c for c in load_published("maddock-2022")}
    for label, epsilon, params in (s for config in given.config for s in settings(config)):
        cell = printed[label.partition(",")[0], epsilon]
        found = scores(rows, epsilon, params, given.repeats)
        own = found.std(ddof=1)
        freedom = THEIR_REPEATS - 1 + given.repeats - 1
        pooled = (
            (THEIR_REPEATS - 1) * (cell.std or 0) ** 2 + (given.repeats - 1) * own**2
        ) / freedom
        error = math.sqrt(pooled * (1 / THEIR_REPEATS + 1 / given.repeats))
        print(
            f"{label:60} {epsilon:4g}  printed {cell.mean:.4f} sd {cell.std:.4f}  "
            f"ours {found.mean():.4f} sd {own:.4f}  z {(found.mean() - cell.mean) / error:+.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
