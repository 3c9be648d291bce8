"""The toy DP-EBM of the 2025 replication: cyclic boosting with noise, and without any guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import CategoricalFeature, Domain, Feature, category_codes, numbers_of
from dprepro.estimators.inputs import read_frame, read_labels, read_targets
from dprepro.estimators.validation import check_integer
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import ZERO_OUT, Sensitivity

UNPAID = (
    "quantiles of the numeric features, which are the bin edges",
    "categories that occur",
    "number of rows in every bin, by which its sum of residuals is divided",
)
GAPS = (
    "the noise is that of a single release, and is used anew for every bin, feature and epoch: "
    "the budget is spent many times over",
    "sensitivity 1 is assumed for the mean residual of a bin, which moves by far less in a large "
    "bin and by a whole residual, which nothing bounds, in a bin of one row",
    "sqrt(2 ln(1.25 / delta)) / epsilon is enough noise only for epsilon below 1",
)


@dataclass(frozen=True)
class ToyBins:
    """The bins of one feature: `edges`, ascending, of a numeric one, or `categories`.

    A numeric bin holds edge <= x < next edge; values beyond the ends go to the outer bins. Bin 0
    of a categorical feature is for missing and unseen categories.
    """

    edges: np.ndarray | None
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, column: pd.Series, feature: Feature, max_bins: int) -> ToyBins:
        """Return one bin a category, or quantile bins, at most `max_bins`, read from the rows."""
        if isinstance(feature, CategoricalFeature):
            return cls(None, feature.categories)
        return cls(np.unique(np.quantile(_numbers(column), np.linspace(0, 1, max_bins + 1))))

    @property
    def count(self) -> int:
        """The number of bins."""
        return len(self.categories) + 1 if self.edges is None else max(1, len(self.edges) - 1)

    def encode(self, column: pd.Series) -> np.ndarray:
        """Return the bin of each row, int64 (n,)."""
        if self.edges is None:
            return category_codes(column, self.categories) + 1
        return np.searchsorted(self.edges[1:-1], _numbers(column), side="right")


def _numbers(column: pd.Series) -> np.ndarray:
    values = numbers_of(column)
    if np.isnan(values).any():
        raise ValueError(
            f"feature {column.name!r} has missing values (NaN), which the toy DP-EBM cannot take: "
            "fill them in, or choose another method"
        )
    return values


class _ToyDPEBM(BaseEstimator):
    """Parameters and training that the classifier and the regressor share."""

    bins_: list[ToyBins]
    shapes_: list[np.ndarray]
    ledger_: Ledger

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        max_bins: int = 32,
        n_epochs: int = 300,
        learning_rate: float = 0.01,
        sigmoid: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_bins = max_bins
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.sigmoid = sigmoid
        self.random_state = random_state

    def _train(self, frame: pd.DataFrame, targets: np.ndarray) -> None:
        """Boost on the residuals of float64 targets (n,), feature after feature."""
        self.check_parameters()
        self.ledger_ = Ledger(
            self.epsilon, self.delta, ZERO_OUT, unpaid=list(UNPAID), gaps=list(GAPS)
        )
        source = NoiseSource(self.ledger_, self.random_state)
        features = Domain.observe(frame, targets, "regression").features
        self.bins_ = [
            ToyBins.of(frame[name], feature, self.max_bins)
            for name, feature in zip(frame.columns, features, strict=True)
        ]
        codes = [b.encode(frame[name]) for b, name in zip(self.bins_, frame.columns, strict=True)]
        rows = [np.bincount(c, minlength=b.count) for c, b in zip(codes, self.bins_, strict=True)]
        noise = [
            self._noise(source, str(k), b) for k, b in zip(frame.columns, self.bins_, strict=True)
        ]
        self.shapes_ = [np.zeros(b.count) for b in self.bins_]
        residuals = targets.astype(np.float64)
        for epoch in range(self.n_epochs):
            for k, shape in enumerate(self.shapes_):
                sums = np.bincount(codes[k], weights=residuals, minlength=len(shape))
                means = sums / np.maximum(rows[k], 1)
                step = np.where(rows[k] > 0, self.learning_rate * (means + noise[k][epoch]), 0.0)
                shape += step
                residuals -= step[codes[k]]

    def _noise(self, source: NoiseSource, name: str, bins: ToyBins) -> np.ndarray:
        """Draw the noise of a feature, float64 (epochs, bins), by the formula of the slides."""
        multiplier = math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
        return source.gaussian(
            (self.n_epochs, bins.count),
            releases=f"mean residual in each bin of {name}, every epoch",
            noise_multiplier=multiplier,
            sensitivity=Sensitivity(1.0, math.sqrt(2)),
            uses=self.n_epochs,
            budget=self.ledger_.budget,
        )

    def _scores(self, X: Any) -> np.ndarray:
        """Return the sum of the shape functions, float64 (n,)."""
        check_is_fitted(self)
        frame = read_frame(self, X, reset=False)
        parts = zip(self.shapes_, self.bins_, frame.columns, strict=True)
        return np.sum([shape[b.encode(frame[name])] for shape, b, name in parts], axis=0)

    def check_parameters(self) -> None:
        """Raise ValueError on parameters out of range."""
        if not (isinstance(self.epsilon, Real) and 0 < float(self.epsilon) < math.inf):
            raise ValueError(f"epsilon must be positive and finite, got {self.epsilon!r}")
        if not (isinstance(self.delta, Real) and 0 < float(self.delta) < 1):
            raise ValueError(f"delta must lie strictly between 0 and 1, got {self.delta!r}")
        if not (isinstance(self.learning_rate, Real) and 0 < float(self.learning_rate) <= 1):
            raise ValueError(
                f"learning_rate must be above 0 and at most 1, got {self.learning_rate!r}"
            )
        check_integer("max_bins", self.max_bins, 2)
        check_integer("n_epochs", self.n_epochs, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = False
        return tags


class ToyDPEBMClassifier(ClassifierMixin, _ToyDPEBM):
    """The toy DP-EBM for binary labels. **It is not private**, whatever `epsilon` says.

    Chatziloizos, Zhang, Behaegel 2025, section 7, who say so themselves: up to `max_bins` quantile
    bins a numeric feature, one a category; in every epoch and for every feature, each bin moves by
    `learning_rate` times its mean residual plus N(0, 2 ln(1.25 / delta) / epsilon^2). Residuals
    are those of squared loss on labels 0 and 1.

    Parameters
    ----------
    epsilon, delta : float
        What the noise is computed from; nothing that is kept. delta is not stated there; 1e-5 is
        what their notebook has.
    max_bins, n_epochs : int
        Bins of a numeric feature; rounds over all features.
    learning_rate : float
        Above 0 and at most 1.
    sigmoid : bool
        Whether predictions pass through a sigmoid, as in the original.
    random_state : int or None
        None draws noise from the operating system.

    Attributes
    ----------
    bins_ : list of ToyBins
        One a feature.
    shapes_ : list of ndarray
        The function of each feature, float64 (bins,).
    ledger_ : Ledger
        Every release under the sensitivity that the authors assume, and why it does not hold.

    Raises
    ------
    ValueError
        On parameters out of range, missing or infinite numbers, or other than two labels.
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> ToyDPEBMClassifier:
        """Fit to X (n, K) and y (n,) with two distinct labels."""
        frame = read_frame(self, X, reset=True)
        self.classes_, labels = read_labels(self, frame, y)
        self._train(frame, labels)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the sum of the functions, float64 (n,); it estimates P(``classes_[1]``)."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return float64 (n, 2): the sigmoid of the sum, not calibrated, or the sum clipped."""
        scores = self._scores(X)
        positive = expit(scores) if self.sigmoid else np.clip(scores, 0.0, 1.0)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Return the likelier class of each row by `predict_proba`, (n,).

        With the sigmoid that is ``classes_[1]`` wherever the sum, which estimates a probability,
        is above 0: nearly everywhere. So it is in the original, which prints no accuracy.
        """
        positive = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[positive.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


class ToyDPEBMRegressor(RegressorMixin, _ToyDPEBM):
    """The toy DP-EBM for numbers; see `ToyDPEBMClassifier`. **It is not private.**

    With `sigmoid`, as the slides describe it, predictions lie in [0, 1] whatever the target's unit:
    that is what the report prints for Parkinson. Without, they are the sum of the functions.
    """

    def fit(self, X: Any, y: Any) -> ToyDPEBMRegressor:
        """Fit to X (n, K) and numbers y (n,)."""
        frame = read_frame(self, X, reset=True)
        self._train(frame, read_targets(self, frame, y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target, float64 (n,)."""
        scores = self._scores(X)
        return expit(scores) if self.sigmoid else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
