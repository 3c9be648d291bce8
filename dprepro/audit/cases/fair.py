"""Linear models on a fair footing: what is released has a known density in either world.

So the distinguisher is the best there is, the likelihood ratio. It is rounded: the low bits of
floating-point noise tell more than they should, which is a different attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table
from dprepro.audit.cases.general import table
from dprepro.data.domain import Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.methods import registry
from dprepro.privacy.objective import ObjectivePerturbation

_DECIMALS = 4


# --- functional mechanism ------------------------------------------------------------------------

# So many squares that folding at 0, which theirs has, never shows.
_CROWD = 500
_MOMENTS_TRIALS = 60_000


def moments(setting: AuditSetting) -> Case:
    """Return the exchange of a row that moves the released moments most: half of epsilon in all.

    Of six releases the sum of squares of the constant stays, and that of the target is dropped.
    """
    domain = Domain((NumericFeature("x", -1.0, 1.0),), (-1.0, 1.0))
    x, y = np.ones(_CROWD), np.resize([-1.0, 1.0], _CROWD)
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, (0.0, -1)))
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_CROWD} rows, and one at the upper bounds or at (middle, lowest target)",
        fit=pair.fit,
        observe=_MomentsRatio(*(_moments(*_encoded(pair, t)) for t in (pair.present, pair.absent))),
        trials=_MOMENTS_TRIALS,
    )


@dataclass(frozen=True)
class _MomentsRatio:
    """Observes the log likelihood ratio of independent Laplace noise around either world's moments.

    Attributes
    ----------
    present, absent : float64 (T,)
        Moments without noise, in the order of `_flat`.
    """

    present: np.ndarray
    absent: np.ndarray

    def __call__(self, model: Any) -> np.ndarray:
        released = _flat(model.products_, model.gram_)
        _, products, squares, pairs = (entry.scale for entry in model.ledger_.entries)
        columns = model.products_.size
        scales = _flat(
            np.full(columns, products),
            np.where(np.eye(columns, dtype=bool), squares, pairs),
        )
        ratio = (np.abs(released - self.absent) - np.abs(released - self.present)) / scales
        return np.array([ratio.sum().round(_DECIMALS)])


def _moments(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _flat(X.T @ y, X.T @ X)


def _flat(products: np.ndarray, gram: np.ndarray) -> np.ndarray:
    return np.concatenate([products, gram[np.triu_indices(len(gram))]])


# --- objective perturbation ----------------------------------------------------------------------

# The larger the crowd, the further it drives the coefficients, and the more wrong the canary is.
_CROWD_AT_AN_END = 3000
# A strong penalty keeps nearly all of epsilon for the noise; the rest, for the curvature, cannot be
# observed at the same time.
_LOGISTIC_PARAMS = {"C": 0.1}
_LOGISTIC_TRIALS = 20_000


def contradiction(setting: AuditSetting) -> Case:
    """Return crowds of opposite labels at both ends; the canary contradicts the one or the other.

    Either way it is so wrong that its gradient has nearly full length, and the two gradients point
    away from each other.
    """
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1"))
    x = np.repeat([0.0, 1.0], _CROWD_AT_AN_END)
    y = np.repeat([1, 0], _CROWD_AT_AN_END)
    pair = MethodPair(
        setting, domain, table(x, y, (1.0, 1)), table(x, y, (0.0, 0)), _LOGISTIC_PARAMS
    )
    mechanism = ObjectivePerturbation(setting.epsilon, 1 / _LOGISTIC_PARAMS["C"])
    signed = (_signed_rows(*_encoded(pair, t)) for t in (pair.present, pair.absent))
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{_CROWD_AT_AN_END} rows with a label at each end, and one with the wrong label at "
            "the one end or the other"
        ),
        fit=pair.fit,
        observe=_ObjectiveRatio(mechanism, *signed),
        trials=_LOGISTIC_TRIALS,
    )


@dataclass(frozen=True)
class _ObjectiveRatio:
    """Observes the log ratio of the densities of the coefficients in both worlds.

    Attributes
    ----------
    present, absent
        Signed rows and their counts, as `ObjectivePerturbation.log_density` wants them.
    """

    mechanism: ObjectivePerturbation
    present: tuple[np.ndarray, np.ndarray]
    absent: tuple[np.ndarray, np.ndarray]

    def __call__(self, model: Any) -> np.ndarray:
        present, absent = (
            self.mechanism.log_density(model.coef_[0], *rows)
            for rows in (self.present, self.absent)
        )
        return np.array([round(present - absent, _DECIMALS)])


def _signed_rows(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, counts = np.unique(np.where(y == 1, 1.0, -1.0)[:, None] * X, axis=0, return_counts=True)
    return rows, counts.astype(np.float64)


def _encoded(pair: MethodPair, rows: Table) -> tuple[np.ndarray, np.ndarray]:
    X, y = rows
    encoding = ENCODINGS[registry.get(pair.setting.method).encoding]
    return encoding(pair.domain).transform(X), y


CASES = {"dp-linear-fair": moments, "dp-logistic-fair": contradiction}
