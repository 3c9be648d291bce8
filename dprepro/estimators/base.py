"""What estimators share: the ledger of a private fit, rows to predict for, two classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Parametrised, plain_parameters, read_frame
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sensitivity import Adjacency
from dprepro.privacy.subsampling import ACCOUNTANTS, moments_epsilon, sampled_sigma
from dprepro.runtime.arguments import Integer

Kind = TypeVar("Kind", bound=type)


def tagged(**tags: bool) -> Callable[[Kind], Kind]:
    """Decorate a classifier or regressor with tags of scikit-learn's, which its checks follow.

    `poor_score` is for noise, or defaults, that are too large for the small tables of the checks.
    """

    def decorated(kind: Kind) -> Kind:
        owner: Any = kind

        def __sklearn_tags__(self: Any) -> Any:  # noqa: N807 - scikit-learn's name
            found = super(owner, self).__sklearn_tags__()
            for name, value in tags.items():
                setattr(found.classifier_tags or found.regressor_tags, name, value)
            return found

        owner.__sklearn_tags__ = __sklearn_tags__
        return kind

    return decorated


class DPEstimator(Parametrised, BaseEstimator):
    """An estimator whose fit spends a privacy budget.

    Attributes
    ----------
    domain_ : Domain
        The domain used, where the fit resolves it.
    ledger_ : Ledger
        Every noisy answer of the fit.
    """

    domain_: Domain
    ledger_: Ledger

    def _new_ledger(
        self,
        adjacency: Adjacency,
        public: Iterable[str | bool] = (),
        *,
        unaccounted: Sequence[str] = (),
        gaps: Sequence[str] = (),
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> Ledger:
        """Return an empty ledger of the budget; `public` is what it assumes, but for False."""
        own_delta = self.delta if "delta" in self.kinds else 0.0
        return Ledger(
            epsilon=self.epsilon if epsilon is None else epsilon,
            delta=own_delta if delta is None else delta,
            adjacency=adjacency,
            unaccounted=list(unaccounted),
            assumed_public=[text for text in public if isinstance(text, str)],
            gaps=list(gaps),
        )

    @property
    def _observed(self) -> tuple[str, ...]:
        """What the given domain reads from the rows, in words."""
        domain: Domain | None = self.domain
        return () if domain is None else domain.observed


class FrameModel(BaseEstimator):
    """A model of the columns of a DataFrame: numbers and categories, which may be missing."""

    def _frame(self, X: Any) -> pd.DataFrame:
        """Return rows to predict for; see `read_frame`."""
        check_is_fitted(self)
        return read_frame(self, X, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = False
        return tags


@tagged(multi_class=False)
class BinaryModel(ClassifierMixin, FrameModel):
    """A classifier of two labels by a score, which its class defines as `decision_function`."""

    classes_: np.ndarray

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of both classes, float64 (n, 2)."""
        return self.probabilities_of(self.decision_function(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the likelier class of each row, (n,)."""
        return self.labels_of(self.decision_function(X))

    def probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of both classes, float64 (n, 2), of scores (n,)."""
        positive = self._positive(scores)
        return np.column_stack([1.0 - positive, positive])

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the likelier class, (n,), of scores (n,)."""
        return self.classes_[(scores > self._middle).astype(int)]

    def _positive(self, scores: np.ndarray) -> np.ndarray:
        """Return the probability of ``classes_[1]``, (n,): scores are log odds."""
        probabilities: np.ndarray = expit(scores)
        return probabilities

    @property
    def _middle(self) -> float:
        """The score at which both classes are alike."""
        return 0.0


class SampledEstimator(DPEstimator):
    """One whose parameters are `epsilon`, `delta`, `noise_multiplier` and `domain`, among others.

    Attributes
    ----------
    figures_ : dict
        ``noise_multiplier`` and ``moments_epsilon``, which the moments accountant states for it.
    """

    figures_: dict[str, float]

    def planned_ledger(self, rows: int) -> Ledger:
        """Return the ledger that a fit to so many rows would leave, without fitting.

        How often a row is sampled depends on their number, which is public, and on nothing else
        about them.
        """
        rows = Integer(1)("rows", rows)
        with plain_parameters(self):
            planned = clone(self)
        planned._enter_planned(rows)
        return planned.ledger_

    @property
    def _observed(self) -> tuple[str, ...]:
        """What is read without noise before training, in the words of the ledger."""
        return ("labels that occur",) if self.domain is None else self.domain.observed

    def _calibrate_noise(
        self,
        adjacency: Adjacency,
        rate: float,
        steps: int,
        accountant: str = "pld",
        gaps: Sequence[str] = (),
    ) -> float:
        """Return the noise multiplier; set the figures, and the ledger with its stated epsilon."""
        sigma, epsilon = self.noise_multiplier, self.epsilon
        if sigma is None:
            sigma = sampled_sigma(accountant, float(epsilon), self.delta, rate=rate, steps=steps)
        if epsilon is None:
            epsilon = ACCOUNTANTS[accountant](sigma, rate, steps, self.delta)
        self.figures_ = {
            "noise_multiplier": float(sigma),
            "moments_epsilon": moments_epsilon(sigma, rate, steps, self.delta),
        }
        self.ledger_ = self._new_ledger(
            adjacency,
            [
                "number of rows",
                "number of features",
                self.domain is not None and "labels",
                not self._observed and "bounds and categories",
            ],
            epsilon=float(epsilon),
            gaps=gaps,
        )
        return float(sigma)
