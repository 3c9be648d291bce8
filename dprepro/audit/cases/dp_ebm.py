"""DP-EBM: the canary contradicts a leaf full of equal rows, in every feature at every step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import (
    AuditSetting,
    Case,
    MethodPair,
    OneRunCase,
    Table,
    categories,
    fit_method,
)
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.methods import registry
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger

NAMES = (
    "dp-ebm-classic",
    "dp-ebm-classic-2021",
    "dp-ebm-gdp",
    "dp-ebm-gdp-2021",
    "dp-ebm-joint",
    "dp-ebm-sound",
)

# A range far from zero: what is not centred shows. It has width 1, so that sums of residuals are
# in the unit in which the noise is drawn.
_RANGE = (100.0, 101.0)
_MAX_BINS = 4
_ROWS, _LARGE_EPSILON = 1000, 8.0
_TRIALS = 25_000
_FEW_TRIALS = 200
_CATEGORIES = ("few", "many")


@dataclass(frozen=True)
class _Shape:
    """Features, learning rate and number of epochs.

    The final functions remember early steps less and less: with few epochs they hold nearly all
    the evidence of the whole run.
    """

    features: str
    rate: float
    epochs: int


# A high rate drives residuals of labels towards 1, the bound.
_LABELS = _Shape("a", 1.0, 60)
# A moderate one leads towards the crowd's target: the canary's residual then is nearly twice what
# is allowed from the midpoint, unless it is clipped. A higher one forgets more of the first steps.
_CENTRED = _Shape("ab", 0.02, 30)
# Boosting starts from 0, far below the range. With a tiny rate it stays there, and with a single
# feature noisy score times noisy count is the very sum that was released.
_FAR_OFF = _Shape("a", 1e-4, 30)


def _shape(setting: AuditSetting) -> _Shape:
    if setting.task == "binary":
        return _LABELS
    sound = registry.get(setting.method).defaults["sensitivity"] == "sound"
    return _CENTRED if sound else _FAR_OFF


def many_runs(setting: AuditSetting) -> Case:
    """Return the pair: rows (many, many) with one label; the canary among them has the other."""
    # So many rows that the noise of the counts and the scores is small beside them.
    rows = math.ceil(_ROWS * max(1.0, _LARGE_EPSILON / setting.epsilon))
    binary = setting.task == "binary"
    shape = _shape(setting)
    features = tuple(CategoricalFeature(name, _CATEGORIES) for name in shape.features)
    pair = MethodPair(
        setting,
        Domain(features, ("0", "1") if binary else _RANGE),
        present=_table(rows, binary, shape.features, canary=True),
        absent=_table(rows, binary, shape.features, canary=False),
        params={
            "max_bins": _MAX_BINS,
            "max_leaves": _leaves(setting),
            "learning_rate": shape.rate,
            "n_epochs": shape.epochs,
        },
    )
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{rows} rows with one {'label' if binary else 'target, the lower bound'}, and one row "
            f"more with the {'other label' if binary else 'upper bound'} or none"
        ),
        fit=pair.fit,
        observe=_canary_bins,
        trials=_trials(shape),
    )


def _leaves(setting: AuditSetting) -> int:
    """Return how many leaves a step must have so that both categories always part.

    Of two gaps one could be drawn that parts nothing; see `random_cuts`.
    """
    return 3 if registry.get(setting.method).defaults["empty_first_bin"] else 2


def _trials(shape: _Shape) -> int:
    return _FEW_TRIALS if shape is _FAR_OFF else _TRIALS


def _table(rows: int, binary: bool, features: str, canary: bool) -> Table:
    codes = np.repeat([0, 1], [rows // 2, rows + int(canary)])
    if binary:
        # Both labels have to occur in either world.
        y = np.concatenate([np.arange(rows // 2) % 2, np.ones(rows), np.zeros(int(canary))])
    else:
        y = np.repeat(_RANGE, [rows // 2 + rows, int(canary)])
    column = categories(codes, _CATEGORIES)
    return pd.DataFrame(dict.fromkeys(features, column)), y


def _canary_bins(model: Any) -> np.ndarray:
    """Return what the canary has moved: score and counts of its bins, and a product of them."""
    counts = [count[-1] for count in model.bin_counts_]
    score = model.intercept_ + sum(shape[-1] for shape in model.shape_functions_)
    return np.array([score, score * counts[0], *counts])


# --- one run -------------------------------------------------------------------------------------

_CANARIES = 128
# Twice the rows at which noise of one deviation would be a sixth of what keeps a bin from merging.
_ROWS_PER_NOISE = 12


def one_run(setting: AuditSetting) -> OneRunCase:
    """Return one feature with a category a canary, each a leaf of its own in the only step."""
    run = _OneRun(setting)
    return OneRunCase(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_CANARIES} canaries, each in a category and leaf of its own",
        canaries=_CANARIES,
        run=run,
    )


@dataclass(frozen=True)
class _OneRun:
    """Fits once and reads the sum of residuals of each category off the released function."""

    setting: AuditSetting

    def __call__(self, coins: np.ndarray, seed: int | None) -> tuple[np.ndarray, Ledger]:
        domain = Domain((self._feature,), ("0", "1") if self._is_binary else _RANGE)
        X, y, base = self._table(coins)
        params = {"n_epochs": 1, "learning_rate": 1.0, "max_bins": 256, "max_leaves": 256}
        model = fit_method(self.setting, domain, (X, y), seed, params)
        probe = pd.DataFrame({"x": categories(np.arange(_CANARIES), self._feature.categories)})
        bins = model.bins_[0].encode(probe["x"])
        start = self._start(model)
        values = model.intercept_ + model.shape_functions_[0][bins] - start
        sums = values * model.bin_counts_[0][bins]
        # The rows beside the canaries are known, and so are the residuals they start from.
        known = base * (0.0 if self._is_binary else sum(_RANGE) / 2 - start)
        return sums - known - self._canary_residual(start) / 2, model.ledger_

    @property
    def _is_binary(self) -> bool:
        return self.setting.task == "binary"

    @property
    def _feature(self) -> CategoricalFeature:
        return CategoricalFeature("x", tuple(f"c{i}" for i in range(_CANARIES)))

    def _table(self, coins: np.ndarray) -> tuple[pd.DataFrame, np.ndarray, int]:
        """Return X, y and how many rows each category has beside its canary."""
        noise = 1 / mu_of(0.1 * self.setting.epsilon, self.setting.delta / 2)
        base = 2 * math.ceil(_ROWS_PER_NOISE * noise / 2)
        codes = np.concatenate([np.repeat(np.arange(_CANARIES), base), np.flatnonzero(coins)])
        if self._is_binary:
            y = np.append(np.arange(_CANARIES * base) % 2, np.ones(coins.sum()))
        else:
            y = np.repeat([sum(_RANGE) / 2, _RANGE[1]], [_CANARIES * base, coins.sum()])
        return pd.DataFrame({"x": categories(codes, self._feature.categories)}), y, base

    def _start(self, model: Any) -> float:
        """Return the score from which boosting starts: 0, or the midpoint in the sound variant."""
        centred = not self._is_binary and model.sensitivity == "sound"
        return sum(_RANGE) / 2 if centred else 0.0

    def _canary_residual(self, start: float) -> float:
        return 0.5 if self._is_binary else _RANGE[1] - start


CASES = dict.fromkeys(NAMES, many_runs)
ONE_RUN_CASES = dict.fromkeys(NAMES, one_run)
