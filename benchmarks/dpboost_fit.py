"""Processor seconds to fit DPBoost's 50 trees to 26,000 rows of 14 continuous features.

Run: python benchmarks/dpboost_fit.py
"""

import time

import numpy as np
import pandas as pd
from machine import pin_to_one_core

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dpboost.estimator import DPBoostClassifier

ROWS, FEATURES, REPEATS = 26_000, 14, 5


def main() -> None:
    pin_to_one_core()
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, FEATURES)), columns=[f"x{k}" for k in range(FEATURES)])
    y = (X["x0"] + X["x1"] * X["x2"] + rng.normal(size=ROWS) > 0).astype(int)
    domain = Domain(tuple(NumericFeature(name, -5, 5) for name in X.columns), ("0", "1"))
    for variant in ("as-published", "sound"):
        model = DPBoostClassifier(epsilon=8.0, variant=variant, domain=domain)
        model.fit(X[:1000], y[:1000])  # compiles
        seconds = [_seconds(model, X, y) for _ in range(REPEATS)]
        print(f"{variant:13} best {min(seconds):.3f} s, median {np.median(seconds):.3f} s")


def _seconds(model: DPBoostClassifier, X: pd.DataFrame, y: pd.Series) -> float:
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


if __name__ == "__main__":
    main()
