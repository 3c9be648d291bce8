"""DP-EBM+: an additive model from few, large, smoothed steps. Ours, not a paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from dprepro.additive.bins import FeatureBins, recode
from dprepro.additive.editing import check_directions, make_all_monotone
from dprepro.additive.exact_sums import exact_sum
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor
from dprepro.data.domain import Domain, NumericFeature
from dprepro.ebm_plus.booster import BatchBooster, Function
from dprepro.ebm_plus.clipping import typical_deviation
from dprepro.ebm_plus.grid import cell_extents, fine_cells, merge_fine
from dprepro.ebm_plus.groups import GROUP, agreeing_counts, exact_answers, sum_deviations
from dprepro.estimators.inputs import read_frame, read_targets, resolve_domain
from dprepro.estimators.validation import check_integer
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import check_epsilon_delta, epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import (
    ADD_REMOVE,
    Sensitivity,
    histogram_sensitivity,
    leaf_sum_sensitivity,
)

START_SHARE = 0.01
BINNING_SHARE = {True: 0.12, False: 0.2}
"""Shares of mu^2: number of rows and sum of targets; histograms, for labels (True) or numbers. The
rest goes to the epochs."""

_SEEN = {True: 3.0, False: 2.0}
"""Deviations of noise that a numeric bin is to hold, for labels (True) and for numbers."""

_EXPECTED, _STANDING_OUT = 4.0, 0.5
"""Rows of the rarer label that a numeric bin is to hold, and deviations of the noise in its sum of
labels: fewer tell nothing of it."""


class _DPEBMPlus(AdditiveModel):
    """Parameters and training that the classifier and the regressor share."""

    domain_: Domain
    ledger_: Ledger

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_epochs: int = 16,
        monotone: Mapping[str, str] | None = None,
        domain: Domain | None = None,
        observed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_epochs = n_epochs
        self.monotone = monotone
        self.domain = domain
        self.observed = observed
        self.random_state = random_state

    def _train(
        self, frame: pd.DataFrame, targets: np.ndarray, domain: Domain, *, logistic: bool
    ) -> tuple[list[Function], float]:
        """Return the functions and the intercept in units of `targets`: 0/1, or [-1/2, 1/2]."""
        self.domain_ = domain
        self.ledger_ = self._open_ledger(domain)
        source = NoiseSource(self.ledger_, self.random_state)
        rows, start, typical = self._release_totals(source, targets, logistic)
        histograms = self._release_histograms(source, frame, domain, BINNING_SHARE[logistic])
        share = 1 - START_SHARE - BINNING_SHARE[logistic]
        labels = max(_EXPECTED, _STANDING_OUT * math.sqrt(len(domain.features)) / self._mu(share))
        fewest = labels / expit(-abs(start)) if logistic else 0.0
        functions = self._merge(domain, *histograms, rows, _SEEN[logistic], fewest)
        multiplier = math.sqrt(self.n_epochs) / self._mu(share)
        booster = BatchBooster(
            targets, [function for function in functions if function.counts.size > 1],
            rows=rows, start=start, typical=typical, deviation=multiplier, logistic=logistic,
        )  # fmt: skip
        noise = source.gaussian(
            (self.n_epochs, booster.noise_size()),
            releases="an epoch: sums of clipped residuals"
            + (" and of their curvatures" if logistic else "")
            + " for each bin of each feature and for all rows, in units of their sensitivity"
            + ("" if logistic else "; counts of residuals by size")
            + "; weighted so that together they have sensitivity 1",
            noise_multiplier=multiplier,
            sensitivity=leaf_sum_sensitivity(ADD_REMOVE, 1.0),
            uses=self.n_epochs,
            budget=self._budget(share),
        )
        booster.learn(noise)
        return functions, float(booster.intercept.values[0])

    def _release_totals(
        self, source: NoiseSource, targets: np.ndarray, logistic: bool
    ) -> tuple[float, float, float]:
        """Return about how many rows there are, where the intercept starts, and how targets spread.

        A row adds (1, t, t^2), |t| <= 1/2, to the number of rows and two sums (see `exact_sum`):
        sensitivity sqrt(1 + 1/4 + 1/16). The last is not asked for labels: sqrt(1 + 1/4).
        """
        centred = targets.astype(np.float64) - (0.5 if logistic else 0.0)
        powers = 1 if logistic else 2
        noise = source.gaussian(
            (1 + powers,),
            releases="number of rows, and sum of the targets in units of their range, centred"
            + ("" if logistic else ", and of their squares"),
            noise_multiplier=1 / self._mu(START_SHARE),
            sensitivity=Sensitivity(math.sqrt(sum(0.25**k for k in range(powers + 1))), 1.0),
            uses=1,
            budget=self._budget(START_SHARE),
        )
        deviation = source.ledger.entries[-1].scale
        rows = max(len(targets) + noise[0], deviation, 10.0)
        total = exact_sum(centred) + noise[1]
        if logistic:
            least = max(min(0.5, deviation / rows), 1e-4)
            share = min(max(total / rows + 0.5, least), 1 - least)
            return rows, math.log(share / (1 - share)), 0.5
        # A mean that is lost in the noise is that of the range: 1/4 is its deviation a priori.
        average = float(total / rows / (1 + (deviation / rows / 0.25) ** 2))
        square = exact_sum(centred**2) + noise[2]
        return rows, average, typical_deviation(square / rows - average**2, deviation / rows)

    def _release_histograms(
        self, source: NoiseSource, frame: pd.DataFrame, domain: Domain, share: float
    ) -> tuple[list[np.ndarray], list[np.ndarray], float]:
        """Return each row's cell, each feature's noisy `exact_answers`, and the noise in each."""
        cells, exact = [], []
        for name, feature in zip(frame.columns, domain.features, strict=True):
            own, counts = fine_cells(frame[name], feature)
            cells.append(own)
            exact.append(exact_answers(feature, counts))
        sizes = [answers.size for answers in exact]
        noise = source.gaussian(
            (sum(sizes),),
            releases="rows per cell of each feature's histogram, for numbers also per group of "
            f"{GROUP} cells, then over sqrt(2) but for missing values",
            noise_multiplier=math.sqrt(len(cells)) / self._mu(share),
            sensitivity=histogram_sensitivity(ADD_REMOVE),
            uses=len(cells),
            budget=self._budget(share),
        )
        parts = np.split(noise, np.cumsum(sizes)[:-1])
        noisy = [answers + added for answers, added in zip(exact, parts, strict=True)]
        return cells, noisy, source.ledger.entries[-1].scale

    def _merge(
        self,
        domain: Domain,
        cells: list[np.ndarray],
        noisy: list[np.ndarray],
        deviation: float,
        rows: float,
        seen: float,
        fewest: float,
    ) -> list[Function]:
        """Set ``bins_`` and ``bin_counts_``; return a function of zeros for each feature."""
        self.bins_: list[FeatureBins] = []
        self.bin_counts_: list[np.ndarray] = []
        functions = []
        for feature, own, answers in zip(domain.features, cells, noisy, strict=True):
            counts, error = agreeing_counts(feature, answers, deviation)
            bins, bin_counts, bin_of_cell = merge_fine(
                feature, counts, error, rows, seen=seen, fewest=fewest
            )
            codes = np.empty(own.size, dtype=np.uint8)
            recode(own, bin_of_cell, np.arange(own.size), codes)
            self.bins_.append(bins)
            self.bin_counts_.append(bin_counts)
            uncertainty = sum_deviations(feature, bin_of_cell, bins.n_bins, error)
            extents = np.bincount(bin_of_cell, cell_extents(feature), bins.n_bins)
            ordered = isinstance(feature, NumericFeature)
            functions.append(Function(codes, bin_counts, uncertainty, extents, ordered=ordered))
        return functions

    def _mu(self, share: float) -> float:
        return mu_of(self.epsilon, self.delta) * math.sqrt(share)

    def _budget(self, share: float) -> PrivacyBudget:
        return PrivacyBudget(epsilon_of(self._mu(share), self.delta), self.delta)

    def _open_ledger(self, domain: Domain) -> Ledger:
        return Ledger(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=ADD_REMOVE,
            unpaid=list(domain.observed),
            assumed_public=[
                "names, types and number of features",
                *(["bounds, categories and target range or labels"] if domain.is_public else []),
                "that two rows at least are there"
                + ("" if domain.is_public else ", and both labels of a classification"),
            ],
        )

    def check_parameters(self) -> None:
        """Raise ValueError on parameters out of range."""
        check_epsilon_delta(self.epsilon, self.delta)
        check_integer("n_epochs", self.n_epochs, 1)
        check_directions(self.monotone)
        if not self.observed and (self.domain is None or not self.domain.is_public):
            raise ValueError(
                f"{type(self).__name__} does not guess bounds: pass domain=Domain(...) with what "
                "is public about the table (a card's `features`, or `domain: public` in a config). "
                "observed=True reads it from the rows, unpaid for: to experiment only"
            )


class DPEBMPlusClassifier(_DPEBMPlus, AdditiveClassifier):
    """Differentially private additive model for binary labels, more accurate than DP-EBM.

    How much, and where not: ``docs/dp-ebm-plus.md``.

    Formal guarantee: (epsilon, delta)-DP under add/remove-one, given a public domain. The number
    of rows is used as released only. With mu = mu(epsilon, delta), every release is Gaussian with
    noise over sensitivity 1/mu_j, whatever was released before, and the mu_j^2 add up to mu^2, so
    the composition is mu-GDP (Theorems 4 and 5 of Nori et al. 2021, after Dong, Roth, Su 2019):

    1. Number of rows and sum of centred targets, for numbers that of their squares too: a row adds
       (1, t) or (1, t, t^2), |t| <= 1/2.
    2. Counts per cell of a public grid for each feature (`fine_grid`), for numbers also per group
       of neighbouring cells (`grouped_counts`): a row adds a vector of norm 1 to each of the K
       histograms.
    3. E epochs. In each, for one feature after another, sums of residuals per bin. A row's residual
       is clipped to [-c, c] and goes into one bin, so a query has sensitivity c, and c follows from
       what is released. For labels it is the largest |y - sigmoid(F)| that F allows to any row when
       the epoch begins. F then moves, and some residuals pass c: in the first epoch 12 % of the
       rows of Phishing in an average query and 44 % in one, 4 % and 24 % of Adult, later none
       (epsilon 0.5 to 8). The same query sums curvatures, |r| (1 - |r|) for a residual r, p (1 - p)
       if it is not clipped: a part has the norm |r| sqrt(1 + (1 - |r|)^2) <= c sqrt(1 + (1 - c)^2)
       <= 1, so that the second answer is nearly free. For numbers, c comes from a noisy histogram
       of |y - F|, to which a row adds 1 in one cell, itself a query of the epoch. Query q has a
       share s_q of the epoch's mu_e^2: its noise over its sensitivity is 1/(mu_e sqrt(s_q)). The
       shares are fixed when the epoch begins, from what is released, and add up to 1, so that every
       epoch is mu_e-GDP. Features whose cells all merged into one bin are not asked.

    Everything else is post-processing: merging cells by the noise in them, averaging answers over
    the epochs, smoothing of functions by empirical Bayes (`batch_boosting`, `smoothing`).

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_epochs : int
        E. The noise in their average is the same for any E; more tell features better apart.
    monotone : dict of str or None
        As `DPEBMClassifier`: numeric features to make "increasing" or "decreasing" after the fit.
    domain : Domain
        The public domain. Bounds are never guessed.
    observed : bool
        True accepts a domain that was read from private rows, or reads it itself where `domain` is
        None. That is not paid for, and the ledger says so: to experiment only.
    random_state : int or None
        None draws noise from the operating system. An integer makes the fit repeatable, for
        experiments only: the ledger says so.

    Attributes
    ----------
    ledger_ : Ledger
        Every noisy release, what was taken as public, and the epsilon really spent.
    domain_ : Domain
        The domain used.
    shape_noise_
        Here the standard deviation a posteriori: noise of privacy and of sampling, less what
        smoothing takes out.
    bins_, shape_functions_, bin_counts_, intercept_
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

    def fit(self, X: Any, y: Any) -> DPEBMPlusClassifier:
        """Fit to X (n, K) and y (n,) with two distinct labels."""
        frame = read_frame(self, X, reset=True)
        labels = self._read_labels(frame, y, self.domain)
        self.check_parameters()
        domain = resolve_domain(self, frame, self.classes_[labels.astype(int)], "binary")
        functions, intercept = self._train(frame, labels, domain, logistic=True)
        self.shape_noise_ = [function.deviations for function in functions]
        self._set_shapes([function.values for function in functions], intercept)
        make_all_monotone(self, self.monotone)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class DPEBMPlusRegressor(_DPEBMPlus, AdditiveRegressor):
    """Differentially private additive model for numbers, more accurate than DP-EBM.

    Targets are clipped to the domain's target range, learned in units of it from its midpoint, and
    predictions are clipped to it. Residuals are clipped where the noise that this saves and the
    pull towards the middle that it brings are least together. Guarantee, parameters, attributes and
    errors are those of `DPEBMPlusClassifier`.
    """

    def fit(self, X: Any, y: Any) -> DPEBMPlusRegressor:
        """Fit to X (n, K) and numbers y (n,)."""
        frame = read_frame(self, X, reset=True)
        y = read_targets(self, frame, y)
        self.check_parameters()
        domain = resolve_domain(self, frame, y, "regression")
        lower, upper = (float(bound) for bound in domain.target)
        width, middle = upper - lower, (lower + upper) / 2
        if not (0 < width < math.inf and math.isfinite(middle)):
            raise ValueError(
                "the target's range is empty or not finite: with more than n_samples=1 distinct "
                "value or public target bounds there is something to learn"
            )
        # Clipped again, since the division rounds: a target beyond 1/2 would cost more than paid.
        targets = np.clip((np.clip(y, lower, upper) - middle) / width, -0.5, 0.5).astype(np.float32)
        functions, intercept = self._train(frame, targets, domain, logistic=False)
        self.shape_noise_ = [width * function.deviations for function in functions]
        self.range_ = (lower, upper)
        shapes = [width * function.values for function in functions]
        self._set_shapes(shapes, middle + width * intercept)
        make_all_monotone(self, self.monotone)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
