"""Tables of numbers that rules for few rows were chosen on; no result is about them.

Bike-sharing and parkinson as they are, 4,177 rows of bike-sharing, the torque of AI4I 2020 and two
severity scores of SUPPORT2 as targets, and a simulated table of eight features that say nearly the
same. At most 12,500 rows each. Two are not among `TABLES`: "both ends", 4,177 rows of bike-sharing
with targets that are 0 or large, and 30 more features of one value; and "differences", 12,500 rows
of 16 features whose target follows from differences of features that are nearly alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from dprepro.data.dataset import load
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature

Table = tuple[pd.DataFrame, np.ndarray, Domain]
ROWS, FEW = 12_500, 4177

_SUPPORT = {
    "age": (18, 102), "meanbp": (0, 200), "wblc": (0, 100), "hrt": (0, 250), "resp": (0, 80),
    "temp": (30, 43), "pafi": (0, 900), "alb": (0, 10), "bili": (0, 50), "crea": (0, 20),
    "sod": (100, 185), "ph": (6.8, 7.8), "scoma": (0, 100), "num.co": (0, 10),
}  # fmt: skip
"""Measurements of SUPPORT2 and public bounds for them."""


@cache
def table(name: str) -> Table:
    """Return features, targets and domain of one of `TABLES`, or of the two others."""
    if name in OTHERS:
        return OTHERS[name]()
    X, y, domain = MADE[name]() if name in MADE else loaded(name.removesuffix(", few"))
    rows = FEW if name.endswith(", few") else ROWS
    picked = np.random.default_rng(0).permutation(len(y))[:rows]
    return X.iloc[picked].reset_index(drop=True), y[picked], domain


TABLES = ("collinear", "bike-sharing, few", "parkinson", "torque", "aps", "sps", "bike-sharing")


def loaded(name: str) -> Table:
    """Return a table as its card says."""
    data = load(name)
    return data.X, np.asarray(data.y), data.domain


def with_target(name: str, column: str, bounds: tuple[float, float]) -> Table:
    """Return a table with another column as its target."""
    data = load(name)
    X = data.X.copy()
    y = X.pop(column).to_numpy(float)
    features = tuple(f for f in data.domain.features if f.name != column)
    return X, y, Domain(features, bounds)


def support2(target: str, bounds: tuple[float, float]) -> Table:
    """Return measurements of SUPPORT2, some of them missing, and a score as the target."""
    folder = os.environ.get("DPREPRO_DATA")
    if folder is None:
        raise SystemExit("its card drops the scores: set DPREPRO_DATA to a folder with support2/")
    rows = pd.read_csv(Path(folder) / "support2" / "support2.csv", skipinitialspace=True)
    rows = rows[rows[target].notna()].reset_index(drop=True)
    features = tuple(NumericFeature(n, *map(float, b), missing=True) for n, b in _SUPPORT.items())
    return (
        rows[list(_SUPPORT)].astype(float),
        rows[target].to_numpy(float),
        Domain(features, bounds),
    )


def both_ends(X: pd.DataFrame, y: np.ndarray, domain: Domain) -> Table:
    """Return a table whose targets are 0 or from 250 to 650, with 30 more features of one value."""
    constants = {f"c{k}": 0.0 if k % 2 else 50.0 for k in range(30)}
    features = [NumericFeature(name, 0.0, 100.0) for name in constants]
    targets = np.where(y > 250, np.minimum(y, 650.0), 0.0)
    return X.assign(**constants), targets, Domain((*domain.features, *features), (0.0, 650.0))


def collinear(rows: int) -> Table:
    """Return seven measures of one size, and a category; the target grows with the size."""
    rng = np.random.default_rng(0)
    size = rng.beta(5, 3, rows)
    powers = ((1, 1.0), (1, 0.8), (1, 0.3), (3, 2.0), (3, 1.0), (3, 0.5), (3, 0.6))
    measures = {
        f"s{k}": size**power * scale * np.exp(0.08 * rng.normal(size=rows))
        for k, (power, scale) in enumerate(powers)
    }
    young = rng.choice(["I", "M", "F"], rows, p=[0.7, 0.15, 0.15])
    old = rng.choice(["I", "M", "F"], rows, p=[0.1, 0.5, 0.4])
    X = pd.DataFrame(measures | {"sex": np.where(size < 0.5, young, old)})
    y = 4 + 9 * size**1.5 * np.exp(0.3 * rng.normal(size=rows))
    bounds = (1.5, 1.2, 0.5, 4.0, 2.0, 1.0, 1.2)
    features = [NumericFeature(f"s{k}", 0.0, bound) for k, bound in enumerate(bounds)]
    domain = Domain((*features, CategoricalFeature("sex", ("M", "F", "I"))), (0.0, 40.0))
    return X, np.clip(y, 0, 40), domain


def differences(rows: int) -> Table:
    """Return eight features, eight that are nearly the same, and weighted differences of both."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(rows, 6)) @ rng.normal(size=(6, 16)) / np.sqrt(6)
    X = common + 0.3 * rng.normal(size=(rows, 16))
    weights = rng.normal(size=16)
    for k in range(0, 16, 2):
        X[:, k + 1] = X[:, k] + 0.3 * rng.normal(size=rows)
    weights[1::2] = -0.9 * weights[::2]
    effect = X @ weights
    y = np.clip(effect / effect.std() + 0.3 * rng.normal(size=rows), -6, 6)
    names = [f"x{k}" for k in range(16)]
    features = tuple(NumericFeature(name, -8.0, 8.0) for name in names)
    return pd.DataFrame(X, columns=names), y, Domain(features, (-6.0, 6.0))


MADE: dict[str, Callable[[], Table]] = {
    "collinear": lambda: collinear(FEW),
    "torque": lambda: with_target("ai4i2020", "Torque [Nm]", (0.0, 100.0)),
    "aps": lambda: support2("aps", (0.0, 200.0)),
    "sps": lambda: support2("sps", (0.0, 100.0)),
}
OTHERS: dict[str, Callable[[], Table]] = {
    "both ends": lambda: both_ends(*table("bike-sharing, few")),
    "differences": lambda: differences(ROWS),
}
"""Tables that have no card; `OTHERS` keep all of their rows, in order."""
