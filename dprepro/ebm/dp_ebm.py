"""DP-EBM: Algorithm 2 of Nori, Caruana, Bu, Shen, Kulkarni (ICML 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dprepro.additive.bins import MAX_BINS, FeatureBins, recode
from dprepro.additive.editing import check_directions, make_all_monotone
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor
from dprepro.additive.shapes import noise_deviation
from dprepro.data.domain import Domain
from dprepro.ebm.binning import histogram, merge_cells
from dprepro.ebm.cuts import random_cuts
from dprepro.ebm.kernel import boost
from dprepro.estimators.inputs import read_frame, read_targets, resolve_domain
from dprepro.estimators.validation import check_choice, check_integer, check_share
from dprepro.privacy.composition import TwoPhaseNoise, calibrate_two_phases
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import (
    ADD_REMOVE,
    ZERO_OUT,
    Adjacency,
    histogram_sensitivity,
    leaf_sum_sensitivity,
)

SENSITIVITIES = ("published", "sound")


class _DPEBM(AdditiveModel):
    """Parameters and training that the classifier and the regressor share."""

    domain_: Domain
    ledger_: Ledger
    shape_noise_: list[np.ndarray]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        composition: str = "gdp",
        max_bins: int = 32,
        learning_rate: float = 0.01,
        n_epochs: int = 300,
        max_leaves: int = 3,
        binning_share: float = 0.1,
        sensitivity: str = "published",
        adjacency: str = ZERO_OUT.value,
        monotone: Mapping[str, str] | None = None,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.composition = composition
        self.max_bins = max_bins
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.max_leaves = max_leaves
        self.binning_share = binning_share
        self.sensitivity = sensitivity
        self.adjacency = adjacency
        self.monotone = monotone
        self.domain = domain
        self.random_state = random_state

    def _train(
        self,
        frame: pd.DataFrame,
        targets: np.ndarray,
        domain: Domain,
        *,
        logistic: bool,
        clip: float = math.inf,
    ) -> np.ndarray:
        """Bin and boost; return the shape functions (K, B) in units of `targets` (float32 (n,)).

        `clip` bounds the residuals. Where it does not, 1 is what the paper takes as their bound.
        """
        n_features = frame.shape[1]
        noise = calibrate_two_phases(
            self.composition,
            self.epsilon,
            self.delta,
            binning_queries=n_features,
            boosting_queries=n_features * self.n_epochs,
            binning_share=self.binning_share,
        )
        self.domain_ = domain
        self.ledger_ = self._open_ledger(domain)
        source = NoiseSource(self.ledger_, self.random_state)
        adaptive = logistic and self.sensitivity == "sound"
        # The kernel's fast pass wants each label's rows in one piece.
        order = np.argsort(targets > 0, kind="stable") if logistic else np.arange(len(targets))
        codes = self._bin(frame, domain, source, noise, order)
        n_bins = np.array([bins.n_bins for bins in self.bins_])
        cuts = random_cuts(source.public_generator, n_bins, self.n_epochs, self.max_leaves)
        leaf_noise = source.gaussian(
            (len(cuts), self.max_leaves),
            releases="learning rate x sum of residuals of each leaf, in units of the label range"
            + (": noise and sensitivity times the largest residual then possible" * adaptive),
            noise_multiplier=noise.boosting,
            sensitivity=leaf_sum_sensitivity(self.adjacency, min(clip, 1.0)) * self.learning_rate,
            uses=len(cuts),
            budget=noise.boosting_budget,
        )
        counts = np.zeros((n_features, n_bins.max()))
        for k, bin_counts in enumerate(self.bin_counts_):
            counts[k, : n_bins[k]] = bin_counts
        scores = np.zeros(len(frame), dtype=np.float32)
        shapes, factors = boost(
            codes, targets[order], scores, cuts, leaf_noise, counts, n_bins,
            self.learning_rate, logistic, np.float32(clip), adaptive,
        )  # fmt: skip
        scales = self.ledger_.entries[-1].scale * factors
        self.shape_noise_ = [
            noise_deviation(
                cuts[k::n_features, : self.max_leaves - 1], scales[k::n_features], bin_counts
            )
            for k, bin_counts in enumerate(self.bin_counts_)
        ]
        return shapes

    def _bin(
        self,
        frame: pd.DataFrame,
        domain: Domain,
        source: NoiseSource,
        noise: TwoPhaseNoise,
        order: np.ndarray,
    ) -> np.ndarray:
        """Set ``bins_`` and ``bin_counts_`` (line 7); return codes, uint8 (K, n), in `order`."""
        columns = [frame[name] for name in frame.columns]
        histograms = [
            histogram(column, feature, self.max_bins)
            for column, feature in zip(columns, domain.features, strict=True)
        ]
        flat_noise = source.gaussian(
            (sum(counts.size for _, counts in histograms),),
            releases="rows per cell of each feature's histogram",
            noise_multiplier=noise.binning,
            sensitivity=histogram_sensitivity(self.adjacency),
            uses=len(histograms),
            budget=noise.binning_budget,
        )
        starts = np.cumsum([counts.size for _, counts in histograms])[:-1]
        noisy_counts = [
            counts + added
            for (_, counts), added in zip(histograms, np.split(flat_noise, starts), strict=True)
        ]
        n_rows = self._public_number_of_rows(len(frame), noisy_counts)
        codes = np.empty((len(columns), len(frame)), dtype=np.uint8)
        self.bins_: list[FeatureBins] = []
        self.bin_counts_ = []
        for k, (cells, _) in enumerate(histograms):
            bins, bin_counts, bin_of_cell = merge_cells(
                domain.features[k], noisy_counts[k], n_rows / self.max_bins, self.max_bins
            )
            recode(cells, bin_of_cell, order, codes[k])
            self.bins_.append(bins)
            self.bin_counts_.append(bin_counts)
        return codes

    def _public_number_of_rows(self, n_rows: int, noisy_counts: list[np.ndarray]) -> float:
        """Return n where it is public; else the mean of the histograms' noisy totals."""
        if self.adjacency != ADD_REMOVE:
            return n_rows
        return max(1.0, float(np.mean([noisy.sum() for noisy in noisy_counts])))

    def _open_ledger(self, domain: Domain) -> Ledger:
        return Ledger(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=Adjacency(self.adjacency),
            unpaid=list(domain.observed),
            assumed_public=[
                "number of rows"
                if self.adjacency != ADD_REMOVE
                else "that two rows at least are there",
                "names, types and number of features",
                *(["bounds, categories and target range or labels"] if domain.is_public else []),
            ],
        )

    def check_parameters(self) -> None:
        """Raise ValueError on parameters out of range."""
        check_integer("max_bins", self.max_bins, 1, MAX_BINS)
        check_integer("n_epochs", self.n_epochs, 1)
        check_integer("max_leaves", self.max_leaves, 1, MAX_BINS)
        check_share("learning_rate", self.learning_rate)
        Adjacency(self.adjacency)
        check_choice("sensitivity", self.sensitivity, SENSITIVITIES)
        check_directions(self.monotone)


class DPEBMClassifier(_DPEBM, AdditiveClassifier):
    """Differentially private explainable boosting for binary labels.

    Formal guarantee: (epsilon, delta)-DP under the stated adjacency, given a public domain. A row
    lies in one cell of each histogram and adds a residual y - sigmoid(F(x)) in [-1, 1] to one leaf
    of each step, so every one of the K + K E releases has L2 sensitivity 1 (times the learning
    rate) under zero-out; `dprepro.privacy.sensitivity` has the other relations. With
    ``sensitivity="sound"`` the noise of a step shrinks with the largest residual that the functions
    released so far allow to any row: at every step, whatever was released before, noise over
    sensitivity is the same, so the composition is the same.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    composition : {"gdp", "classic", "classic-boosting", "joint"}
        How the noise is calibrated: Theorem 5 or Theorem 2 of the paper for each phase, Theorem 5
        for binning and 2 for boosting, or Theorem 5 once for both, which needs the least noise.
    max_bins : int
        Numeric features start from ``2 * max_bins`` cells; bins aim at n / max_bins rows.
    learning_rate, n_epochs, max_leaves
        eta, E, and the leaves (random cuts plus one) of each step.
    binning_share : float
        Share of epsilon that goes to the histograms; delta is halved.
    sensitivity : {"published", "sound"}
        What scales the noise of the leaf sums: the paper's bound, or the one described above (for
        regression see `DPEBMRegressor`).
    adjacency : {"zero-out", "add/remove-one", "replace-one"}
        Who counts as a neighbour. Zero-out is add/remove-one with the number of rows public.
    monotone : dict of str or None
        Features whose functions are made "increasing" or "decreasing" after the fit, for free; see
        `dprepro.additive.editing`.
    domain : Domain or None
        The public domain. None reads it from the training rows and warns.
    random_state : int or None
        None draws noise from the operating system. An integer makes the fit repeatable, for
        experiments only: the ledger says so.

    Attributes
    ----------
    ledger_ : Ledger
        Every noisy release, what was taken as public, and the epsilon really spent.
    domain_ : Domain
        The domain used.
    bins_, shape_functions_, shape_noise_, bin_counts_, intercept_
        See `AdditiveModel`; the counts are noisy and may be published.

    Raises
    ------
    ValueError
        On parameters out of range, infinite values, or values and labels that the domain rules
        out; without a public domain on other than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> domain = Domain((NumericFeature("mean radius", 0, 40),
    ...                  NumericFeature("mean texture", 0, 50)), ("malignant", "benign"))
    >>> model = DPEBMClassifier(epsilon=4, domain=domain, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    def fit(self, X: Any, y: Any) -> DPEBMClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes.

        Without a public domain both labels have to occur.
        """
        frame = read_frame(self, X, reset=True)
        labels = self._read_labels(frame, y, self.domain)
        self.check_parameters()
        domain = resolve_domain(self, frame, self.classes_[labels.astype(int)], "binary")
        shapes = self._train(frame, labels, domain, logistic=True)
        self._set_shapes([s[: b.n_bins] for s, b in zip(shapes, self.bins_, strict=True)], 0.0)
        make_all_monotone(self, self.monotone)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class DPEBMRegressor(_DPEBM, AdditiveRegressor):
    """Differentially private explainable boosting for numbers.

    ``sensitivity="published"`` has the paper's gap: Theorem 6 bounds a row's part in a leaf sum by
    the label range R, but the part is y - F(x), and neither y (not centred) nor F is bounded by R.
    The noise has the published size; the ledger names the gap.

    ``sensitivity="sound"`` starts from the midpoint of the public target range [a, b] and clips
    residuals to +-R/2, so that no row can move a leaf sum by more than R/2: the guarantee holds,
    with half the noise, at the price of a Huber-like bias where |y - F(x)| > R/2. Predictions are
    clipped to [a, b].

    Parameters, attributes and errors are those of `DPEBMClassifier`. Targets are clipped to the
    domain's target range.

    Examples
    --------
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X = np.random.default_rng(0).uniform(size=(5_000, 1))
    >>> domain = Domain((NumericFeature("x", 0, 1),), target=(0, 1))
    >>> model = DPEBMRegressor(sensitivity="sound", domain=domain, random_state=0).fit(X, X[:, 0])
    >>> model.score(X, X[:, 0]) > 0.8
    True
    """

    def fit(self, X: Any, y: Any) -> DPEBMRegressor:
        """Fit to X (n, K) and numbers y (n,)."""
        frame = read_frame(self, X, reset=True)
        y = read_targets(self, frame, y)
        self.check_parameters()
        domain = resolve_domain(self, frame, y, "regression")
        lower, upper = (float(bound) for bound in domain.target)
        width = upper - lower
        if not width > 0:
            raise ValueError(
                "the target's range is empty or not finite: with more than n_samples=1 distinct "
                "value or public target bounds there is something to learn"
            )
        sound = self.sensitivity == "sound"
        start, clip = ((lower + upper) / 2, 0.5) if sound else (0.0, math.inf)
        targets = ((np.clip(y, lower, upper) - start) / width).astype(np.float32)
        shapes = width * self._train(frame, targets, domain, logistic=False, clip=clip)
        self.shape_noise_ = [width * deviation for deviation in self.shape_noise_]
        self.range_ = (lower, upper) if sound else None
        if not sound:
            self.ledger_.gaps.append(
                "residuals y - F(x) are not bounded by the label range R that scales the noise "
                "(Theorem 6 holds for label DP only)"
            )
        self._set_shapes([s[: b.n_bins] for s, b in zip(shapes, self.bins_, strict=True)], start)
        make_all_monotone(self, self.monotone)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
