"""How often the intervals of a measured release hold what is true of the population.

    nice .venv/bin/python benchmarks/measured_coverage.py
    nice .venv/bin/python benchmarks/measured_coverage.py --task binary

Rows are drawn from a known population, divided, fitted and measured as `dprepro release --measure`
does, again and again. What is true is computed from 100,000 other rows and the same model: for a
regression the root of the mean squared residual and the mean residual, with residuals clipped as
the statement says, and the root without clipping. A line is a setting: the coverage for all rows,
then that for groups, pooled, of which some are small; the share of intervals of groups that noise
hides, which are not counted; and the mean width of the error's interval for all rows, over the
error.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from dprepro.data.card import load_card
from dprepro.data.dataset import Dataset
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.privacy.budget import ROW, PrivacyBudget
from dprepro.release.measured import Figure, Measured, measured_of
from dprepro.release.measuring import Measuring, divided
from dprepro.release.planning import public_domain

KINDS = {"regression": ("normal", "student", "lognormal"), "binary": ("even", "seldom", "noisy")}
ROWS, EPSILONS = (1000, 5000), (1.0, 4.0)
SHARE, DELTA = 0.5, 1e-5
POPULATION = 100_000
WARDS, OFTEN = ("a", "b", "c"), (0.6, 0.3, 0.1)

CARD = """
name: drawn
task: {task}
file: drawn.csv
target: y
{target}
domain_note: drawn
subgroups: [ward]
features:
  curve: {{numeric: [-4, 4]}}
  step: {{numeric: [0, 1]}}
  ward: {{categories: [a, b, c]}}
"""
TARGETS = {"regression": "target_bounds: [-8, 8]", "binary": 'positive: "1"\nlabels: ["0", "1"]'}


def drawn(kind: str, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and targets; in ward c residuals are twice as large."""
    codes = rng.choice(3, n, p=OFTEN)
    X = pd.DataFrame({"curve": rng.normal(size=n).clip(-4, 4), "step": rng.random(n)})
    X["ward"] = pd.Categorical.from_codes(codes, WARDS)
    signal = np.sin(1.5 * X["curve"].to_numpy()) + 1.5 * (X["step"].to_numpy() > 0.7)
    if kind in KINDS["binary"]:
        score = {"even": 2 * signal - 1, "seldom": 2 * signal - 4, "noisy": signal / 3}[kind]
        return X, (rng.random(n) < expit(score / np.where(codes == 2, 2, 1))).astype(np.int64)
    residuals = {
        "normal": lambda: rng.standard_normal(n),
        "student": lambda: rng.standard_t(3, n) / 1.7,
        "lognormal": lambda: np.exp(rng.normal(0, 0.8, n)) / 1.5 - 0.9,
    }[kind]()
    return X, np.clip(signal + residuals * np.where(codes == 2, 2, 1), -8, 8)


def true(model: Any, X: pd.DataFrame, y: np.ndarray, found: Measured) -> list[tuple[float, ...]]:
    """Return what is true of all rows, then of each ward: what `measured` estimates."""
    if found.bound is None:
        scores = model.decision_function(X)
        error, difference = (scores > 0) != y, y - expit(scores)
    else:
        residuals = y - model.predict(X)
        error, difference = residuals**2, np.clip(residuals, -found.bound, found.bound)
    codes = X["ward"].cat.codes.to_numpy()
    values = []
    for rows in (codes >= 0, *(codes == k for k in range(3))):
        mean = float(error[rows].mean())
        of_all = float(difference[rows].mean())
        if found.bound is None:
            values.append((mean, of_all, mean))
        else:
            clipped = float((difference[rows] ** 2).mean())
            values.append((clipped**0.5, of_all, mean**0.5))
    return values


def holds(figure: Figure, value: float) -> float:
    """Return 1 if an interval holds a value, 0 if not, NaN if noise hides it."""
    return np.nan if figure.value is None else float(figure.lower <= value <= figure.upper)


def setting(task: str, kind: str, n: int, epsilon: float, runs: int) -> str:
    """Return the line of a setting."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.yaml"
        path.write_text(CARD.format(task=task, target=TARGETS[task]))
        card = load_card(str(path))
    method, domain = registry.get("dp-ebm-plus"), public_domain(card)
    measuring = Measuring.of(card, method, PrivacyBudget(epsilon, DELTA), SHARE)
    rng = np.random.default_rng([n, round(10 * epsilon), *kind.encode()])
    X, y = drawn(kind, POPULATION, rng)
    whole, groups, areas, widths = [], [], [], []
    for _ in range(runs):
        rows, targets = drawn(kind, n, rng)
        dataset = Dataset("drawn", rows, targets, card.task, domain, "drawn", "")
        training, held_out = divided(dataset, ROW, 1)
        budget = measuring.of_fit
        model = method.build(Setting(card.task, budget.epsilon, budget.delta, domain, None))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(training.X, training.y)
        measuring.complete(model, held_out)
        found = measured_of(model)
        assert found is not None
        for group, values in zip(found.groups, true(model, X, y, found), strict=True):
            error, difference, unclipped = values
            held = (holds(group.error, error), holds(group.difference, difference),
                    holds(group.error, unclipped))  # fmt: skip
            (whole if group.feature is None else groups).append(held)
        of_all = found.groups[0].error
        widths.append((of_all.upper - of_all.lower) / (of_all.value or np.nan))
        if found.area is not None:
            areas.append(holds(found.area, float(roc_auc_score(y, model.decision_function(X)))))
    parts = [*np.nanmean(whole, axis=0), *np.nanmean(groups, axis=0)[:2]]
    parts[2] = parts[2] if task == "regression" else np.nanmean(areas)
    hidden, width = np.isnan(np.array(groups)[:, 0]).mean(), np.nanmean(widths)
    shown = " | ".join(f"{100 * part:.0f}" for part in (*parts, hidden))
    return f"| {kind} | {n:,} | {epsilon:g} | {shown} | {width:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=[*KINDS], default="regression")
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    third = "unclipped" if given.task == "regression" else "area"
    heads = ("kind", "rows", "epsilon", "error", "difference", third, "error, groups",
             "difference, groups", "hidden, groups", "width")  # fmt: skip
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|", flush=True)
    for kind, n, epsilon in product(KINDS[given.task], ROWS, EPSILONS):
        print(setting(given.task, kind, n, epsilon, given.runs), flush=True)


if __name__ == "__main__":
    main()
