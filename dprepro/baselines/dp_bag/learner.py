"""What teachers and student have in common: how they see a row, and how they learn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from dprepro.data.domain import Domain
from dprepro.data.encode import UnitNormEncoder

_UNIT = 2.0**-30
"""Of coefficients: finer than the solver's tolerance, coarser than what processors differ by."""


def encode(frame: pd.DataFrame, domain: Domain) -> np.ndarray:
    """Return the rows as float64 (n, columns).

    Indicators, and numeric features scaled to [0, 1] by their bounds, as published.
    """
    norm = math.sqrt(len(domain.features) + 1)
    named = frame.set_axis([feature.name for feature in domain.features], axis=1)
    return norm * UnitNormEncoder(domain).transform(named)


def learn(X: np.ndarray, codes: np.ndarray) -> LogisticRegression | DummyClassifier:
    """Return a logistic regression, or the constant class where there is only one.

    The solver was the library's default when the paper appeared, and is the fastest on small parts.
    It uses BLAS, whose last bits differ between processors. So coefficients are rounded.
    """
    if len(np.unique(codes)) < 2:
        return DummyClassifier(strategy="most_frequent").fit(X, codes)
    model = LogisticRegression(solver="liblinear").fit(X, codes)
    model.coef_ = _rounded(model.coef_)
    model.intercept_ = _rounded(model.intercept_)
    return model


def _rounded(coefficients: np.ndarray) -> np.ndarray:
    return np.rint(coefficients / _UNIT) * _UNIT
