"""A table of few groups of rows in public cells, and four canaries: for methods that bin values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, MethodPair, Table, categories
from dprepro.audit.evidence import Known
from dprepro.audit.transcript import Weigh
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature

RANGE = (100.0, 101.0)
_A = CategoricalFeature("a", ("many", "some", "rare"))
_B = NumericFeature("b", 0.0, 1000.0, missing=True)
LOWER, UPPER, MISSING = 0, -2, -1
"""Cells of the number, from its first and from its last."""
_NUMBERS = {LOWER: 0.0, UPPER: 1000.0, MISSING: np.nan}

_GROUPS = (
    (0, LOWER, 1, 200), (1, UPPER, 0, 100), (0, UPPER, 0, 50), (1, MISSING, 1, 50),
)  # fmt: skip
"""Category, cell of the number, label, rows."""

_CANARIES = (
    # Contradicts a full bin; is alone in its category; misses its number; has an extreme one.
    (0, LOWER, 0, 0.0), (2, UPPER, 1, 1000.0), (1, MISSING, 0, np.nan), (0, UPPER, 1, 1e15),
)  # fmt: skip
"""Category, cell of the number, label, the number itself."""


def additive_pairs(
    setting: AuditSetting, params: dict[str, Any], weigh: Callable[..., Any], cells: tuple[int, int]
) -> tuple[tuple[MethodPair, Weigh], ...]:
    """Return a pair for each canary; `cells` number the last cell of a number and its missing."""
    binary = setting.task == "binary"
    domain = Domain((_A, _B), ("0", "1") if binary else RANGE)
    groups = np.array(_GROUPS)
    cell = {LOWER: 0, UPPER: cells[0], MISSING: cells[1]}
    found = []
    for category, place, label, number in _CANARIES:
        known = Known(
            cells=np.column_stack([groups[:, 0], [cell[c] for c in groups[:, 1]]]),
            targets=groups[:, 2] - (0.0 if binary else 0.5),
            counts=groups[:, 3],
            canary=np.array([category, cell[place]]),
            target=label - (0.0 if binary else 0.5),
        )
        tables = [_table(setting, (category, number, label) if there else None) for there in (1, 0)]
        pair = MethodPair(setting, domain, present=tables[0], absent=tables[1], params=params)
        found.append((pair, partial(weigh, known=known, is_logistic=binary)))
    return tuple(found)


def _table(setting: AuditSetting, canary: tuple[int, float, int] | None) -> Table:
    rows = [(a, _NUMBERS[b], y) for a, b, y, n in _GROUPS for _ in range(n)]
    a, b, y = zip(*rows, *([] if canary is None else [canary]), strict=True)
    frame = pd.DataFrame({"a": categories(a, _A.categories), "b": np.array(b, float)})
    labels = np.array(y)
    return frame, labels if setting.task == "binary" else RANGE[0] + labels


WORDS = (
    f"{sum(group[-1] for group in _GROUPS)} rows, and one row more or none: one that contradicts "
    "a full bin, is alone in its category, misses a number or has an extreme one; all answers seen"
)
