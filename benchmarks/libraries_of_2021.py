"""Are the non-private columns of the DP-EBM paper those of the libraries of early 2021?

The paper appeared in mid 2021. This fits interpret-core 0.2.4 (January 2021) and LightGBM 3.1.1
(December 2020) on the splits of our configs and prints how far the means lie from the printed ones,
z = (ours - printed) / sqrt(sd_printed^2 / 25 + sd_ours^2 / n + unit^2 / 12).

    pip install --no-deps --target /tmp/old interpret-core==0.2.4 lightgbm==3.1.1
    DPREPRO_DATA=... python benchmarks/libraries_of_2021.py /tmp/old --splits 5 adult pol
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score, root_mean_squared_error

from dprepro.data.dataset import Dataset, load
from dprepro.experiment.splits import split_rows
from dprepro.papers.published_cell import PublishedCell, load_published

Make = Callable[[int], Any]
PAPER = "dp-ebm-2021"


def settings(is_regression: bool) -> dict[str, tuple[str, Make]]:
    """Return the column and the estimator of each setting; a split's number is its seed."""
    from interpret.glassbox.ebm import ebm
    from lightgbm import LGBMClassifier, LGBMRegressor

    boosting = LGBMRegressor if is_regression else LGBMClassifier
    additive = (
        ebm.ExplainableBoostingRegressor if is_regression else ebm.ExplainableBoostingClassifier
    )

    def ebm_of(**given: Any) -> tuple[str, Make]:
        return "ebm", lambda seed: additive(n_jobs=1, random_state=seed, **given)

    # Those that the paper states for DP-EBM; everything else stays at the library's default.
    stated = {"max_bins": 32, "max_rounds": 300}
    return {
        "lightgbm, defaults": ("lightgbm", lambda seed: boosting(n_jobs=1, random_state=seed)),
        "ebm, defaults": ebm_of(),
        "ebm, no pairs": ebm_of(interactions=0),
        "ebm, 32 bins": ebm_of(max_bins=32),
        "ebm, 300 epochs": ebm_of(max_rounds=300),
        "ebm, 32 bins, 300 epochs": ebm_of(**stated),
        "ebm, 32 bins, 300 epochs, no pairs": ebm_of(**stated, interactions=0),
        "ebm, 32 bins, 300 epochs, one bag": ebm_of(**stated, outer_bags=1),
    }


def inputs(dataset: Dataset, column: str) -> Any:
    """Return the rows as each library takes them: EBM knows categories as text."""
    if column == "lightgbm":
        return dataset.X
    kinds = {c: str if str(k) == "category" else float for c, k in dataset.X.dtypes.items()}
    return dataset.X.astype(kinds).astype({c: object for c, k in kinds.items() if k is str})


def distance(cell: PublishedCell, values: list[float]) -> float:
    """Return z of the mean of `values`."""
    spread = (cell.std or 0.0) ** 2 / 25 + np.var(values, ddof=1) / len(values)
    return (np.mean(values) - cell.mean) / math.sqrt(spread + (2 * cell.half_unit) ** 2 / 12)


def measure(name: str, label: str, splits: int) -> tuple[str, list[float]]:
    """Return the printed column that a setting answers to, and its metric on each split."""
    dataset = load(name)
    column, make = settings(dataset.task == "regression")[label]
    X, values = inputs(dataset, column), []
    for split in range(splits):
        train, test = split_rows(len(dataset.y), 0.2, 1, name, split)
        model = make(split).fit(X.iloc[train], dataset.y[train])
        if dataset.task == "regression":
            found = root_mean_squared_error(dataset.y[test], model.predict(X.iloc[test]))
        else:
            found = roc_auc_score(dataset.y[test], model.predict_proba(X.iloc[test])[:, 1])
        values.append(float(found))
    return column, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", type=Path, help="folder of the two old packages")
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--setting", nargs="+", help="only these labels")
    options = parser.parse_args()
    sys.path.insert(0, str(options.libraries))
    warnings.simplefilter("ignore")
    for name in options.datasets:
        # wine-white stands for the printed dataset wine.
        printed = {(c.method, c.dataset): c for c in load_published(PAPER) if math.isinf(c.epsilon)}
        for label in options.setting or settings(True):
            began = time.process_time()
            column, values = measure(name, label, options.splits)
            cell = printed[column, "wine" if name.startswith("wine") else name]
            seconds = (time.process_time() - began) / options.splits
            print(
                f"{name:12} {label:36} {np.mean(values):.5g} sd {np.std(values, ddof=1):.2g} "
                f"(n {len(values)}); printed {cell.mean:g} sd {cell.std:g}; "
                f"z {distance(cell, values):+.1f}; {seconds:.1f} s a fit",
                flush=True,
            )


if __name__ == "__main__":
    main()
