"""How often the intervals of a measured release hold what is true of the population.

    nice .venv/bin/python benchmarks/measured_coverage.py
    nice .venv/bin/python benchmarks/measured_coverage.py --task binary

Rows are drawn from a known population, divided, fitted and measured as `dprepro release --measure`
does, again and again. What is true is computed from 100,000 other rows and the same model: for a
regression, and for counts, the root of the mean squared residual and the mean residual, with
residuals clipped as the statement says, and the root without clipping; for several classes how
often the likeliest is wrong, and the rows of each class are groups, too. A line is a setting: the
coverage for all rows, then that for groups, pooled, of which some are small; the share of intervals
of groups that noise hides, which are not counted; and the mean width of the error's interval for
all rows, over the error. What a task does not have is "-".
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

KINDS = {
    "regression": ("normal", "student", "lognormal"), "binary": ("even", "seldom", "noisy"),
    "multiclass": ("alike", "rare"), "counts": ("poisson", "spread"),
}  # fmt: skip
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
TARGETS = {
    "regression": "target_bounds: [-8, 8]", "binary": 'positive: "1"\nlabels: ["0", "1"]',
    "multiclass": 'labels: ["0", "1", "2"]', "counts": "target_bounds: [0, 40]",
}  # fmt: skip


def drawn(kind: str, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and targets; in ward c what the features do not say is twice as large."""
    codes = rng.choice(3, n, p=OFTEN)
    X = pd.DataFrame({"curve": rng.normal(size=n).clip(-4, 4), "step": rng.random(n)})
    X["ward"] = pd.Categorical.from_codes(codes, WARDS)
    signal = np.sin(1.5 * X["curve"].to_numpy()) + 1.5 * (X["step"].to_numpy() > 0.7)
    if kind in KINDS["binary"]:
        score = {"even": 2 * signal - 1, "seldom": 2 * signal - 4, "noisy": signal / 3}[kind]
        return X, (rng.random(n) < expit(score / np.where(codes == 2, 2, 1))).astype(np.int64)
    if kind in KINDS["multiclass"]:
        first = {"alike": 0.5, "rare": -2.5}[kind]
        scores = np.column_stack([np.full(n, first), signal, 1 - signal])
        noise = rng.gumbel(size=(n, 3)) * np.where(codes == 2, 2, 1)[:, None]
        return X, (scores + noise).argmax(axis=1)
    if kind in KINDS["counts"]:
        rate = np.exp(signal / 2 + 0.5)
        if kind == "spread":
            rate *= rng.gamma(1 / np.where(codes == 2, 2, 0.5), np.where(codes == 2, 2, 0.5))
        return X, np.minimum(rng.poisson(rate), 40).astype(float)
    residuals = {
        "normal": lambda: rng.standard_normal(n),
        "student": lambda: rng.standard_t(3, n) / 1.7,
        "lognormal": lambda: np.exp(rng.normal(0, 0.8, n)) / 1.5 - 0.9,
    }[kind]()
    return X, np.clip(signal + residuals * np.where(codes == 2, 2, 1), -8, 8)


def true(model: Any, X: pd.DataFrame, y: np.ndarray, found: Measured) -> list[tuple[float, ...]]:
    """Return what is true of each group of rows, all rows first: what `measured` estimates."""
    codes = X["ward"].cat.codes.to_numpy()
    groups = [codes >= 0, *(codes == k for k in range(3))]
    if found.of_classes:
        error = model.decision_function(X).argmax(axis=1) != y
        groups[1:1] = [y == k for k in range(3)]
        return [(float(error[rows].mean()), np.nan, np.nan) for rows in groups]
    if found.bound is None:
        scores = model.decision_function(X)
        error, difference = (scores > 0) != y, y - expit(scores)
    else:
        residuals = y - model.predict(X)
        error, difference = residuals**2, np.clip(residuals, -found.bound, found.bound)
    values = []
    for rows in groups:
        mean = float(error[rows].mean())
        of_all = float(difference[rows].mean())
        if found.bound is None:
            values.append((mean, of_all, mean))
        else:
            clipped = float((difference[rows] ** 2).mean())
            values.append((clipped**0.5, of_all, mean**0.5))
    return values


def holds(figure: Figure | None, value: float) -> float:
    """Return 1 if an interval holds a value, 0 if not, NaN if noise hides it or there is none."""
    if figure is None or figure.value is None or np.isnan(value):
        return np.nan
    return float(figure.lower <= value <= figure.upper)


def setting(task: str, kind: str, n: int, epsilon: float, runs: int) -> str:
    """Return the line of a setting."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.yaml"
        card_task = "regression" if task == "counts" else task
        path.write_text(CARD.format(task=card_task, target=TARGETS[task]))
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
        asked = Setting(card.task, budget.epsilon, budget.delta, domain, None)
        model = method.build(asked, **({"loss": "poisson"} if task == "counts" else {}))
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing was counted is NaN
        parts = [*np.nanmean(whole, axis=0), *np.nanmean(groups, axis=0)[:2]]
        parts[2] = np.nanmean(areas) if task == "binary" else parts[2]
        hidden, width = np.isnan(np.array(groups)[:, 0]).mean(), np.nanmean(widths)
    shown = " | ".join("-" if np.isnan(p) else f"{100 * p:.0f}" for p in (*parts, hidden))
    return f"| {kind} | {n:,} | {epsilon:g} | {shown} | {width:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=[*KINDS], default="regression")
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    third = "area" if given.task == "binary" else "unclipped"
    heads = ("kind", "rows", "epsilon", "error", "difference", third, "error, groups",
             "difference, groups", "hidden, groups", "width")  # fmt: skip
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|", flush=True)
    for kind, n, epsilon in product(KINDS[given.task], ROWS, EPSILONS):
        print(setting(given.task, kind, n, epsilon, given.runs), flush=True)


if __name__ == "__main__":
    main()
