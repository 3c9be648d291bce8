"""DP-EBM+: the canary contradicts a bin full of equal rows, in every feature at every epoch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import Case, MethodPair, Setting, Table, categories
from dprepro.data.domain import CategoricalFeature, Domain

_FEATURES = ("a", "b")
_CATEGORIES = ("few", "many")
_RANGE = (100.0, 101.0)
_TRIALS = 8000


def many_runs(setting: Setting) -> Case:
    """Return the pair: rows (many, many) with one label; the canary among them has the other."""
    rows = math.ceil(1000 * max(1.0, 1 / setting.epsilon))
    binary = setting.task == "binary"
    features = tuple(CategoricalFeature(name, _CATEGORIES) for name in _FEATURES)
    pair = MethodPair(
        setting,
        Domain(features, ("0", "1") if binary else _RANGE),
        present=_table(rows, binary, canary=True),
        absent=_table(rows, binary, canary=False),
    )
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{rows} rows with one {'label' if binary else 'target, the lower bound'}, and one row "
            f"more with the {'other label' if binary else 'upper bound'} or none"
        ),
        fit=pair.fit,
        observe=_released,
        trials=_TRIALS,
    )


def _table(rows: int, binary: bool, canary: bool) -> Table:
    codes = np.repeat([0, 1], [rows // 2, rows + int(canary)])
    if binary:
        # Both labels have to occur in either world.
        y = np.concatenate([np.arange(rows // 2) % 2, np.ones(rows), np.zeros(int(canary))])
    else:
        y = np.repeat(_RANGE, [rows // 2 + rows, int(canary)])
    return pd.DataFrame(dict.fromkeys(_FEATURES, categories(codes, _CATEGORIES))), y


def _released(model: Any) -> np.ndarray:
    """Return what the canary has moved: the score of its bins, their counts, the intercept."""
    score = model.intercept_ + sum(shape[-1] for shape in model.shape_functions_)
    return np.array([score, model.intercept_, *(count[-1] for count in model.bin_counts_)])


CASES = {"dp-ebm-plus": many_runs}
