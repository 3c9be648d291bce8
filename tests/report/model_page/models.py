"""A small model as a file has it, with everything that a page can show."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprepro.additive.file import LoadedClassifier, LoadedRegressor, model_from_json
from dprepro.additive.record import (
    PREDICTION,
    PREDICTION_OF_CLASSES,
    PREDICTION_OF_COUNTS,
    PREDICTION_OF_PAIRS,
    ledger_to_json,
)
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT

ENTRY = LedgerEntry("laplace", "sums of residuals", 1.0, "L1", 2.0, 1, (0.5, 0.0))
N_AGES = 12


def values(**changes: Any) -> dict[str, Any]:
    """Return a model file: age rises and falls and can be missing, city has other cities."""
    rng = np.random.default_rng(0)
    age = [round(v) for v in 2e8 * np.sin(np.arange(N_AGES) / 3) + rng.normal(0, 4e7, N_AGES)]
    features = [
        categorical("city", ["Bonn", "Lyon", "Turin", "Ulm"], [0, 1, 2, 3], ["(other)"]),
        {
            "name": "age",
            "measured_in": "years",
            "kind": "numeric",
            "lower": 18.0,
            "upper": 90.0,
            "cuts": [18.0 + 6 * i + 0.1 * (i % 3) for i in range(1, N_AGES)],
            "missing": True,
            "missing_bin": N_AGES,
            "labels": [f"bin {i}" for i in range(N_AGES)] + ["(missing)"],
            "values": [*age, -70_000_001],
            "counts": [int(c) for c in rng.integers(1, 10**6, N_AGES)] + [40_000],
            "noise": [3_000_000 + 10**6 * i for i in range(N_AGES + 1)],
        },
        {
            "name": "visits",
            "kind": "numeric",
            "lower": 0.0,
            "upper": 1.0,
            "cuts": [0.25],
            "missing": False,
            "missing_bin": None,
            "labels": ["few", "many"],
            "values": [-11, 13],
            "counts": [3, 1],
            "noise": [0, 1],
        },
    ]
    ledger = Ledger(1.0, 0.0, ZERO_OUT, [ENTRY], assumed_public=["the labels"])
    return {
        "format": "dprepro additive model",
        "version": 2,
        "prediction": PREDICTION,
        "task": "binary",
        "classes": [0.0, 1.0],
        "target": "income",
        "labels": ["<=50K", ">50K"],
        "range": None,
        "named_columns": True,
        "units": {"functions": -28, "intercept": -29, "counts": -10},
        "intercept": -321_654_987,
        "features": features,
        "edits": [],
        "ledger": ledger_to_json(ledger),
        "origin": {"dataset": "people", "method": "dp-ebm-plus", "params": {"rate": 1.0}},
        **changes,
    }


def categorical(
    name: str, categories: list[str], groups: list[int], others: list[str]
) -> dict[str, Any]:
    """Return a categorical feature with a bin for each category and for `others`."""
    labels = [*categories, *others]
    return {
        "name": name,
        "kind": "categorical",
        "categories": categories,
        "groups": groups,
        "missing": False,
        "missing_bin": None,
        "labels": labels,
        "values": [5_000_001 * (-1) ** i * (i + 1) for i in range(len(labels))],
        "counts": [100 * (i + 1) for i in range(len(labels))],
        "noise": [10**6] * len(labels),
    }


def regression() -> dict[str, Any]:
    """Return the same model of a number in a range."""
    return values(task="regression", classes=None, labels=None, range=[-0.25, 0.25], target="rent")


def of_counts() -> dict[str, Any]:
    """Return the same model of counts; a range that begins above 0 clips some of them."""
    made = regression() | {"version": 5, "prediction": PREDICTION_OF_COUNTS, "target": "visits"}
    made |= {"range": [2.5, 40.0], "intercept": 644_245_094}
    del made["labels"]
    parts, place = list(made.items()), list(made).index("range") + 1  # in the order of a file
    return dict([*parts[:place], ("link", "log"), *parts[place:]])


def of_classes(number: int) -> dict[str, Any]:
    """Return the same model of so many classes; their functions add up to about 0."""
    made = values(
        version=4,
        prediction=PREDICTION_OF_CLASSES,
        task="multiclass",
        classes=[float(c) for c in range(number)],
        labels=[f"rank {c}" for c in range(number)],
        intercept=[(c - number // 2) * 10**8 for c in range(number)],
    )
    waves = np.cos(2 * np.pi * np.arange(number) / number)
    for k, feature in enumerate(made["features"]):
        moved = [np.roll(waves, b + k) for b in range(len(feature["values"]))]
        feature["values"] = [[round(2e8 * v / (k + 1)) for v in wave] for wave in moved]
        feature["noise"] = [[10**7 * (c + 1) for c in range(number)] for _ in moved]
    return made


def paired(**changes: Any) -> dict[str, Any]:
    """Return the same model file with functions of pairs of features."""
    groups = [0] * 4 + [1] * 4 + [2] * (N_AGES - 8) + [3]
    pairs = [
        pair("city", "age", [0, 0, 1, 1, 2], groups),
        pair("age", "visits", groups, [0, 1]),
    ]
    made = values(version=3, prediction=PREDICTION_OF_PAIRS, **changes)
    # In the order of a file.
    last = {key: made.pop(key) for key in ("edits", "ledger", "origin")}
    return {**made, "pairs": pairs, **last}


def pair(first: str, second: str, groups: list[int], others: list[int]) -> dict[str, Any]:
    """Return a function of two features; the first cell is lost in its noise."""
    cells = (max(groups) + 1) * (max(others) + 1)
    return {
        "first": first,
        "second": second,
        "first_groups": groups,
        "second_groups": others,
        "values": [7_000_003 * (-1) ** i * (i + 1) for i in range(cells)],
        "counts": [10 * (i + 1) for i in range(cells)],
        "noise": [10**7] + [10**6] * (cells - 1),
    }


def model(**changes: Any) -> LoadedClassifier | LoadedRegressor:
    """Return the model of `values`."""
    return model_from_json(values(**changes))
