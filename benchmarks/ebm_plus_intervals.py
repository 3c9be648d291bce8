"""How many targets of test rows lie in the prediction intervals of DP-EBM+.

    .venv/bin/python benchmarks/ebm_plus_intervals.py --splits 25
    .venv/bin/python benchmarks/ebm_plus_intervals.py --tables pol --pairs 10

For each table and epsilon the mean coverage of 90 % intervals over the splits is printed, and in
brackets its standard deviation from split to split; then the mean of their half width over that
which would have covered 90 % of the test rows. `--choice` runs the tables that the rules were
chosen on instead: two real ones, and simulated ones with residuals of several kinds. With `--pairs`
models may have so many functions of two features.
"""

from __future__ import annotations

import argparse
import zlib
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.dataset import load
from dprepro.data.domain import Domain, NumericFeature
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor

REPORTED = ("cal-housing", "elevators", "pol", "wine", "abalone")
CHOICE = (
    "bike-sharing", "parkinson", "normal 4000", "laplace 4000", "uniform 4000", "mixed 4000",
    "lognormal 4000", "student 40000", "mixed 40000", "normal 1000", "student 1500",
    "laplace 12000",
)  # fmt: skip
EPSILONS = (0.1, 0.5, 1.0, 8.0)
COVERAGE = 0.9

FEATURES = tuple(NumericFeature(n, a, b) for n, a, b in (
    ("curve", -4, 4), ("step", 0, 1), ("skewed", 0, 1e5), ("none", 0, 1)
))  # fmt: skip
Table = tuple[pd.DataFrame, np.ndarray, Domain | None]


def table(name: str) -> Table:
    """Return rows, targets and domain of a card, or of a kind of residuals and a number of rows."""
    if " " not in name:
        data = load(name)
        return data.X, np.asarray(data.y), data.domain
    kind, rows = name.split()
    return simulated(kind, int(rows) * 5 // 4, zlib.crc32(name.encode()))


def simulated(kind: str, n: int, seed: int) -> Table:
    """Return n rows with four features, the last without effect, and residuals of a kind."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "curve": rng.standard_normal(n).clip(-4, 4),
            "step": rng.random(n),
            "skewed": np.exp(rng.normal(5, 2, n)).clip(0, 1e5),
            "none": rng.random(n),
        }
    )
    truth = np.sin(1.5 * X["curve"]) + 1.5 * (X["step"] > 0.7) + 0.4 * np.log(X["skewed"]) - 2.5
    residuals = {
        "normal": lambda: rng.standard_normal(n),
        "laplace": lambda: rng.laplace(size=n),
        "student": lambda: rng.standard_t(3, n) / 1.7,
        "uniform": lambda: rng.uniform(-1.7, 1.7, n),
        "lognormal": lambda: np.exp(rng.normal(0, 0.8, n)) / 1.5 - 0.9,
        "mixed": lambda: rng.standard_normal(n) * np.where(rng.random(n) < 0.2, 3, 0.3),
    }[kind]()
    return X, np.asarray(truth + residuals).clip(-8, 8), Domain(FEATURES, (-8.0, 8.0))


def held(data: Table, name: str, epsilon: float, seed: int, pairs: int) -> tuple[float, float]:
    """Return the coverage on the test rows of one split, and the width over what was needed."""
    X, y, domain = data
    train, test = split_rows(len(y), 0.2, 0, name, seed)
    model: Any = DPEBMPlusRegressor(epsilon, pairs=pairs, domain=domain, random_state=1000 + seed)
    model.fit(X.iloc[train].reset_index(drop=True), y[train])
    ends = model.predict_interval(X.iloc[test], COVERAGE)
    inside = (ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])
    needed = np.quantile(np.abs(y[test] - model.predict(X.iloc[test])), COVERAGE)
    return float(inside.mean()), model.residual_sizes_.half_width(COVERAGE) / float(needed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=25)
    parser.add_argument("--choice", action="store_true")
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--pairs", type=int, default=0)
    given = parser.parse_args()
    print("| table | rows | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |")
    print("| --- | --- |" + " --- |" * len(EPSILONS))
    for name in given.tables or (CHOICE if given.choice else REPORTED):
        data, cells = table(name), []
        for epsilon in EPSILONS:
            found = [held(data, name, epsilon, seed, given.pairs) for seed in range(given.splits)]
            covered, width = np.array(found).T
            cells.append(f"{covered.mean():.1%} ({covered.std():.1%}), {width.mean():.2f}")
        rows = round(0.8 * len(data[1]))
        print(f"| {name} | {rows:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
