"""Locally linear maps, with privacy and without: Harder, Bauer, Park (AAAI 2020)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.estimators.base import SampledEstimator, tagged
from dprepro.estimators.inputs import DOMAIN, SEED, Parametrised, checked, fitting, plain
from dprepro.methods.locally_linear import ADJACENCY
from dprepro.methods.locally_linear.curator import (
    SHUFFLED,
    GradientQuery,
    LLMCurator,
    Noise,
    Project,
    enter_planned,
    read_numeric_rows,
)
from dprepro.methods.locally_linear.explain import GlobalExplanation, LocalExplanation, explain_rows
from dprepro.methods.locally_linear.gradients import (
    SAMPLINGS,
    ExactGradients,
    FitSettings,
    NumericRows,
    normalised,
    numeric_rows,
)
from dprepro.methods.locally_linear.maps import (
    INNER_SD,
    class_scores,
    draw_parameters,
    draw_projections,
    filters_of,
    scores_of,
)
from dprepro.methods.locally_linear.training import MeanGradient, train
from dprepro.privacy.private_rows import Private
from dprepro.privacy.subsampling import ACCOUNTANTS
from dprepro.runtime.arguments import (
    EPSILON,
    INSIDE,
    MODERATE,
    SHARE,
    Both,
    Integer,
    Number,
    OneOf,
    OrNone,
)

_ROWS = 4096

_LARGEST = 1e15
"""Of a constant: what it is multiplied by is far from what float32 can hold."""


@tagged(poor_score=True)
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
            class_scores(scores_of(X[start : start + _ROWS], filters, self.offsets_.T), beta)
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


def released_mean(curator: LLMCurator, params: FitSettings) -> MeanGradient:
    """Return a function that asks a curator for a noisy sum and divides it by L, `batch_size`."""

    def mean(theta: np.ndarray) -> np.ndarray:
        # A copy: a listener may keep the query, and training changes theta in place.
        query = GradientQuery(params.clip, 1.0, theta.copy(), params.clip)
        # Samples differ in size, which is secret: the divisor does not follow it.
        return curator.answer(query).value / np.float32(params.batch_size)

    return mean


def exact_mean(gradients: ExactGradients, params: FitSettings) -> MeanGradient:
    """Return a function that takes a sum without noise and divides it by the size of its batch."""

    def mean(theta: np.ndarray) -> np.ndarray:
        total, size = gradients.next_sum(theta, params.clip)
        return total / np.float32(max(1, size))

    return mean


class LLMClassifier(LocallyLinearMaps):
    """Locally linear maps without privacy, by minibatches and Adam.

    Each class has M linear maps (filters); their values are weighted by a softmax of themselves and
    added up to the class's score (eqs. 3 to 5), the scores to probabilities by another softmax
    (eq. 7). M = 1 is multinomial logistic regression.

    Parameters
    ----------
    n_maps : int
        M, the maps a class.
    n_projected : int or None
        D', to which each map's random projection takes the inputs; None projects nothing.
    inverse_temperature : float
        beta: large favours single maps.
    epochs, batch_size : int
        Passes over the rows, and rows a step.
    learning_rate, decay, decay_every
        Adam's; it falls to `decay` times itself every `decay_every` epochs, and Adam starts anew.
    projection_sd : float
        Standard deviation of the projections' entries. sqrt(1/2) is the authors' code; the paper
        says 1/sqrt(D'), 12 times less at D' = 300.
    centre, spread : float
        Public constants: inputs enter as (x - centre) / spread, cut off at -100 and 100.
    random_state : int or None
        Seeds projections, starting values and batches.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The labels, sorted.
    filters_, offsets_ : ndarray, float32 (K, M, D) and (K, M)
        w and b of eq. (4), for inputs as normalised by `centre` and `spread`.

    Raises
    ------
    ValueError
        On parameters out of range, missing or infinite values, or fewer than two classes.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> LLMClassifier:
        """Fit to numeric X (n, D) and labels y (n,)."""
        rows = numeric_rows(self, X, y)
        params = self._fit_settings(math.inf, "shuffle")
        generator = np.random.default_rng(self.random_state)
        theta, projections = self._start(generator, self.n_features_in_)
        gradients = ExactGradients(rows, params, generator)
        gradients.project(projections)
        train(theta, params, len(rows), exact_mean(gradients, params))
        self._keep(theta, projections)
        return self


@dataclass(eq=False, repr=False)
class DPLLMClassifier(LocallyLinearMaps, SampledEstimator):
    """Differentially private locally linear maps: Algorithm 1 of the paper.

    Formal guarantee: (epsilon, delta)-DP under zero-out, given that the number of rows, features
    and labels are public, for any inputs. At each step a row takes part with probability
    L / n, independently (Poisson sampling); its gradient with respect to all parameters at once is
    scaled to a norm of at most C (to 0 if float32 cannot hold it), so the sum moves by at most C
    when the row is left out, and gets noise N(0, (sigma C)^2) in every coordinate. Projections and
    starting values do not depend on the data; Adam post-processes. The T = epochs * ceil(n / L)
    answers are composed by `dp_accounting`.

    With ``sampling="shuffle"`` every epoch deals the rows out once, as the authors' code does while
    its accountant assumes Poisson samples. The noise is then the same, but the ledger says that
    the accountant does not apply, and composes `epochs` Gaussian answers without amplification.

    Parameters
    ----------
    epsilon : float or None
        The stated budget; the noise multiplier sigma is the least that keeps it. None states what
        the given `noise_multiplier` spends.
    delta : float
        The other half of the budget.
    clip_norm : float
        C, on the gradient of a single row. (The authors' code clips after division by L: its 0.001
        is 0.5 at L = 500.)
    noise_multiplier : float or None
        sigma. If `epsilon` is given as well, it is a claim, and the ledger checks it.
    accountant : {"pld", "moments"}
        The accountant that finds sigma: the tight one, or that of Abadi et al. 2016, as in the
        paper.
    sampling : {"poisson", "shuffle"}
        See above.
    domain : Domain or None
        The labels, given in y themselves or as codes 0, 1, ..., whichever of them occur; and where
        the inputs' scale comes from: what it was read from ends up in the ledger. None takes the
        labels that occur, which epsilon does not cover.
    n_maps, n_projected, inverse_temperature, epochs, batch_size, learning_rate, decay, decay_every,
    projection_sd, centre, spread
        See `LLMClassifier`. `batch_size` is the expected one, L.
    random_state : int or None
        None seeds the noise from the operating system. An integer makes the fit repeatable: this
        is for experiments only, and the ledger says so.

    Attributes
    ----------
    ledger_ : Ledger
        The noisy answers, what was taken as public, and the spent epsilon.
    noise_multiplier_ : float
        sigma.
    figures_ : dict
        ``noise_multiplier`` and ``moments_epsilon``, which the moments accountant states for it.
    classes_, filters_, offsets_
        See `LLMClassifier`.

    Raises
    ------
    ValueError
        On parameters out of range, missing or infinite values, or fewer than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DPLLMClassifier(8, n_maps=2, n_projected=None, learning_rate=0.03, batch_size=200,
    ...                         inverse_temperature=1, spread=16, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8 and model.ledger_.within_budget
    True
    """

    kinds = MappingProxyType({
        **LocallyLinearMaps.kinds, "epsilon": OrNone(EPSILON),
        "delta": Both(INSIDE, Number(1e-14, 1)),
        "clip_norm": MODERATE, "noise_multiplier": OrNone(MODERATE),
        "accountant": OneOf(tuple(ACCOUNTANTS)), "sampling": OneOf(SAMPLINGS),
        "domain": OrNone(DOMAIN),
    })  # fmt: skip

    epsilon: float | None = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    clip_norm: float = 0.5
    noise_multiplier: float | None = None
    accountant: str = "pld"
    sampling: str = "poisson"
    domain: Domain | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> DPLLMClassifier:
        """Fit to numeric X (n, D) and labels y (n,)."""
        private, rows = read_numeric_rows(self, X, y, self.domain)
        return self._train(private, rows)

    def _train(self, private: Private[NumericRows], rows: int) -> DPLLMClassifier:
        params = self._calibrate(rows)
        shape = (self.n_maps, len(self.classes_), (self.n_projected or self.n_features_in_) + 1)
        curator = LLMCurator(
            private, shape, params, self._noise, self.ledger_, self.random_state, self._observed
        )
        theta, projections = self._start(curator.public_generator, self.n_features_in_)
        curator.tell(Project(projections))
        train(theta, params, rows, released_mean(curator, params))
        self._keep(theta, projections)
        return self

    def _enter_planned(self, rows: int) -> None:
        params = self._calibrate(rows)
        enter_planned(params, rows, self._noise, self.ledger_, self.random_state, self._observed)

    @property
    def _noise(self) -> Noise:
        """The noise to draw. A multiplier that the user gave is not held to the budget."""
        return Noise(
            self.noise_multiplier_, self.accountant if self.noise_multiplier is None else None
        )

    def _calibrate(self, rows: int) -> FitSettings:
        """Set the noise multiplier, the figures, and the ledger with its stated epsilon."""
        params = self._fit_settings(float(self.clip_norm), self.sampling)
        gaps = [SHUFFLED] if self.sampling == "shuffle" else []
        self.noise_multiplier_ = self._calibrate_noise(
            ADJACENCY, params.rate(rows), params.steps(rows), self.accountant, gaps
        )
        return params

    def _check_together(self) -> None:
        if self.epsilon is None and self.noise_multiplier is None:
            raise ValueError("give epsilon, noise_multiplier or both; both are None")
