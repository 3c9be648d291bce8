"""Does the printed non-private EBM hold pairwise terms? RMSE with and without them, side by side.

Run: DPREPRO_DATA=... python benchmarks/ebm_interactions.py [--dataset cal-housing] [--splits 2]
"""

from __future__ import annotations

import argparse

import numpy as np
from interpret.glassbox import ExplainableBoostingRegressor

from dprepro.data.dataset import load
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm.ebm import EBMRegressor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", nargs="+", default=["cal-housing", "pol"])
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args()
    print(f"{'dataset':12} {'model':34} RMSE, a split each")
    for name in options.dataset:
        dataset = load(name)
        models = {
            "ours, no pairs": lambda: EBMRegressor(random_state=0),
            "interpret-core, interactions=0": lambda: ExplainableBoostingRegressor(
                interactions=0, outer_bags=4, n_jobs=1, random_state=0
            ),
            "interpret-core, interactions=10": lambda: ExplainableBoostingRegressor(
                interactions=10, outer_bags=4, n_jobs=1, random_state=0
            ),
        }
        for label, make in models.items():
            errors = []
            for split in range(options.splits):
                train, test = split_rows(len(dataset.y), 0.2, 1, name, split)
                model = make().fit(dataset.X.iloc[train], dataset.y[train])
                residual = model.predict(dataset.X.iloc[test]) - dataset.y[test]
                errors.append(np.sqrt(np.mean(residual**2)))
            print(f"{name:12} {label:34} {' '.join(f'{e:.5g}' for e in errors)}", flush=True)


if __name__ == "__main__":
    main()
