"""Locally linear maps: Harder, Bauer, Park (AAAI 2020), with scikit-learn's conventions."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.data.domain import Domain
from dprepro.estimators.sampled import SampledEstimator
from dprepro.estimators.validation import DOMAIN, fitting
from dprepro.llm.base import LocallyLinearMaps
from dprepro.llm.curator import (
    SHUFFLED,
    LLMCurator,
    Noise,
    Project,
    enter_planned,
    read_numeric_rows,
)
from dprepro.llm.gradients import ExactGradients
from dprepro.llm.rows import NumericRows, numeric_rows
from dprepro.llm.settings import SAMPLINGS, FitSettings
from dprepro.llm.training import exact_mean, released_mean, train
from dprepro.plain import EPSILON, INSIDE, MODERATE, Both, Number, OneOf, OrNone
from dprepro.privacy.private import Private
from dprepro.privacy.subsampling import ACCOUNTANTS


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
    releases are composed by `dp_accounting`.

    With ``sampling="shuffle"`` every epoch deals the rows out once, as the authors' code does while
    its accountant assumes Poisson samples. The noise is then the same, but the ledger says that
    the accountant does not apply, and composes `epochs` Gaussian releases without amplification.

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
        The noisy releases, what was taken as public, and the spent epsilon.
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
            params.rate(rows), params.steps(rows), self.accountant, gaps
        )
        return params

    def _check_together(self) -> None:
        if self.epsilon is None and self.noise_multiplier is None:
            raise ValueError("give epsilon, noise_multiplier or both; both are None")
