"""S-BDT: a canary in a leaf of its own in every tree, and all noisy sums seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, categories
from dprepro.baselines.s_bdt.curator import LeafSums
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.privacy.query import Instruction, Release
from dprepro.privacy.release import listening

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
    there: the releases show all of mu.
    """
    target = ("0", "1") if setting.task == "binary" else (0.0, 1.0)
    domain = Domain((CategoricalFeature("x", _CATEGORIES),), target)
    pair = _Overheard(setting, domain, _table(True), _table(False), _PARAMS)
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_ROWS} rows of one category, one of another or none; all sums seen",
        fit=pair.fit,
        observe=_totals,
        trials=_TRIALS,
    )


def _table(canary: bool) -> Table:
    codes = np.repeat([0, _CANARY], [_ROWS, int(canary)])
    y = np.append(np.arange(_ROWS) % 2, np.ones(int(canary), dtype=int))
    return pd.DataFrame({"x": categories(codes, _CATEGORIES)}), y


class _Overheard(MethodPair):
    """The pair, whose outcome is the total of all answers."""

    def fit(self, present: bool, seed: int | None) -> Any:
        """Return ``ledger_`` and ``totals``, float64 (2,): residuals and curvatures, weighted."""
        heard = _Heard()
        with listening(heard):
            model = super().fit(present, seed)
        return SimpleNamespace(ledger_=model.ledger_, totals=heard.totals)


class _Heard:
    """Adds up the sums of the canary's leaf over all trees."""

    def __init__(self) -> None:
        self.totals = np.zeros(2)

    def asked(self, query: Any, release: Release) -> None:
        """Add an answer about a tree."""
        if isinstance(query, LeafSums):
            self.totals += release.value[:, query.leaf_of[_CANARY]]

    def told(self, instruction: Instruction) -> None:
        """Ignore an instruction."""


def _totals(outcome: Any) -> np.ndarray:
    totals: np.ndarray = outcome.totals
    return totals


CASES = {"s-bdt": own_leaf, "s-bdt-sound": own_leaf}
