"""Logistic regression by objective perturbation: what is released has a known density.

So the distinguisher is the best there is, the likelihood ratio. It is rounded: the low bits of
floating-point noise tell more than they should, which is a different attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair, line, table
from dprepro.audit.pairs import outlier
from dprepro.methods.logistic.curator import ObjectivePerturbation

_DECIMALS = 4
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
    domain = line(setting.task)
    x = np.repeat([0.0, 1.0], _CROWD_AT_AN_END)
    y = np.repeat([1, 0], _CROWD_AT_AN_END)
    pair = MethodPair(
        setting, domain, table(x, y, (1.0, 1)), table(x, y, (0.0, 0)), _LOGISTIC_PARAMS
    )
    mechanism = ObjectivePerturbation(setting.epsilon, 1 / _LOGISTIC_PARAMS["C"])
    signed = (_signed_rows(*rows) for rows in pair.encoded)
    return pair.case(
        f"{_CROWD_AT_AN_END} rows with a label at each end, and one with the wrong label at "
        "the one end or the other",
        _ObjectiveRatio(mechanism, *signed),
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


CASES = {"dp-logistic-fair": contradiction, "dp-logistic": outlier}
