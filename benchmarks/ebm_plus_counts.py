"""How DP-EBM+ fits counts, beside regression and models without privacy.

    .venv/bin/python benchmarks/ebm_plus_counts.py
    .venv/bin/python benchmarks/ebm_plus_counts.py --epsilons 1000 --splits 1

The mean over the splits is printed of the Poisson deviance and the RMSE on test rows, a fifth of
all, and how far the mean prediction lies from the mean count. Methods:

    counts           `dp-ebm-plus` with loss="poisson"
    numbers          `dp-ebm-plus`; a prediction is at least 1 % of the mean count of the
                     training rows, which is not private: else its deviance would be infinite
    Poisson          scikit-learn's PoissonRegressor on one-hot bins, without privacy: those that
                     `counts` has at epsilon 1000 on the same rows
    EBM              interpret's with Poisson deviance, without privacy and without pairs
    mean             the mean count of the training rows, without privacy

With "counts" and "Poisson" both asked for, the root mean square difference of the logarithms of
their predictions is printed below the table: how far `counts` is from the minimum on its bins.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from interpret.glassbox import ExplainableBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance, root_mean_squared_error
from sklearn.model_selection import train_test_split

from dprepro.data.dataset import load
from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor

TABLE = "bike-sharing"
DELTA = 1e-6
NO_NOISE = 1e3

Rows = tuple[pd.DataFrame, np.ndarray]


def fitted(rows: Rows, domain: Domain, epsilon: float, seed: int) -> DPEBMPlusRegressor:
    """Return a fit to counts."""
    model = DPEBMPlusRegressor(epsilon, DELTA, domain=domain, random_state=seed, loss="poisson")
    return model.fit(*rows)


def counts(rows: Rows, new: pd.DataFrame, *given: object) -> np.ndarray:
    """Return predictions of new rows by `fitted`."""
    return fitted(rows, *given).predict(new)  # type: ignore[arg-type]


def numbers(rows: Rows, new: pd.DataFrame, domain: Domain, epsilon: float, seed: int) -> np.ndarray:
    """Return predictions of a regression, at least 1 % of the mean count."""
    model = DPEBMPlusRegressor(epsilon, DELTA, domain=domain, random_state=seed).fit(*rows)
    return np.maximum(model.predict(new), 0.01 * rows[1].mean())


def poisson(rows: Rows, new: pd.DataFrame, domain: Domain, epsilon: float, seed: int) -> np.ndarray:
    """Return predictions of a linear model of one-hot bins."""
    bins = fitted(rows, domain, NO_NOISE, seed).bins_

    def one_hot(X: pd.DataFrame) -> np.ndarray:
        parts = [
            np.eye(each.n_bins + 1)[each.encode(X[name])][:, :-1]
            for name, each in zip(X.columns, bins, strict=True)
        ]
        return np.hstack(parts)

    model = PoissonRegressor(alpha=1e-6, solver="newton-cholesky", max_iter=1000, tol=1e-8)
    return np.asarray(model.fit(one_hot(rows[0]), rows[1]).predict(one_hot(new)))


def ebm(rows: Rows, new: pd.DataFrame, domain: Domain, epsilon: float, seed: int) -> np.ndarray:
    """Return predictions of interpret's machine."""
    model = ExplainableBoostingRegressor(
        objective="poisson_deviance", interactions=0, outer_bags=2, n_jobs=1, random_state=seed
    )
    return np.asarray(model.fit(*rows).predict(new))


def mean(rows: Rows, new: pd.DataFrame, *_: object) -> np.ndarray:
    """Return the mean count for every new row."""
    return np.full(len(new), rows[1].mean())


WAYS: dict[str, Callable[..., np.ndarray]] = {
    "counts": counts,
    "numbers": numbers,
    "Poisson": poisson,
    "EBM": ebm,
    "mean": mean,
}
PUBLIC = ("Poisson", "EBM", "mean")
"""Ways without epsilon."""


def predictions(way: str, epsilon: float, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of the test rows of a split, and what is predicted."""
    data = load(TABLE)
    y = np.asarray(data.y, float)
    train, test = train_test_split(np.arange(y.size), test_size=0.2, random_state=split)
    rows = data.X.iloc[train].reset_index(drop=True), y[train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new = data.X.iloc[test].reset_index(drop=True)
        return y[test], WAYS[way](rows, new, data.domain, epsilon, split)


def main() -> None:
    """Print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.3, 1.0, 3.0, 8.0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    given = parser.parse_args()
    heads = [
        f"{measure}, {level:g}"
        for measure in ("deviance", "RMSE", "mean")
        for level in given.epsilons
    ]
    print(f"| method | {' | '.join(heads)} |")
    print(f"| --- |{' --- |' * len(heads)}")
    found: dict[tuple[str, float], list[tuple[np.ndarray, np.ndarray]]] = {}
    for way in given.ways:
        for level in [math.inf] if way in PUBLIC else given.epsilons:
            found[way, level] = [predictions(way, level, s) for s in range(given.splits)]
        cells = [found.get((way, level), found.get((way, math.inf))) for level in given.epsilons]
        shown = [
            *(f"{np.mean([mean_poisson_deviance(*pair) for pair in cell]):.2f}" for cell in cells),
            *(
                f"{np.mean([root_mean_squared_error(*pair) for pair in cell]):.1f}"
                for cell in cells
            ),
            *(f"{np.mean([p.mean() / y.mean() for y, p in cell]):.3f}" for cell in cells),
        ]
        print(f"| {way} | {' | '.join(shown)} |", flush=True)
    if ("Poisson", math.inf) in found:
        for level in given.epsilons if "counts" in given.ways else []:
            pairs = zip(found["counts", level], found["Poisson", math.inf], strict=True)
            gaps = [np.log(one[1] / other[1]) for one, other in pairs]
            print(f"gap at {level:g}: {math.sqrt(np.mean(np.square(gaps))):.3f}")


if __name__ == "__main__":
    main()
