"""The toy DP-EBM of the 2025 replication: cyclic boosting with noise, and without any guarantee."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import RegressorMixin

from dprepro.estimators.base import BinaryModel, DPEstimator, FrameModel, tagged
from dprepro.estimators.inputs import SEED, Rows, fitting, read_training_rows
from dprepro.methods.toy_ebm import ADJACENCY
from dprepro.methods.toy_ebm.curator import (
    GAPS,
    UNBOUNDED,
    UNIT,
    UNPAID,
    MeanResiduals,
    Step,
    ToyCurator,
)
from dprepro.privacy.private_rows import Private
from dprepro.runtime.arguments import DELTA, EPSILON, SHARE, Integer, flag


@dataclass(eq=False, repr=False)
class _ToyDPEBM(DPEstimator, FrameModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "epsilon": EPSILON, "delta": DELTA, "max_bins": Integer(2), "n_epochs": Integer(1),
        "learning_rate": SHARE, "sigmoid": flag, "random_state": SEED,
    })  # fmt: skip

    epsilon: float = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    max_bins: int = 32
    n_epochs: int = 300
    learning_rate: float = 0.01
    sigmoid: bool = True
    random_state: int | None = None

    def _train(self, rows: Private[Rows]) -> None:
        """Boost on the residuals, feature after feature."""
        self.ledger_ = self._new_ledger(ADJACENCY, unaccounted=UNPAID, gaps=GAPS)
        curator = ToyCurator(rows, self.max_bins, self.n_epochs, self.ledger_, self.random_state)
        self.bins_ = curator.bins()
        self.shapes_: list[np.ndarray] = [np.zeros(bins.count) for bins in self.bins_]
        occupied = curator.occupied()
        for epoch in range(self.n_epochs):
            for k, shape in enumerate(self.shapes_):
                answer = curator.mean_residuals(MeanResiduals(1.0, 1.0, k, epoch, gap=UNBOUNDED))
                step = np.rint(self.learning_rate * answer.value / UNIT) * UNIT
                change = np.where(occupied[k], step, 0.0)
                shape += change
                curator.tell(Step(k, change))

    def _scores(self, X: Any) -> np.ndarray:
        """Return the sum of the shape functions, float64 (n,)."""
        frame = self._frame(X)
        parts = zip(self.shapes_, self.bins_, frame.columns, strict=True)
        return np.sum([shape[b.encode(frame[name])] for shape, b, name in parts], axis=0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


@tagged(poor_score=True)
class ToyDPEBMClassifier(BinaryModel, _ToyDPEBM):
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
        Every answer under the sensitivity that the authors assume, and why it does not hold.

    Raises
    ------
    ValueError
        On parameters out of range, missing or infinite values of a numeric feature, or other than
        two labels.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> ToyDPEBMClassifier:
        """Fit to X (n, K) and y (n,) with two distinct labels."""
        self._train(read_training_rows(self, X, y, None, "binary"))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the sum of the functions, float64 (n,); it estimates P(``classes_[1]``)."""
        return self._scores(X)

    def _positive(self, scores: np.ndarray) -> np.ndarray:
        """Return the sigmoid of the sum, not calibrated, or the sum clipped."""
        return super()._positive(scores) if self.sigmoid else np.clip(scores, 0.0, 1.0)

    @property
    def _middle(self) -> float:
        """With the sigmoid, 0, though the sum estimates a probability, and is seldom negative.

        So it is in the original, which prints no accuracy.
        """
        return 0.0 if self.sigmoid else 0.5


@tagged(poor_score=True)
class ToyDPEBMRegressor(RegressorMixin, _ToyDPEBM):
    """The toy DP-EBM for regression; see `ToyDPEBMClassifier`. **It is not private.**

    With `sigmoid`, as the slides describe it, predictions lie in [0, 1] whatever the target's unit:
    that is what the report prints for Parkinson. Without, they are the sum of the functions.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> ToyDPEBMRegressor:
        """Fit to X (n, K) and targets y (n,)."""
        self._train(read_training_rows(self, X, y, None, "regression"))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target, float64 (n,)."""
        scores = self._scores(X)
        return expit(scores) if self.sigmoid else scores
