"""DP-EBM+: an additive model from averaged, smoothed answers. Ours, not a paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.additive.bins import finest_bins
from dprepro.additive.editing import directions, make_all_monotone
from dprepro.additive.file import require_kept
from dprepro.additive.model import (
    AdditiveClassifier,
    AdditiveModel,
    AdditiveRegressor,
    ResidualSizes,
)
from dprepro.data.domain import Domain
from dprepro.estimators.base import DPEstimator, tagged
from dprepro.estimators.inputs import (
    DOMAIN,
    JOBS,
    SEED,
    FitRows,
    fitting,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.estimators.targets import target_range, task_of_labels
from dprepro.estimators.weights import LARGEST_WEIGHT
from dprepro.methods.dp_ebm_plus import ADJACENCY, classes
from dprepro.methods.dp_ebm_plus.algorithm import EPOCHS, learn
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.counts import CountBooster
from dprepro.methods.dp_ebm_plus.curator import CuratedLoss, PlusCurator
from dprepro.methods.dp_ebm_plus.grid import possible_cuts
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, POISSON, SQUARED, Softmax
from dprepro.methods.dp_ebm_plus.pairs import (
    LEAST_EPOCHS,
    check_names,
    most_pairs,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.rows.partition import MAX_BINS
from dprepro.runtime.arguments import DELTA, EPSILON, Integer, OneOf, OrNone, flag
from dprepro.runtime.threads import Threads


@dataclass(eq=False, repr=False)
class _DPEBMPlus(DPEstimator, AdditiveModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "epsilon": EPSILON, "delta": DELTA, "n_epochs": OrNone(Integer(1)), "pairs": Integer(0),
        "monotone": directions, "domain": OrNone(DOMAIN), "observed": flag, "n_jobs": JOBS,
        "random_state": SEED, "largest_weight": LARGEST_WEIGHT,
    })  # fmt: skip

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    n_epochs: int | None = None
    pairs: int = 0
    monotone: Mapping[str, str] | None = None
    domain: Domain | None = None
    observed: bool = False
    n_jobs: int | None = None
    random_state: int | None = None
    largest_weight: float = 1.0

    def _train(
        self, rows: Private[FitRows], domain: Domain, loss: CuratedLoss, width: float = 1.0
    ) -> tuple[list[np.ndarray], Any, np.ndarray | None]:
        """Return functions, intercept and `residual_quantiles`; set what describes bins, and pairs.

        All are multiplied by `width`, the unit of the loss.
        """
        if self.pairs:
            check_names(domain)
        self.domain_ = domain
        self.ledger_ = self._open_ledger(domain)
        budget = PrivacyBudget(self.epsilon, self.delta)
        bins = [finest_bins(f, possible_cuts(f), MAX_BINS) for f in domain.features]
        noise = [(1 / mu_of(*budget), 1)]
        pairs_at_most = most_pairs(len(bins), self.pairs)
        require_kept(self, domain, bins, noise, self.monotone, pairs_at_most)
        with Threads(self.n_jobs) as threads:
            curator = PlusCurator(rows, domain, loss, self.ledger_, self.random_state, threads)
            with curator:
                found = self._learn(curator, domain, loss, budget)
        self.bins_, functions, intercept, sizes, pairs = found
        self.bin_counts_ = [function.counts for function in functions]
        self.shape_noise_ = [width * function.band for function in functions]
        self.pairs_ = tuple(pair.term(width) for pair in pairs)
        shapes = [width * function.values for function in functions]
        return shapes, width * intercept, None if sizes is None else width * sizes

    def _learn(
        self, curator: PlusCurator, domain: Domain, loss: CuratedLoss, budget: PrivacyBudget
    ) -> tuple[Any, ...]:
        n_epochs = EPOCHS if self.n_epochs is None else self.n_epochs
        if isinstance(loss, Softmax):
            return *classes.learn(curator, domain, budget, n_epochs), None, []
        kind = CountBooster if loss is POISSON else Booster
        return learn(curator, domain, loss, budget, n_epochs, self.pairs, kind)

    def _open_ledger(self, domain: Domain) -> Ledger:
        return self._new_ledger(
            ADJACENCY,
            [
                "names, types and number of features",
                domain.is_public and "bounds, categories and target range or labels",
                "that there are at least two rows"
                + ("" if domain.is_public else ", and both labels of a classification"),
            ],
        )

    def _check_together(self) -> None:
        if self.pairs and self.n_epochs is not None:
            Integer(LEAST_EPOCHS)("with pairs, n_epochs", self.n_epochs)
        if self.pairs and self.monotone:
            raise ValueError(
                "monotone makes functions of single features monotone, and a pair may go against "
                "it: give either pairs or monotone"
            )
        if not self.observed and (self.domain is None or not self.domain.is_public):
            raise ValueError(
                f"{type(self).__name__} does not guess bounds: pass domain=Domain(...) with what "
                "is public about the table (a card's `features`, or `domain: public` in a config). "
                "observed=True reads it from the rows, which is not covered by epsilon: for "
                "experiments only"
            )


@tagged(poor_score=True, multi_class=True)
class DPEBMPlusClassifier(_DPEBMPlus, AdditiveClassifier):
    """Differentially private additive model for labels, mostly more accurate than DP-EBM.

    ``docs/dp-ebm-plus.md`` says by how much, and where it is not.

    Formal guarantee: (epsilon, delta)-DP under add/remove-one, given a public domain. Of the number
    of rows only the noisy answer is used. With mu = mu(epsilon, delta), every answer is Gaussian
    with noise over sensitivity 1/mu_j, whatever was released before. The mu_j^2 add up to mu^2, so
    the composition is mu-GDP (Theorems 4 and 5 of Nori et al. 2021, after Dong, Roth, Su 2019):

    1. Number of rows and sum of centred targets; for regression also four times the sum of their
       squares. A row adds (1, t) or (1, t, 4 t^2), |t| <= 1/2. Of S > 2 classes the number of rows
       of each: a row adds 1 in one place.
    2. A sum over all rows of the codes of the cells of a public grid (`grid`) that they lie in, for
       each of the K features. The code of a cell, a vector that follows from public things and from
       1, has at most the length that is charged (`queries.CodedHistogram`).
    3. E epochs. One query an epoch asks about the intercept and all features. A row's bins become a
       vector u, the code (`strategy`): w_c (M_cb - p_c) in place c of a feature in whose bin b the
       row lies. w, p and M follow from what is released. The row adds r u, where r is its residual,
       clipped to [-c / |u|, c / |u|]. So the query has sensitivity c.

       For regression u has a place for the middle, a level that F has in place of the intercept
       meanwhile. Another query is for the intercept, to which a row adds its clipped residual, and
       a third one, of |y - F| by size, to which it adds 1 in one cell. F is clipped to the range of
       the targets wherever it is compared with them. Query q has a share s_q of the epoch's mu_e^2:
       its noise over its sensitivity is 1/(mu_e sqrt(s_q)). The shares are public, and add up to 1.

       Of S > 2 classes a row adds the outer product of u and its residual vector, (S,), which is
       shortened to c / |u|: sensitivity c again (`queries.ClassResiduals`).

       Every epoch is mu_e-GDP.

    With `pairs`, some epochs also ask about pairs of features, whose cells are bins like others:
    see `pairs`. Which are asked about, and which are kept, follows from earlier releases.

    Everything else is post-processing: joining cells to bins, averaging answers over the epochs,
    inferring functions by empirical Bayes. `dprepro.methods.dp_ebm_plus.algorithm` has all of it in
    order, on one page.

    Of several classes functions, their noise and the intercept are of each class: float64
    (n_bins, S) and (S,). They add up to 0 over the classes, and probabilities are the softmax of
    the scores. Such a model has no `monotone` features and no `pairs`.

    `fit` takes weights of rows, which are private. A row of weight w counts as w / `largest_weight`
    of a row, rounded down to 1/256, in every answer, so no sensitivity is larger (`weighing`).
    Numbers of rows, such as `bin_counts_`, are then sums of weights over the largest; noise matters
    as much as for a table of so many rows. So state no larger weight than you need.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget.
    n_epochs : int or None
        E; None means 64. The noise in their average is about the same for any E. More epochs
        separate the effects of correlated features better. With `pairs`, at least 3.
    pairs : int
        Largest number of functions of two features; 0, the default, asks about none.
    monotone : dict of str or None
        As `DPEBMClassifier`: numeric features to make "increasing" or "decreasing" after the fit.
        Not together with `pairs`, which may go against it.
    domain : Domain
        The public domain. Bounds are never guessed.
    observed : bool
        True accepts a domain that was read from private rows, or reads it itself where `domain` is
        None. Epsilon does not cover this, and the ledger says so: for experiments only.
    n_jobs : int or None
        Number of threads that share the rows, at least 262,144 each; -1 means one for each
        processor. The model is the same for any number.
    random_state : int or None
        None seeds the noise from the operating system. An integer makes the fit repeatable: this
        is for experiments only, and the ledger says so.
    largest_weight : float
        W, public: the largest weight that a row of such a table may have, whichever are in it.
        Without weights it is not used.

    Attributes
    ----------
    ledger_ : Ledger
        Every noisy answer, what was taken as public, and the spent epsilon.
    domain_ : Domain
        The domain used.
    shape_noise_
        Here the posterior standard deviation: noise of privacy and of sampling, less what
        smoothing removes.
    bins_, shape_functions_, bin_counts_, intercept_, pairs_
        See `AdditiveModel`; the counts are noisy and may be published.

    Raises
    ------
    ValueError
        On parameters out of range, no public domain, infinite values, one class, or values that
        the domain rules out.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> domain = Domain((NumericFeature("mean radius", 0, 40),
    ...                  NumericFeature("mean texture", 0, 50)), ("malignant", "benign"))
    >>> model = DPEBMPlusClassifier(epsilon=4, domain=domain, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DPEBMPlusClassifier:
        """Fit to X (n, K) and y (n,) with two distinct labels or more.

        X can also be a table that is read in chunks: a path, or a dataset of pyarrow. Then y is the
        name of its target column; see `read_training_rows`. `sample_weight` (n,), of rows in
        memory: numbers above 0, at most `largest_weight`.
        """
        rows = read_training_rows(self, X, y, self.domain, "labels", sample_weight, in_chunks=True)
        task = task_of_labels(self.classes_, self.domain)
        if task == "multiclass" and self.monotone:
            raise ValueError(
                "monotone is for two labels: which way a function of several classes goes depends "
                "on the class. Leave it out"
            )
        if task == "multiclass" and self.pairs:
            raise ValueError("a model of several classes has no pairs of features: give pairs=0")
        domain = resolve_domain_of(self, rows, task)
        loss = LOGISTIC if task == "binary" else Softmax(self.classes_.size)
        shapes, intercept, _ = self._train(rows, domain, loss)
        self._set_shapes(shapes, intercept)
        make_all_monotone(self, self.monotone)
        return self


@tagged(poor_score=True)
@dataclass(eq=False, repr=False)
class DPEBMPlusRegressor(_DPEBMPlus, AdditiveRegressor):
    """Differentially private additive model for regression, more accurate than DP-EBM.

    Targets and predictions are clipped to the domain's target range. Inside, targets are centred at
    its midpoint and divided by its width. Residuals are clipped at a bound: a smaller one saves
    noise and adds bias, and the bound with the smallest expected sum of both is chosen. The counts
    of |y - F| that this goes by also say how wide prediction intervals are (`predict_interval`):
    that is post-processing, and costs nothing. Guarantee, parameters, attributes and errors are
    those of `DPEBMPlusClassifier`.

    For counts there is ``loss="poisson"``. Targets then lie from 0 to a public largest count M, the
    upper end of the domain's target range, and are clipped to it. A function adds to the logarithm
    of the predicted mean count, M exp(F), F at most 0. The answers are those of a regression, of
    the same sensitivities: a row has the target y / M and the residual y / M - exp(F), clipped
    where that of a regression is (`losses.PoissonLoss`). Such a model has no
    prediction intervals and no pairs.

    Parameters
    ----------
    loss : str
        "squared_error", or "poisson" for counts.
    """

    kinds = MappingProxyType({**_DPEBMPlus.kinds, "loss": OneOf(("squared_error", "poisson"))})

    _: KW_ONLY
    loss: str = "squared_error"

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DPEBMPlusRegressor:
        """Fit to X (n, K) and targets y (n,).

        X can also be a table that is read in chunks: a path, or a dataset of pyarrow. Then y is the
        name of its target column; see `read_training_rows`. `sample_weight` (n,), of rows in
        memory: numbers above 0, at most `largest_weight`.
        """
        rows = read_training_rows(
            self, X, y, self.domain, "regression", sample_weight, in_chunks=True
        )
        domain = resolve_domain_of(self, rows, "regression")
        if self.loss == "poisson":
            self._fit_counts(rows, domain)
        else:
            self._fit(rows, domain)
        return self

    def _check_together(self) -> None:
        super()._check_together()
        if self.pairs and self.loss == "poisson":
            raise ValueError(
                "loss='poisson' has no pairs of features: give pairs=0, or loss='squared_error'"
            )

    def _fit_counts(self, rows: Private[FitRows], domain: Domain) -> None:
        lower, largest = target_range(domain)
        if lower != 0:
            raise ValueError(
                f"loss='poisson' is for counts, which begin at 0, but the domain's target range is "
                f"from {lower:g} to {largest:g}: state it from 0 to the largest count, or give "
                "loss='squared_error'"
            )
        self.range_, self.log_link_ = (0.0, largest), True
        shapes, intercept, _ = self._train(rows, domain, POISSON)
        self._set_shapes(shapes, math.log(largest) + intercept)
        make_all_monotone(self, self.monotone)

    def _fit(self, rows: Private[FitRows], domain: Domain) -> None:
        lower, upper = target_range(domain)
        width, middle = upper - lower, (lower + upper) / 2
        shapes, intercept, sizes = self._train(rows, domain, SQUARED, width)
        self.range_ = (lower, upper)
        self.residual_sizes_ = None if sizes is None else ResidualSizes.at_levels(sizes)
        self._set_shapes(shapes, middle + intercept)
        make_all_monotone(self, self.monotone)
