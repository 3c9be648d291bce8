"""What RMSE has the library's private linear regression, without bounds, on Parkinson?

Each line is an epsilon: the smallest error, the median and the largest over the splits. Bounds are
left out, so the library reads them from the rows.

Run: DPREPRO_DATA=... python benchmarks/linear_library.py [--splits 20]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from dprepro.data.dataset import load
from dprepro.experiment.splits import split_rows
from dprepro.methods.diffprivlib_adapter import PrivacyLeakWarning, linear_regression


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="parkinson")
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    data = load(options.dataset)
    X, y = data.X.to_numpy(float), np.asarray(data.y, float)
    print(f"{'epsilon':>8} {'smallest':>10} {'median':>10} {'largest':>10}")
    for epsilon in (0.1, 0.5, 2.0, 4.0, 8.0):
        errors = []
        for split in range(options.splits):
            train, test = split_rows(len(y), 0.2, 1, options.dataset, split)
            model = linear_regression.LinearRegression(epsilon=epsilon, random_state=split).fit(
                X[train], y[train]
            )
            residual = model.predict(X[test]) - y[test]
            errors.append(np.sqrt(np.mean(residual**2)))
        found = (np.min(errors), np.median(errors), np.max(errors))
        print(f"{epsilon:8g} {' '.join(f'{value:10.4g}' for value in found)}", flush=True)


if __name__ == "__main__":
    main()
