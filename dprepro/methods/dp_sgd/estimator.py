"""A dense network of one hidden layer by DP-SGD (Abadi et al. 2016)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin

from dprepro.data.domain import Domain
from dprepro.estimators.base import DPEstimator, FrameModel
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    Rows,
    fitting,
    plain,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.estimators.targets import target_range, task_of_labels
from dprepro.methods.dp_sgd import ADJACENCY
from dprepro.methods.dp_sgd.curator import DPSGDCurator, GradientSum, Noise
from dprepro.methods.dp_sgd.inputs import LongRows
from dprepro.methods.dp_sgd.network import (
    LARGEST_WEIGHT,
    MOST_WIDTH,
    TARGET_SPAN,
    WEIGHT_UNIT,
    Network,
)
from dprepro.methods.dp_sgd.training import Shape, scales, trained
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.private_rows import Private
from dprepro.privacy.subsampling import sampled_sigma
from dprepro.runtime.arguments import DELTA, EPSILON, SHARE, Integer, Number, OrNone


@dataclass(eq=False, repr=False, kw_only=True)
class _DPSGD(DPEstimator, FrameModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "epsilon": EPSILON, "delta": DELTA, "width": Integer(1, MOST_WIDTH),
        "knots": OrNone(Integer(2)), "steps": Integer(1, 10**6), "sampling": SHARE,
        "clip_norm": Number(1e-3, 16, "[]"),
        "learning_rate": Number(0, 16, "(]"), "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    _usual_knots: ClassVar[int]

    epsilon: float = 1.0
    delta: float = 1e-6
    width: int = 16
    knots: int | None = None
    steps: int = 400
    sampling: float = 0.1
    clip_norm: float = 0.3
    learning_rate: float = 0.12
    domain: Domain | None = None
    random_state: int | None = None

    def _train(self, rows: Private[Rows], target: tuple[float, float] | None, outputs: int) -> None:
        domain, budget = self.domain_, PrivacyBudget(self.epsilon, self.delta)
        inputs = LongRows(domain, self._knots)
        curator = DPSGDCurator(rows, domain, self._knots, target, self.ledger_, self.random_state)
        shape = Shape(inputs.columns, inputs.parts, self.width, outputs)
        start = np.zeros(scales(shape).size)
        drawn = inputs.drawn_weights(curator.public_generator, self.width)
        start[: drawn.size] = drawn.ravel() / math.sqrt(inputs.parts)
        clip = self.clip_norm * shape.length
        noise = Noise(self._multiplier(budget), self.sampling, self.steps, clip)
        curator.enter(noise, start.size, budget)

        def answer(step: int, weights: np.ndarray) -> np.ndarray:
            network = Network.of(weights, inputs.columns, self.width)
            query = GradientSum(clip, 1.0, step, network, clip)
            return curator.answer(query).value

        rates = self.learning_rate * scales(shape)
        weights = trained(start, self.steps, rates, LARGEST_WEIGHT * WEIGHT_UNIT, answer)
        self.network_ = Network.of(weights, inputs.columns, self.width)

    @property
    def _knots(self) -> int:
        knots = plain(self, "knots")
        return self._usual_knots if knots is None else int(knots)

    def _multiplier(self, budget: PrivacyBudget) -> float:
        """Return the least noise multiplier with which all steps keep within the budget."""
        if self.sampling == 1:
            return math.sqrt(self.steps) / mu_of(*budget)
        return sampled_sigma("pld", *budget, rate=self.sampling, steps=self.steps)

    def _scores(self, X: Any) -> np.ndarray:
        """Return what the network says of rows, float64 (n, outputs)."""
        frame = self._frame(X)
        inputs = LongRows(self.domain_, self._knots).encode(frame)
        return self.network_.scores(self.network_.hidden(inputs))


class DPSGDClassifier(ClassifierMixin, _DPSGD):
    """A network of one hidden layer for two labels or more, by DP-SGD (Abadi et al. 2016).

    Inputs are rows as `LongRows` encodes them by the public domain. A hidden layer of `width`
    hyperbolic tangents and an output layer follow. At each of T `steps` every row joins a sample
    with probability `sampling`, independently; its gradient, over all weights at once, is scaled to
    a norm of at most C; the sum gets Gaussian noise in every coordinate, and Adam moves the weights
    by it. Which step is how long depends on noisy sums and public things alone: the number of rows,
    which is private, is not needed. The weights of the second half of the steps are averaged.

    Formal guarantee: (epsilon, delta)-DP under add/remove-one, given a public domain. A row that
    takes part moves a sum by at most C, which whole-number arithmetic bounds (`clipped_sum`). The T
    answers compose as Gaussian mechanisms on Poisson samples, by privacy loss distributions, and
    have the least noise with which `dp_accounting` states the budget. The noise is exact.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget.
    width : int
        Hidden values.
    knots : int or None
        Of numeric features, see `UnitRows`; None is 5.
    steps : int
        T.
    sampling : float
        How likely a row is in a sample: a public share, whatever the number of rows.
    clip_norm : float
        C over the root of K + 2 + `width`, K being the number of features.
    learning_rate : float
        Adam's, times the root of how many weights a layer adds up.
    domain : Domain or None
        Bounds, categories and labels; None reads them from the rows, which epsilon does not
        cover.
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    network_ : Network
        The weights.
    classes_ : ndarray (K,)
        The labels, sorted.
    domain_ : Domain
        The domain used.
    ledger_ : Ledger
        The answers.

    Raises
    ------
    ValueError
        On parameters out of range, and as `DPEBMClassifier` on rows.
    """

    _usual_knots = 5

    @fitting
    def fit(self, X: Any, y: Any) -> DPSGDClassifier:
        """Fit to X (n, K) and y (n,) with two labels or more."""
        rows = read_training_rows(self, X, y, self.domain, "labels")
        task = task_of_labels(self.classes_, self.domain)
        self.domain_ = domain = resolve_domain_of(self, rows, task)
        self.ledger_ = self._new_ledger(
            ADJACENCY,
            [
                "names, types and number of features",
                domain.is_public and "bounds, categories and labels",
                "that two rows at least are there"
                + ("" if domain.is_public else ", and all labels"),
            ],
        )
        classes = len(self.classes_)
        self._train(rows, None, 1 if classes == 2 else classes)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores, float64 (n, K); of two classes the log odds of the second, (n,)."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, float64 (n, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        second = expit(scores)
        return np.column_stack([1.0 - second, second])

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of each row, (n,)."""
        scores = self.decision_function(X)
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return self.classes_[codes]


class DPSGDRegressor(RegressorMixin, _DPSGD):
    """A network of one hidden layer for numbers, by DP-SGD; see `DPSGDClassifier`.

    Targets are scaled to `TARGET_SPAN` by their public range. The loss is that of Huber: errors of
    more than 1 count as 1. `knots` of None are 10. A domain of None reads the target range from the
    rows, too; without any range of the target `fit` raises ValueError.
    """

    _usual_knots = 10

    @fitting
    def fit(self, X: Any, y: Any) -> DPSGDRegressor:
        """Fit to X (n, K) and numbers y (n,)."""
        rows = read_training_rows(self, X, y, self.domain, "regression")
        self.domain_ = domain = resolve_domain_of(self, rows, "regression")
        target = target_range(domain)
        self.ledger_ = self._new_ledger(
            ADJACENCY,
            [
                "names, types and number of features",
                domain.is_public and "bounds, categories and target range",
                "that two rows at least are there",
            ],
        )
        self._train(rows, target, 1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions within the public range of the target, float64 (n,)."""
        scores = self._scores(X)[:, 0]
        low, high = target_range(self.domain_)
        share = (np.clip(scores / TARGET_SPAN, -1.0, 1.0) + 1) / 2
        return low + share * (high - low)
