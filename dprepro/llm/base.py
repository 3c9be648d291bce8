"""What both kinds of locally linear maps share: parameters, predictions, explanations."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.estimators.inputs import checked
from dprepro.estimators.validation import SEED, Parametrised, plain
from dprepro.llm.explain import GlobalExplanation, LocalExplanation, explain_rows
from dprepro.llm.maps import (
    INNER_SD,
    class_scores,
    draw_parameters,
    draw_projections,
    filters_of,
    scores_of,
)
from dprepro.llm.rows import normalised
from dprepro.llm.settings import FitSettings
from dprepro.plain import MODERATE, SHARE, Integer, Number, OrNone

_ROWS = 4096

_LARGEST = 1e15
"""Of a constant: what it is multiplied by is far from what float32 can hold."""


@dataclass(eq=False, repr=False, kw_only=True)
class LocallyLinearMaps(Parametrised, ClassifierMixin, BaseEstimator):
    """Parameters of the model and of training, predictions and explanations."""

    kinds = MappingProxyType({
        "n_maps": Integer(1), "n_projected": OrNone(Integer(1)),
        "inverse_temperature": Number(0, _LARGEST, "[]"), "epochs": Integer(1),
        "batch_size": Integer(1), "learning_rate": Number(0, _LARGEST, "(]"), "decay": SHARE,
        "decay_every": Integer(1), "projection_sd": MODERATE,
        "centre": Number(-_LARGEST, _LARGEST, "[]"), "spread": MODERATE,
        "random_state": SEED,
    })  # fmt: skip

    n_maps: int = 30
    n_projected: int | None = 300
    inverse_temperature: float = 1 / 30
    epochs: int = 20
    batch_size: int = 500
    learning_rate: float = 0.001
    decay: float = 0.8
    decay_every: int = 5
    projection_sd: float = INNER_SD
    centre: float = 0.0
    spread: float = 1.0
    random_state: int | None = None

    def _start(
        self, generator: np.random.Generator, n_features: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return theta and R (or None), drawn without a look at the data."""
        n_classes = len(self.classes_)
        if self.n_projected is None:
            return draw_parameters(generator, self.n_maps, n_classes, n_features, False), None
        projections = draw_projections(
            generator, self.n_maps, self.n_projected, n_features, self.projection_sd
        )
        theta = draw_parameters(generator, self.n_maps, n_classes, self.n_projected, True)
        return theta, projections

    def _keep(self, theta: np.ndarray, projections: np.ndarray | None) -> None:
        self.filters_ = filters_of(theta, projections).transpose(1, 0, 2).copy()
        self.offsets_ = theta[..., -1].T.copy()

    def _fit_settings(self, clip: float, sampling: str) -> FitSettings:
        return FitSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            decay=self.decay,
            decay_every=self.decay_every,
            beta=self.inverse_temperature,
            clip=clip,
            sampling=sampling,
        )

    def _maps(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return s, float32 (n, M, K), and f, float32 (n, K)."""
        check_is_fitted(self)
        X = normalised(self, checked(self, X, reset=False, dtype=np.float32))
        beta = plain(self, "inverse_temperature")
        filters = np.ascontiguousarray(self.filters_.transpose(1, 0, 2))
        parts = [
            class_scores(
                scores_of(X[start : start + _ROWS], filters, self.offsets_.T),
                beta,
            )
            for start in range(0, len(X), _ROWS)
        ]
        return np.concatenate([s for s, _ in parts]), np.concatenate([f for _, f in parts])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x), float32 (n, K), eq. (3); for two classes their difference, (n,)."""
        f = self._maps(X)[1]
        return f[:, 1] - f[:, 0] if f.shape[1] == 2 else f

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, float64 (n, K): eq. (7)."""
        return softmax(self._maps(X)[1].astype(np.float64), axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of each row, (n,)."""
        codes = np.argmax(self._maps(X)[1], axis=1)
        return self.classes_[codes]

    def explain_local(self, X: Any, classes: Any = None) -> LocalExplanation:
        """Explain the predicted class of each row of X (n, D), or the given ones.

        `classes`, (n,), holds members of ``classes_``. Post-processing: costs no privacy.
        """
        weights, f = self._maps(X)
        if classes is None:
            codes = np.argmax(f, axis=1)
        else:
            codes = np.searchsorted(self.classes_, classes)
            known = np.clip(codes, 0, len(self.classes_) - 1)
            if not np.array_equal(self.classes_[known], np.asarray(classes)):
                raise ValueError(
                    f"classes must be among {list(self.classes_)}, got {list(np.unique(classes))}"
                )
        return explain_rows(weights, codes, self.classes_, self.filters_)

    def explain_global(self) -> GlobalExplanation:
        """Return all maps of all classes: what each class responds to, whatever the input."""
        check_is_fitted(self)
        return GlobalExplanation(self.classes_, self.filters_, self.offsets_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # with the defaults, which are for images
        return tags
