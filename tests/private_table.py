"""A private table as a user has it: a CSV file without a checksum, its card and a config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 498
SEED = 271828

Row = tuple[str, ...]

_CARD = """
name: patients
task: {task}
file: patients.csv
target: y
{target}
features:
  age: {{numeric: [0, 120]}}
  dose: {{numeric: [0, 10], missing: true}}
  ward: {{categories: [a, b, c]}}
"""
_TARGETS = {
    "binary": 'positive: "yes"\nlabels: ["no", "yes"]',
    "multiclass": 'labels: ["low", "middle", "high"]',
    "regression": "target_bounds: [-2, 4]",
    "counts": "target_bounds: [0, 20]",
}
COUNTS = {"method": "dp-ebm-plus", "params": {"loss": "poisson"}}
"""What fits counts, which are a regression to their card."""


def rows_of(task: str, n: int = ROWS) -> list[Row]:
    """Return the rows of the table, as texts; all are different."""
    rng = np.random.default_rng(11)
    age, dose = rng.uniform(0, 100, n), rng.uniform(0, 10, n)
    ward = rng.choice(["a", "b", "c"], n)
    signal = age / 50 - 1 + (ward == "b") + rng.normal(size=n) / 2
    if task == "regression":
        y = np.array([f"{s:.4f}" for s in signal])
    elif task == "counts":
        y = np.minimum(rng.poisson(np.exp(signal)), 20)
    elif task == "binary":
        y = np.where(signal > 0, "yes", "no")
    else:
        y = np.array(["low", "middle", "high"])[np.digitize(signal, [-0.5, 1.0])]
    return [
        (f"{a:.3f}", "" if d > 9 else f"{d:.3f}", str(w), str(t))
        for a, d, w, t in zip(age, dose, ward, y, strict=True)
    ]


def csv_of(rows: list[Row]) -> bytes:
    """Return the bytes of the file with these rows."""
    return "\n".join(["age,dose,ward,y", *map(",".join, rows), ""]).encode()


def write_table(folder: Path, task: str, rows: list[Row], card: str = "", **keys: Any) -> Path:
    """Write file, card (with more lines at its end) and config; return the config's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "patients.csv").write_bytes(csv_of(rows))
    kind = "regression" if task == "counts" else task
    (folder / "patients.yaml").write_text(_CARD.format(task=kind, target=_TARGETS[task]) + card)
    config = {
        "dataset": "./patients.yaml",
        "metric": {"binary": "auc", "multiclass": "accuracy", "regression": "rmse"}[kind],
        "domain": "public",
        "epsilons": [1],
        "splits": 2,
        "seed": None,
        "methods": [COUNTS if task == "counts" else "dp-ebm-plus"],
        **keys,
    }
    path = folder / "study.yaml"
    path.write_text(json.dumps(config))
    return path
