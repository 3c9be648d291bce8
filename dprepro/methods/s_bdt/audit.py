"""S-BDT: a canary in a leaf of its own in every tree, and all noisy sums seen."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, categories
from dprepro.audit.transcript import overhear
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.methods.s_bdt.curator import LeafSums

_ROWS = 20
_CATEGORIES = ("crowd", "canary")
_CANARY = 1
_TREES = 4
_PARAMS: dict[str, Any] = {
    "n_trees": _TREES,
    "max_depth": 1,
    "denominator_share": 0.5,
    # Scores stay where they are, so that the canary's residual is clipped in every tree.
    "learning_rate": 1e-6,
}
_TRIALS = 10_000


def own_leaf(setting: AuditSetting) -> Case:
    """Return rows of one category, and a canary of the other or none.

    Every split parts the two, so the canary has a leaf of its own. It adds its bounds to both sums
    there: the answers show all of mu.
    """
    target = ("0", "1") if setting.task == "binary" else (0.0, 1.0)
    domain = Domain((CategoricalFeature("x", _CATEGORIES),), target)
    pair = MethodPair(setting, domain, _table(True), _table(False), _PARAMS)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_ROWS} rows of one category, one of another or none; all sums seen",
        fit=partial(_fit, pair),
        observe=_totals,
        trials=_TRIALS,
    )


def _table(canary: bool) -> Table:
    codes = np.repeat([0, _CANARY], [_ROWS, int(canary)])
    y = np.append(np.arange(_ROWS) % 2, np.ones(int(canary), dtype=int))
    return pd.DataFrame({"x": categories(codes, _CATEGORIES)}), y


def _fit(pair: MethodPair, present: bool, seed: int | None) -> Any:
    """Return ``ledger_`` and ``totals``, float64 (2,): of the canary's leaf over all trees.

    Residuals and curvatures, weighted.
    """
    model, events = overhear(partial(pair.fit, present, seed))
    totals = np.zeros(2)
    for event in events:
        match event:
            case LeafSums(leaf_of=leaf_of), answer:
                totals += answer.value[:, leaf_of[_CANARY]]
    return SimpleNamespace(ledger_=model.ledger_, totals=totals)


def _totals(outcome: Any) -> np.ndarray:
    totals: np.ndarray = outcome.totals
    return totals


CASES = {"s-bdt": own_leaf, "s-bdt-sound": own_leaf}
