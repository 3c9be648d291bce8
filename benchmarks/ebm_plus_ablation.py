"""What each part of DP-EBM+ is worth: the method without it, on the same splits and seeds.

    .venv/bin/python benchmarks/ebm_plus_ablation.py --splits 5 --json out/ebm_plus_ablation.json

The parts are those of `ebm_plus_ways.py`. "Noise in ..." answers some queries without noise, which
is not private: it shows what noise costs, while all that follows from the answers stays as
cautious. Prints a table for each dataset: mean AUROC or RMSE over the splits for every epsilon,
with the mean difference to the whole method and its standard error, and processor seconds of a fit.
The last table has the differences on all datasets.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ebm_plus_ways import NAMED, epochs, taking
from replacing import replaced
from sklearn.metrics import roc_auc_score

from dprepro.data.dataset import Dataset, load
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm_plus.queries import CodedHistogram, CodedResiduals, Residuals
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.privacy.curator_base import GaussianMechanism
from dprepro.privacy.query import NoisyAnswer, Query

DATASETS = ("adult", "telco", "credit", "cal-housing")
EPSILONS = (0.1, 1.0, 8.0)
DELTA = 1e-6


def exactly(*kinds: type[Query]) -> Any:
    """Return a replacement that answers some queries without noise, which no fit may do.

    What follows from the answers is as cautious as if there were noise in them.
    """

    def exact(
        uses: GaussianMechanism, numbers: np.ndarray, query: Query, unit: Any = 1.0
    ) -> NoisyAnswer:
        release = answer(uses, numbers, query, unit)
        return replace(release, value=numbers * unit) if isinstance(query, kinds) else release

    return replaced(GaussianMechanism, "answer", exact)


answer = GaussianMechanism.answer
WHOLE = "as it is"
BARE: dict[str, tuple[type[Query], ...]] = {
    "noise in histograms": (CodedHistogram,),
    "noise in sums of residuals": (CodedResiduals, Residuals),
}
OTHERS = {
    "DP-EBM (GDP), public domain": "dp-ebm-gdp",
    "DP-EBM (sound), public domain": "dp-ebm-sound",
}
"""Other methods, by what lines call them."""

VARIANTS = (
    *NAMED, "clipped at 1", "clipped at 0.5", "4 epochs", "16 epochs", *BARE, *OTHERS
)  # fmt: skip


def without(name: str) -> AbstractContextManager[None]:
    """Let DP-EBM+ be a variant, for as long as a block runs."""
    if name in OTHERS:
        return taking(WHOLE)
    return exactly(*BARE[name]) if name in BARE else taking(name)


def fit(name: str, dataset: Dataset, rows: np.ndarray, epsilon: float, seed: int) -> Any:
    assert dataset.domain is not None
    setting = Setting(dataset.task, epsilon, DELTA, dataset.domain, seed)
    model: Any = get(OTHERS.get(name, "dp-ebm-plus")).build(setting, **epochs(name))
    with without(name):
        return model.fit(dataset.X.iloc[rows].reset_index(drop=True), dataset.y[rows])


def measure(name: str, dataset: Dataset, epsilon: float, split: int) -> tuple[float, float]:
    """Return the metric on the test rows and the processor seconds of the fit."""
    train, test = split_rows(len(dataset.y), 0.2, 1, dataset.name, split)
    start = time.process_time()
    model = fit(name, dataset, train, epsilon, seed=1000 + split)
    seconds = time.process_time() - start
    X, y = dataset.X.iloc[test], dataset.y[test]
    if dataset.task == "binary":
        return float(roc_auc_score(y, model.decision_function(X))), seconds
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2))), seconds


def table(dataset: Dataset, splits: int) -> dict[str, Any]:
    fit(WHOLE, dataset, np.arange(len(dataset.y)), 1.0, 0)  # compiles
    digits = 4 if dataset.task == "binary" else 0
    results: dict[str, Any] = {}
    print(f"\n| {dataset.name} | " + " | ".join(f"{e:g}" for e in EPSILONS) + " | fit s |")
    print("| --- |" + " --- |" * (len(EPSILONS) + 1))
    for name in VARIANTS:
        runs = np.array(
            [[measure(name, dataset, e, split) for split in range(splits)] for e in EPSILONS]
        )
        results[name] = runs.tolist()
        whole = np.array(results[WHOLE])[:, :, 0]
        cells = []
        for own, other in zip(runs[:, :, 0], whole, strict=True):
            gap = own - other
            error = gap.std(ddof=1) / np.sqrt(splits) if splits > 1 else np.nan
            change = f" ({gap.mean():+.{digits}f} ± {error:.{digits}f})" if name != WHOLE else ""
            cells.append(f"{own.mean():.{digits}f}{change}")
        print(
            f"| {name} | " + " | ".join(cells) + f" | {np.median(runs[:, :, 1]):.3f} |", flush=True
        )
    return results


def summary(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return one table of all datasets: the whole method, and by how much each variant differs."""
    heads = [f"{name}, {epsilon:g}" for name in found for epsilon in EPSILONS]
    lines = ["", "| without | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for variant in VARIANTS:
        cells = []
        for results in found.values():
            whole = np.array(results[WHOLE])[:, :, 0].mean(axis=1)
            own = np.array(results[variant])[:, :, 0].mean(axis=1)
            form = ",.0f" if whole.max() > 1 else ".4f"
            shown = own if variant == WHOLE else own - whole
            cells += [format(value, form if variant == WHOLE else f"+{form}") for value in shown]
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {
        name: table(load(name, arguments.data_dir), arguments.splits) for name in arguments.datasets
    }
    print(*summary(found), sep="\n")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
