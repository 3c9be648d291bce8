"""How S-BDT's authors score: the best threshold on the test rows, and steps in the AUROC.

Their code prints as accuracy the highest that thresholds 0.01 apart have on the test rows, and adds
up the AUROC over thresholds 0.005 apart. Here the same fits are scored so, and as usual.

Run: DPREPRO_DATA=... python benchmarks/sbdt_thresholds.py [--splits 10]
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from dprepro.experiment.config import load_config
from dprepro.experiment.plan import narrow, plan
from dprepro.experiment.worker import DataRef, fit_task, rows_of

CONFIG, METHOD = "sbdt-adult", "s-bdt"
STEP, AUC_STEP = 0.01, 0.005


def scores_of(p: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    """Return accuracy at 1/2, that at the best threshold, AUROC, and AUROC over steps."""
    thresholds = np.arange(p.min(), p.max() + STEP, STEP)
    best = max(np.mean((p >= threshold) == y) for threshold in thresholds)
    steps = np.arange(p.min(), p.max() + AUC_STEP, AUC_STEP)
    hit = np.array([[np.mean(p[y == label] >= t) for t in steps] for label in (0, 1)])
    false, true = np.column_stack([[1, 1], hit, [0, 0]])
    stepped = -np.trapezoid(true, false)
    return float(np.mean((p >= 0.5) == y)), float(best), roc_auc_score(y, p), float(stepped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    config = load_config(CONFIG)
    data = DataRef.of(config)
    print(f"{'epsilon':8} accuracy  at best   AUROC     in steps  (means over splits)")
    for epsilon in config.epsilons:
        found = []
        for planned in narrow(plan(config), options.splits, [METHOD], [epsilon]):
            rows = rows_of(planned.task, data)
            model = fit_task(planned.task, data)
            found.append(scores_of(expit(model.decision_function(rows.X_test)), rows.y_test))
        print(f"{epsilon:<8g} " + "  ".join(f"{mean:.5f} " for mean in np.mean(found, axis=0)))


if __name__ == "__main__":
    main()
