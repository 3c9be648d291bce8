"""DP-EBM: a canary in every bin of every feature, missing values too, all in a single fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, OneRunCase, categories, fit_method
from dprepro.data.domain import CategoricalFeature, Domain, Feature, NumericFeature
from dprepro.ebm.queries import LeafSums
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.query import Instruction, Query, Release
from dprepro.privacy.release import listening

_FEATURES = 16
_VALUES = 127
_CELLS = _VALUES + 1
"""Of a feature, each with a canary: all values, and one for missing ones."""
_CANARIES = _FEATURES * _CELLS

_RANGE = (100.0, 101.0)
# As many cells of a number as values, twice over, and bins of half as many rows as a cell holds.
_MAX_BINS = 2 * _CELLS
_ROWS_PER_NOISE = 12
# So low that scores stay where they start: what a canary adds is then known beforehand.
_RATE = 1e-6
_PART = 0.5
"""What a canary adds: its label less the probability at the start, or its target less the middle of
the range, in units of the range. All other rows of a bin add nothing together."""


def one_run(setting: AuditSetting) -> OneRunCase:
    """Return features of both kinds, all of whose bins, each a leaf, hold a canary or not.

    A canary has a bin of its own in one feature, and in all others shares one with the rest. All
    noisy leaf sums are seen: one step a feature.
    """
    return OneRunCase(
        subject=f"{setting.method}/everywhere",
        task=setting.task,
        neighbours=f"{_CANARIES} canaries, one in every bin of {_FEATURES} features",
        canaries=_CANARIES,
        run=_Run(setting),
    )


def _features() -> tuple[Feature, ...]:
    """Return numbers and categories in turn; the value beyond the canaries' is for the rest."""
    names = tuple(f"c{i}" for i in range(_VALUES + 1))
    return tuple(
        NumericFeature(f"x{k}", 0.0, _CELLS, missing=True)
        if k % 2
        else CategoricalFeature(f"x{k}", names, missing=True)
        for k in range(_FEATURES)
    )


def _column(feature: Feature, cells: np.ndarray) -> Any:
    """Return the values in these cells; the cell `_VALUES` is of missing ones, the next the rest's.

    A number lies in the middle of its cell.
    """
    missing, place = cells == _VALUES, np.where(cells > _VALUES, _VALUES, cells)
    if isinstance(feature, NumericFeature):
        return np.where(missing, np.nan, place + 0.5)
    return categories(np.where(missing, -1, place), feature.categories)


@dataclass(frozen=True)
class _Run:
    setting: AuditSetting

    def __call__(self, coins: np.ndarray, seed: int | None) -> tuple[np.ndarray, Ledger]:
        features, heard = _features(), _LeafSums()
        X, y = self._table(features, coins)
        domain = Domain(features, ("0", "1") if self._is_binary else _RANGE)
        params = {"n_epochs": 1, "learning_rate": _RATE, "max_bins": _MAX_BINS, "max_leaves": 256}
        with listening(heard):
            model = fit_method(self.setting, domain, (X, y), seed, params)
        scores = []
        for k, feature in enumerate(features):
            bins = model.bins_[k].encode(pd.Series(_column(feature, np.arange(_CELLS))))
            scores.append(heard.sums[k][bins] / _RATE - _PART / 2)
        return np.concatenate(scores), model.ledger_

    @property
    def _is_binary(self) -> bool:
        return self.setting.task == "binary"

    def _table(self, features: tuple[Feature, ...], coins: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return X and y: in every cell as many rows that add nothing, and the canaries."""
        budget = 0.1 * self.setting.epsilon, self.setting.delta / 2
        noise = math.sqrt(_FEATURES) / mu_of(*budget)
        base = 2 * math.ceil(_ROWS_PER_NOISE * noise / 2)
        cells = _CELLS + 1
        rows, canaries = np.arange(base * cells), np.flatnonzero(coins)
        columns = {}
        for k, feature in enumerate(features):
            own = np.where(canaries // _CELLS == k, canaries % _CELLS, _CELLS)
            columns[feature.name] = _column(feature, np.append((rows + 7 * k) % cells, own))
        if self._is_binary:
            y = np.append(rows // cells % 2, np.ones(canaries.size, dtype=np.int64))
        else:
            y = np.repeat([sum(_RANGE) / 2, _RANGE[1]], [rows.size, canaries.size])
        return pd.DataFrame(columns), y


class _LeafSums:
    """Hears the noisy sums of all leaves, float64 (features, leaves)."""

    sums: np.ndarray

    def asked(self, query: Query, release: Release) -> None:
        """Keep them."""
        if isinstance(query, LeafSums):
            self.sums = release.value

    def told(self, instruction: Instruction) -> None:
        """Instructions show nothing more."""


ONE_RUN_CASES = {"dp-ebm-sound/everywhere": one_run}
