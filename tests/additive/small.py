"""Small models written by hand, with all that a feature can have, and rows that try it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dprepro.additive.file import LoadedClassifier, LoadedRegressor, model_from_json

CUTS = [0.1 + 0.2, 21.5, 37.123456789012, 60.0]
TOWNS = ("Bonn", "O'Hare", "NA", "Zürich", "two words")
"""A category that is a text for missing values elsewhere, one with a quote, one with a blank."""


def _numbers(size: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(-(2**29), 2**29, size).tolist()


def feature(name: str, size: int, missing_bin: int | None, labels: list[str], **more: Any) -> dict:
    return {
        "name": name,
        "missing": missing_bin is not None,
        "missing_bin": missing_bin,
        "labels": labels,
        "values": _numbers(size, len(name) + size),
        "counts": [k + 1 for k in range(size)],
        "noise": list(range(size)),
        **more,
    }


def numeric(name: str, cuts: list[float], own_bin: bool = False, shared: int | None = None) -> dict:
    size = len(cuts) + 1 + own_bin
    labels = [f"bin {k}" for k in range(size)]
    place = size - 1 if own_bin else shared
    bounds = {"lower": 0.0, "upper": 100.0}
    return feature(name, size, place, labels, kind="numeric", cuts=cuts, **bounds)


def categorical(name: str, groups: list[int], labels: list[str], missing: int | None) -> dict:
    return feature(
        name, len(labels), missing, labels,
        kind="categorical", categories=list(TOWNS[: len(groups)]), groups=groups,
    )  # fmt: skip


FEATURES = [
    numeric("age", CUTS, own_bin=True),
    numeric("hours", [8.0, 40.5], shared=1),
    numeric("none missing", []),
    categorical("town", [0, 1, 2, 2, 1], ["Bonn", "some", "(other)"], 1),
    categorical("plain", [0, 0, 1], ["both", "NA"], None),
]


INTERVALS = {
    "about": "",
    "power": -20,
    "percents": [50, 80, 95],
    "sizes": [2**17, 2**18, 2**19],
}
"""Sizes of residuals of a regression: 1/8, 1/4 and 1/2."""


def file(task: str = "binary", **changes: Any) -> dict:
    """Return a model file; whole numbers are of 2^-28, so that functions lie in [-2, 2]."""
    is_binary = task == "binary"
    return {
        "format": "dprepro additive model",
        "version": 2,
        "prediction": "",
        "task": task,
        "classes": [0, 1] if is_binary else None,
        "target": "income",
        **({"labels": ["<=50K", ">50K"]} if is_binary else {}),
        "range": None if is_binary else [-1.0, 2.0],
        "named_columns": True,
        "units": {"functions": -28, "intercept": -20, "counts": 0},
        "intercept": 2**19 + 1,
        "features": FEATURES,
        "edits": [],
        "ledger": None,
        "origin": {},
        **changes,
    }


def several(made: dict, classes: int = 3) -> dict:
    """Return a file of several classes, made of one of two: functions of each are another's."""

    def of_each(values: list[int]) -> list[list[int]]:
        shifted = [values[c:] + values[:c] for c in range(classes)]
        return [list(each) for each in zip(*shifted, strict=True)]

    features = [
        {**each, "values": of_each(each["values"]), "noise": of_each(each["noise"])}
        for each in made["features"]
    ]
    return {
        **made,
        "version": 4,
        "task": "multiclass",
        "classes": list(range(classes)),
        "labels": [f"rank {c}" for c in range(classes)],
        "intercept": [made["intercept"] * (c - 1) for c in range(classes)],
        "features": features,
    }


def pair(first: str, second: str, groups: list[int], others: list[int]) -> dict:
    """Return a function of two features; `groups` and `others` are those of their bins."""
    cells = (max(groups) + 1) * (max(others) + 1)
    return {
        "first": first,
        "second": second,
        "first_groups": groups,
        "second_groups": others,
        "values": _numbers(cells, cells),
        "counts": [k + 1 for k in range(cells)],
        "noise": list(range(cells)),
    }


PAIRS = {
    "version": 3,
    "pairs": [
        pair("age", "hours", [0, 0, 1, 2, 2, 3], [0, 1, 1]),
        pair("age", "plain", [0, 0, 0, 0, 1, 1], [1, 0]),
        pair("hours", "town", [0, 1, 2], [2, 1, 0]),
        pair("none missing", "town", [0], [0, 1, 0]),
    ],
}
"""What makes of `file` one with pairs: of numbers, of categories, of both; with and without a bin
for missing values and for texts that are unknown."""


def model(task: str = "binary", **changes: Any) -> LoadedClassifier | LoadedRegressor:
    return model_from_json(file(task, **changes))


def rows(n: int = 400) -> pd.DataFrame:
    """Return rows with missing, unseen and outlying values, and with numbers that are cuts."""
    rng = np.random.default_rng(1)
    towns = np.array([*TOWNS, "unseen", None], dtype=object)
    ages = np.concatenate([CUTS, np.nextafter(CUTS, -1), [-5.0, 250.0], rng.uniform(0, 100, n)])
    X = pd.DataFrame(
        {
            "age": ages[:n],
            "hours": rng.choice([0.0, 8.0, 40.5, 99.0], n),
            "none missing": rng.uniform(0, 1, n),
            "town": rng.choice(towns, n),
            "plain": rng.choice(towns, n),
        }
    )
    absent = rng.random(X.shape) < 0.1
    absent[: len(CUTS)] = False
    return X.mask(absent, None).astype({"age": float, "hours": float, "none missing": float})
