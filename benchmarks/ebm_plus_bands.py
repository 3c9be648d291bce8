"""How often the bands of DP-EBM+ hold the truth, on simulated tables whose functions are known.

    .venv/bin/python benchmarks/ebm_plus_bands.py --seeds 20
    .venv/bin/python benchmarks/ebm_plus_bands.py --seeds 10 --first 200  # the choice
    .venv/bin/python benchmarks/ebm_plus_bands.py --seeds 20 --by-feature
    .venv/bin/python benchmarks/ebm_plus_bands.py --seeds 20 --errors --way "no curves"

Four features: a curve, a step, a skewed one with a curve in its logarithm, and one without effect.
In every bin the true function's mean is compared with the learned one, both centred by rows, and
the share of bins printed that it is within two standard deviations of; and the root mean square of
the errors over that of the deviations, which would be 1. `--by-feature` prints the share for each
feature instead, `--errors` the root mean square of the errors. `--way` takes a way of
ebm_plus_ways.py.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from ebm_plus_ways import epochs, taking

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor

FEATURES = tuple(NumericFeature(n, a, b) for n, a, b in (
    ("curve", -4, 4), ("step", 0, 1), ("skewed", 0, 1e5), ("none", 0, 1)
))  # fmt: skip
EPSILONS = (0.1, 0.5, 1.0, 8.0)
SIZES = (1000, 5000, 50_000)


def simulate(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and, float64 (rows, 4), the true functions' values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "curve": rng.standard_normal(rows).clip(-4, 4),
            "step": rng.random(rows),
            "skewed": np.exp(rng.normal(5, 2, rows)).clip(0, 1e5),
            "none": rng.random(rows),
        }
    )
    truth = np.zeros((rows, 4))
    truth[:, 0] = np.sin(1.5 * X["curve"])
    truth[:, 1] = 1.5 * (X["step"] > 0.7)
    truth[:, 2] = 0.4 * (np.log(X["skewed"]) - 5)
    return X, truth


def errors(model: Any, X: pd.DataFrame, truth: np.ndarray) -> np.ndarray:
    """Return error, deviation and feature of every bin with rows in it, float64 (3, bins)."""
    found = []
    for k, bins in enumerate(model.bins_):
        codes = bins.encode(X.iloc[:, k])
        rows = np.bincount(codes, minlength=bins.n_bins)
        seen = rows > 0
        means = np.bincount(codes, truth[:, k], bins.n_bins)[seen] / rows[seen]
        learned = model.shape_functions_[k][seen]
        gap = learned - np.average(learned, weights=rows[seen])
        gap -= means - np.average(means, weights=rows[seen])
        found.append(np.stack([gap, model.shape_noise_[k][seen], np.full(gap.size, k)]))
    return np.concatenate(found, axis=1)


def fit(task: str, rows: int, epsilon: float, seed: int) -> np.ndarray:
    """Return what `errors` does."""
    X, truth = simulate(rows, seed)
    rng = np.random.default_rng(10_000 + seed)
    score = truth.sum(axis=1) - 0.5
    if task == "labels":
        y = (score + rng.logistic(size=rows) > 0).astype(int)
        domain = Domain(FEATURES, ("0", "1"))
        model: Any = DPEBMPlusClassifier(epsilon, domain=domain, random_state=seed).fit(X, y)
    else:
        y = (score + rng.standard_normal(rows)).clip(-8, 8)
        domain = Domain(FEATURES, (-8.0, 8.0))
        model = DPEBMPlusRegressor(epsilon, domain=domain, random_state=seed).fit(X, y)
    return errors(model, X, truth)


def in_all(found: np.ndarray) -> str:
    """Return the share of bins held, and the ratio of the root mean squares."""
    gap, deviation, _ = found
    ratio = np.sqrt(np.mean(gap**2) / np.mean(deviation**2))
    return f"{np.mean(np.abs(gap) <= 2 * deviation):.1%} ({ratio:.2f})"


def by_feature(found: np.ndarray) -> str:
    """Return the share of bins held in each feature."""
    gap, deviation, features = found
    held = np.abs(gap) <= 2 * deviation
    return ", ".join(f"{held[features == k].mean():.0%}" for k in range(len(FEATURES)))


def size_of_errors(found: np.ndarray) -> str:
    """Return the root mean square of the errors."""
    return f"{np.sqrt(np.mean(found[0] ** 2)):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--by-feature", dest="cell", action="store_const", const=by_feature)
    shown.add_argument("--errors", dest="cell", action="store_const", const=size_of_errors)
    parser.add_argument("--way", default="as it is")
    parser.set_defaults(cell=in_all)
    given = parser.parse_args()
    if epochs(given.way):
        parser.error(f"--way {given.way!r} is a parameter: name another one of ebm_plus_ways.py")
    with taking(given.way):
        show(given)


def show(given: argparse.Namespace) -> None:
    seeds = range(given.first, given.first + given.seeds)
    print("| target | rows | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |")
    print("| --- | --- |" + " --- |" * len(EPSILONS))
    for task in ("labels", "numbers"):
        for rows in SIZES:
            cells = []
            for epsilon in EPSILONS:
                found = [fit(task, rows, epsilon, seed) for seed in seeds]
                cells.append(given.cell(np.concatenate(found, axis=1)))
            print(f"| {task} | {rows:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
