"""DP-EBM+: an additive model from averaged, smoothed answers. Ours, not a paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.additive.bins import FeatureBins, finest_bins
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
from dprepro.estimators.targets import target_range
from dprepro.methods.dp_ebm_plus import ADJACENCY
from dprepro.methods.dp_ebm_plus.algorithm import learn
from dprepro.methods.dp_ebm_plus.curator import CuratedLoss, PlusCurator
from dprepro.methods.dp_ebm_plus.function import Function
from dprepro.methods.dp_ebm_plus.grid import possible_cuts
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.pairs import (
    LEAST_EPOCHS,
    PairFunction,
    check_names,
    learn_with_pairs,
    most_pairs,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.rows.partition import MAX_BINS
from dprepro.runtime.arguments import DELTA, EPSILON, Integer, OrNone, flag
from dprepro.runtime.threads import Threads


@dataclass(eq=False, repr=False)
class _DPEBMPlus(DPEstimator, AdditiveModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "epsilon": EPSILON, "delta": DELTA, "n_epochs": OrNone(Integer(1)), "pairs": Integer(0),
        "monotone": directions, "domain": OrNone(DOMAIN), "observed": flag, "n_jobs": JOBS,
        "random_state": SEED,
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
        self, curator: PlusCurator, domain: Domain, loss: Any, budget: PrivacyBudget
    ) -> tuple[list[FeatureBins], list[Function], float, np.ndarray | None, list[PairFunction]]:
        if self.pairs:
            return learn_with_pairs(curator, domain, loss, budget, self.n_epochs, self.pairs)
        return *learn(curator, domain, loss, budget, self.n_epochs), []

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


@tagged(poor_score=True)
class DPEBMPlusClassifier(_DPEBMPlus, AdditiveClassifier):
    """Differentially private additive model for binary labels, mostly more accurate than DP-EBM.

    ``docs/dp-ebm-plus.md`` says by how much, and where it is not.

    Formal guarantee: (epsilon, delta)-DP under add/remove-one, given a public domain. Of the number
    of rows only the noisy answer is used. With mu = mu(epsilon, delta), every answer is Gaussian
    with noise over sensitivity 1/mu_j, whatever was released before. The mu_j^2 add up to mu^2, so
    the composition is mu-GDP (Theorems 4 and 5 of Nori et al. 2021, after Dong, Roth, Su 2019):

    1. Number of rows and sum of centred targets; for regression also four times the sum of their
       squares. A row adds (1, t) or (1, t, 4 t^2), |t| <= 1/2.
    2. Counts per cell of a public grid for each feature (`grid`); for numeric features also per
       group of neighbouring cells (`groups`). A row adds a vector of norm 1 to each of
       the K histograms.
    3. E epochs. A row adds its residual r, clipped, to sums over bins.

       Classification: one query an epoch asks about the intercept and all features. A row's bins
       become a vector u, the code (`strategy`): w_c (1[b = c] - p_c) in place c of a feature in
       whose bin b the row lies, with weights w and centres p. For a numeric feature it is
       w_c (M_cb - p_c), so that neighbouring bins share numbers. w, p and M follow from what is
       released. The row adds r u, with r clipped to [-c / |u|, c / |u|]. So the query has
       sensitivity c, and all of an epoch's mu_e^2. By c a row whose code is of typical length may
       have a residual of 0.8 (where rows are few, of 0.4 to 0.8).

       Regression: such a query for each feature, or, where rows are few, one for all features and
       a level of their own, the middle, which F has in place of the intercept meanwhile; and one
       for the intercept, where r is clipped and added. By c a row whose code is of typical
       length may have a residual that comes from a noisy histogram of |y - F|, to which a row adds
       1 in one cell; this histogram is a query of the epoch, too. F is clipped to the range of the
       targets wherever it is compared with them.
       Query q has a share s_q of mu_e^2: its noise over its sensitivity is 1/(mu_e sqrt(s_q)). The
       shares are fixed when the epoch begins, from what is released, and add up to 1. A feature
       whose cells all merged into one bin has no query.

       Either way every epoch is mu_e-GDP.

    With `pairs`, some epochs also ask, for pairs of features, sums per cell of a pair: a row lies
    in one cell. For classification such a query also sums the curvatures |r| (1 - |r|) of clipped
    residuals, and has the sensitivity c sqrt(1 + (1 - c)^2). For regression it also counts rows,
    each as c / 2, and has c sqrt(1 + 1/4) (`queries.PairResiduals`). It takes its share of the
    epoch's mu_e^2 as every query does. Which pairs are asked, and which are kept, follows from
    earlier releases (`pairs`).

    Rows are few if their number, released in 1, is below a multiple of sqrt(K) / mu. The multiple
    follows from the targets in answer 1. If rows are few, 2 and 3 are done in another way
    (`low_signal`): the histograms get 2 % of mu^2 instead of 12 % (regression: 20 %), and the
    epochs 97 % (regression: 96 %). So which way is taken is a function of answer 1. Either way 2
    and 3 together are sqrt(0.99) mu-GDP (regression: sqrt(0.98) mu-GDP), whatever 1 was, and this
    is what adaptive composition asks of them. So the ledger's parts tell no more than answer 1
    does.

    Everything else is post-processing: merging cells by the noise in them, averaging answers over
    the epochs, smoothing of functions by empirical Bayes. `dprepro.methods.dp_ebm_plus.algorithm`
    has all of it in order, on one page.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget.
    n_epochs : int or None
        E; None means 32, or 64 for targets where rows are few. The noise in their average is about
        the same for any E. More epochs separate the effects of correlated features better. With
        `pairs`, at least 3.
    pairs : int
        Largest number of functions of two features; 0, the default, asks about none. See
        `dprepro.methods.dp_ebm_plus.pairs`: which pairs there are follows from answers, and an
        epoch is as private with pairs as without.
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

    Attributes
    ----------
    ledger_ : Ledger
        Every noisy answer, what was taken as public, and the spent epsilon.
    domain_ : Domain
        The domain used.
    shape_noise_
        Here the posterior standard deviation: noise of privacy and of sampling, less what
        smoothing removes; for regression also the noise in the counts.
    bins_, shape_functions_, bin_counts_, intercept_, pairs_
        See `AdditiveModel`; the counts are noisy and may be published.

    Raises
    ------
    ValueError
        On parameters out of range, no public domain, infinite values, other than two classes, or
        values that the domain rules out.

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
    def fit(self, X: Any, y: Any) -> DPEBMPlusClassifier:
        """Fit to X (n, K) and y (n,) with two distinct labels.

        X can also be a table that is read in chunks: a path, or a dataset of pyarrow. Then y is the
        name of its target column; see `read_training_rows`.
        """
        rows = read_training_rows(self, X, y, self.domain, "binary", in_chunks=True)
        domain = resolve_domain_of(self, rows, "binary")
        shapes, intercept, _ = self._train(rows, domain, LOGISTIC)
        self._set_shapes(shapes, intercept)
        make_all_monotone(self, self.monotone)
        return self


@tagged(poor_score=True)
class DPEBMPlusRegressor(_DPEBMPlus, AdditiveRegressor):
    """Differentially private additive model for regression, more accurate than DP-EBM.

    Targets and predictions are clipped to the domain's target range. Inside, targets are centred at
    its midpoint and divided by its width. Residuals are clipped at a bound: a smaller one saves
    noise and adds bias, and the bound with the smallest expected sum of both is chosen. The counts
    of |y - F| that this goes by also say how wide prediction intervals are (`predict_interval`):
    that is post-processing, and costs nothing. Guarantee, parameters, attributes and errors are
    those of `DPEBMPlusClassifier`.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> DPEBMPlusRegressor:
        """Fit to X (n, K) and targets y (n,).

        X can also be a table that is read in chunks: a path, or a dataset of pyarrow. Then y is the
        name of its target column; see `read_training_rows`.
        """
        rows = read_training_rows(self, X, y, self.domain, "regression", in_chunks=True)
        self._fit(rows, resolve_domain_of(self, rows, "regression"))
        return self

    def _fit(self, rows: Private[FitRows], domain: Domain) -> None:
        lower, upper = target_range(domain)
        width, middle = upper - lower, (lower + upper) / 2
        shapes, intercept, sizes = self._train(rows, domain, SQUARED, width)
        self.range_ = (lower, upper)
        self.residual_sizes_ = None if sizes is None else ResidualSizes.at_levels(sizes)
        self._set_shapes(shapes, middle + intercept)
        make_all_monotone(self, self.monotone)
