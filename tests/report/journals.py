"""Journals made up for tests: chosen metrics instead of fitted methods."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dprepro.data.card import card_names, load_card
from dprepro.experiment.record import Record, Task
from dprepro.results.folder import ResultCell

SPLITS = 25
KEPT: Mapping[str, Any] = {}
"""A ledger that says nothing. Without any, a record at a privacy level is unverified."""


@cache
def fingerprint_of(dataset: str) -> str:
    """Return the fingerprint of a built-in card's data, another one for other datasets."""
    return load_card(dataset).fingerprint() if dataset in card_names() else "abc"


def task(label: str = "dp-ebm-gdp-2021", epsilon: float = 0.5, **fields: Any) -> Task:
    """Return a task of Adult as the DP-EBM paper ran it, but for `fields`.

    The data of a dataset of ours are those of its card.
    """
    dataset = fields.get("dataset", "adult")
    given: dict[str, Any] = {
        "dataset": dataset,
        "method": label,
        "label": label,
        "params": {},
        "epsilon": epsilon,
        "delta": 0.0 if math.isinf(epsilon) else 1e-6,
        "split": 0,
        "seed": 1,
        "domain": "observed",
        "test_share": 0.2,
        "method_version": 1,
        "data_fingerprint": fingerprint_of(dataset),
    }
    return Task(**{**given, **fields})


def records(
    values: Sequence[float],
    label: str = "dp-ebm-gdp-2021",
    epsilon: float = 0.5,
    metric: str = "auc",
    ledger: Mapping[str, Any] | None = KEPT,
    **fields: Any,
) -> list[Record]:
    """Return one finished record a value, for splits 0, 1, ..."""
    return [
        Record(
            task(label, epsilon, **{"split": split, **fields}),
            "ok",
            metrics={metric: value},
            ledger=None if math.isinf(epsilon) else ledger,
        )
        for split, value in enumerate(values)
    ]


def spread(mean: float, sd: float, splits: int = SPLITS) -> list[float]:
    """Return values whose mean and sample standard deviation are exactly those given."""
    steps = [2 * i / (splits - 1) - 1 for i in range(splits)] if splits > 1 else [0.0]
    unit = math.sqrt(sum(step**2 for step in steps) / max(1, splits - 1)) or 1.0
    return [mean + sd * step / unit for step in steps]


def write(
    folder: Path,
    name: str,
    lines: Iterable[Record],
    environment: Mapping[str, Any] | None = None,
) -> Path:
    """Write a journal and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"kind": "environment", **(environment or {})}
    entries = [head, *(record.to_json() for record in lines)]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(entry, allow_nan=False) + "\n" for entry in entries))
    return path


def cell(values: Sequence[float], metric: str = "auc", **fields: Any) -> ResultCell:
    """Return a complete cell."""
    return ResultCell(task(**fields), ("test",), {metric: tuple(values)}, planned=len(values))
