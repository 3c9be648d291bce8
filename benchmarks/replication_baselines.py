"""Which settings of diffprivlib give the baselines of the replication report on Phishing?

The report names the library (diffprivlib) and neither the settings nor what was scored. This tries
a finite list: three scalings, four norm bounds, with and without an intercept for logistic
regression; new trees in each split or one seed for all splits for the random forest; predicted
labels or probabilities for both. It prints, for each, AUROC at epsilon 0.1, 0.5, 2, 4 and 8, with
z = (ours - printed) / sqrt(sd_printed^2 / 20 + sd_ours^2 / n + unit^2 / 12), and the sum of z^2.

    DPREPRO_DATA=... python benchmarks/replication_baselines.py dp-random-forest --splits 5
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from dprepro.data.dataset import load
from dprepro.experiment.splits import split_rows
from dprepro.methods.diffprivlib_adapter import LogisticRegression, RandomForestClassifier
from dprepro.papers.published_cell import load_published

Make = Callable[[float, int], Any]
SCALINGS = {"raw": (), "standardized": (StandardScaler,), "scaled to [0, 1]": (MinMaxScaler,)}
# None: the largest norm of the rows, the library's default. sqrt(30): of 30 columns of size 1.
NORMS = (None, 1.0, math.sqrt(30), 10.0)
SEEDS = (None, 0, 1, 2, 3, 42, 123, 1337)


def settings(method: str) -> Iterator[tuple[str, Make]]:
    """Yield the words and the maker of each setting."""
    if method == "dp-random-forest":
        for seed in SEEDS:
            yield (
                "new trees in each split" if seed is None else f"seed {seed}",
                lambda epsilon, split, seed=seed: RandomForestClassifier(
                    epsilon=epsilon, random_state=split if seed is None else seed
                ),
            )
        return
    for name, scaling in SCALINGS.items():
        for norm in NORMS:
            for intercept in (True, False):
                bound = "norm read" if norm is None else f"norm {norm:.3g}"
                yield (
                    f"{name}, {bound}, {'intercept' if intercept else 'no intercept'}",
                    lambda epsilon, split, given=(scaling, norm, intercept): make_pipeline(
                        *(scaler() for scaler in given[0]),
                        LogisticRegression(
                            epsilon=epsilon,
                            data_norm=given[1],
                            fit_intercept=given[2],
                            random_state=split,
                        ),
                    ),
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=["dp-logistic", "dp-random-forest"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--setting", nargs="+", help="only these")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    dataset = load("phishing")
    X, y = dataset.X.astype(str).astype(float).to_numpy(), dataset.y
    printed = [c for c in load_published("replication-report-2025") if c.method == options.method]
    for words, make in settings(options.method):
        if options.setting and words not in options.setting:
            continue
        scores: dict[str, list[list[float]]] = {"labels": [], "probabilities": []}
        for cell in printed:
            found: dict[str, list[float]] = {"labels": [], "probabilities": []}
            for split in range(options.splits):
                train, test = split_rows(len(y), 0.2, 1, "phishing", split)
                model = make(cell.epsilon, split).fit(X[train], y[train])
                outputs = (model.predict(X[test]), model.predict_proba(X[test])[:, 1])
                for name, output in zip(found, outputs, strict=True):
                    found[name].append(float(roc_auc_score(y[test], output)))
            for name, values in found.items():
                scores[name].append(values)
        for name, rows in scores.items():
            parts, total = [], 0.0
            for cell, values in zip(printed, rows, strict=True):
                spread = (cell.std or 0.0) ** 2 / 20 + np.var(values, ddof=1) / len(values)
                z = (np.mean(values) - cell.mean) / math.sqrt(
                    spread + (2 * cell.half_unit) ** 2 / 12
                )
                total += z * z
                parts.append(f"{np.mean(values):.3f} sd {np.std(values, ddof=1):.3f} z {z:+.1f}")
            print(f"{words}; {name}: {total:.1f} | " + " | ".join(parts), flush=True)


if __name__ == "__main__":
    main()
