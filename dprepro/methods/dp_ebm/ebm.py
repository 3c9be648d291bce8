"""EBM without privacy: Algorithm 1 of Nori et al. (ICML 2021), with bagging and early stopping.

Its bins have about equal counts, which are read from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from dprepro.additive.bins import (
    MISSING,
    FeatureBins,
    category_bins,
    cell_codes,
    largest,
    numeric_bins,
    numeric_values,
)
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor
from dprepro.data.domain import CategoricalFeature, Domain, Feature, TaskKind, category_codes
from dprepro.estimators.inputs import JOBS, SEED_OF_NUMPY, Parametrised, fitting, read_frame
from dprepro.estimators.targets import check_target, read_labels, read_targets
from dprepro.methods.dp_ebm.greedy_kernel import boost_greedily
from dprepro.methods.dp_ebm.losses import LogisticLoss, Loss, SquaredLoss
from dprepro.rows.partition import MAX_BINS, as_codes, count_rows
from dprepro.runtime.arguments import SHARE, Integer, Number
from dprepro.runtime.threads import Threads


def quantile_bins(column: pd.Series, feature: Feature, max_bins: int) -> FeatureBins:
    """Return bins of about equal counts, read from the rows without privacy.

    Numeric: cuts midway between neighbouring distinct values, at every gap if there are at most
    `max_bins` distinct values, else nearest to the quantiles. Categorical: a bin a category; of
    more than `MAX_BINS` the rarest share one.
    """
    missing = bool(column.isna().any())
    if isinstance(feature, CategoricalFeature):
        labels = [*feature.categories, *([MISSING] if missing else [])]
        if len(labels) > MAX_BINS:
            return _frequent_bins(column, feature)
        groups = np.arange(len(feature.categories))
        missing_bin = len(labels) - 1 if missing else -1
        return FeatureBins(feature, np.empty(0), groups, tuple(labels), missing_bin)
    values = numeric_values(column)
    cuts = _quantile_cuts(values[~np.isnan(values)], max_bins - missing)
    return numeric_bins(feature, cuts, cuts.size + 1 if missing else -1)


def _frequent_bins(column: pd.Series, feature: CategoricalFeature) -> FeatureBins:
    size = len(feature.categories) + 1
    cells = cell_codes(category_codes(column, feature.categories), size - 1)
    counts = np.bincount(cells, minlength=size)[: size - 1 + feature.missing]
    bins, _ = category_bins(feature, largest(counts, counts >= 0, MAX_BINS - 1))
    return bins


def _quantile_cuts(values: np.ndarray, max_bins: int) -> np.ndarray:
    ordered = np.sort(values)
    is_new = np.ones(ordered.size, dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    distinct = ordered[is_new]
    if distinct.size > max_bins:
        # What `np.quantile(..., method="inverted_cdf")` picks, without putting the rows in order
        # once more: the first row of which a share q comes no later.
        shares = np.arange(1, max_bins) / max_bins
        chosen = ordered[np.maximum(np.ceil(ordered.size * shares - 1), 0).astype(int)]
        after = np.unique(np.searchsorted(distinct, chosen, side="right"))
        after = after[after < distinct.size]
    else:
        after = np.arange(1, distinct.size)
    # Midpoints can round onto the lower neighbour; the upper one separates just as well.
    middle = distinct[after - 1] / 2 + distinct[after] / 2
    return np.where(middle > distinct[after - 1], middle, distinct[after])


@dataclass(eq=False, repr=False, kw_only=True)
class _EBM(Parametrised, AdditiveModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "max_bins": Integer(2, MAX_BINS), "learning_rate": SHARE, "n_epochs": Integer(1),
        "max_leaves": Integer(1, MAX_BINS), "min_samples_leaf": Integer(1), "ridge": Number(0),
        "outer_bags": Integer(1), "held_out_share": Number(0, 1), "patience": Integer(1),
        "tolerance": Number(0), "n_jobs": JOBS, "random_state": SEED_OF_NUMPY,
    })  # fmt: skip

    max_bins: int = 256
    learning_rate: float = 0.05
    n_epochs: int = 5000
    max_leaves: int = 3
    min_samples_leaf: int = 2
    ridge: float = 0.1
    outer_bags: int = 8
    held_out_share: float = 0.15
    patience: int = 50
    tolerance: float = 1e-4
    n_jobs: int | None = None
    random_state: int | None = None

    def _train(self, frame: pd.DataFrame, targets: np.ndarray, loss: Loss, task: TaskKind) -> None:
        """Bin, boost every bag, and average their shape functions; `targets` as they are read."""
        # Without privacy the domain is whatever the rows show.
        domain = Domain.observe(frame, targets, task)
        if task == "regression":
            check_target(domain, task)
        targets = loss.scaled(targets)
        columns = list(zip(frame.columns, domain.features, strict=True))
        with Threads(self.n_jobs) as threads:
            self.bins_ = threads.map(
                lambda column: quantile_bins(frame[column[0]], column[1], self.max_bins), columns
            )
            codes = np.array(
                threads.map(
                    lambda column: as_codes(column[1].encode(frame[column[0]])),
                    zip(frame.columns, self.bins_, strict=True),
                )
            )
            n_bins = np.array([b.n_bins for b in self.bins_])
            self.bin_counts_ = [
                count_rows(codes[k], n_bins[k]).astype(float) for k in range(len(codes))
            ]
            rng = check_random_state(self.random_state)
            held_out = (self._hold_out(targets, loss, rng) for _ in range(self.outer_bags))
            bags = threads.map(
                lambda rows: self._boost_bag(codes, targets, loss, n_bins, *rows), held_out
            )
        self.n_epochs_ = [epochs for _, epochs in bags]
        mean = np.mean([shapes for shapes, _ in bags], axis=0)
        shapes = [loss.unit * mean[k, : n_bins[k]] for k in range(len(codes))]
        self._set_shapes(shapes, loss.offset + loss.unit * loss.start)

    def _boost_bag(
        self,
        codes: np.ndarray,
        targets: np.ndarray,
        loss: Loss,
        n_bins: np.ndarray,
        train: np.ndarray,
        held: np.ndarray,
    ) -> tuple[np.ndarray, int]:
        counts = np.zeros((len(codes), n_bins.max()))
        inside, outside = np.take(codes, train, axis=1), np.take(codes, held, axis=1)
        for k, row in enumerate(inside):
            counts[k, : n_bins[k]] = count_rows(row, n_bins[k])
        shapes, epochs = boost_greedily(
            inside, targets[train],
            outside, targets[held],
            loss.start, n_bins, counts, self.learning_rate, loss.is_logistic, self.max_leaves,
            self.min_samples_leaf, float(self.ridge), self.n_epochs, self.patience, self.tolerance,
        )  # fmt: skip
        return shapes, int(epochs)

    def _hold_out(
        self, targets: np.ndarray, loss: Loss, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(targets.size)
        wanted = round(self.held_out_share * targets.size)
        labels = loss.strata(targets)
        smallest = targets.size if labels is None else np.bincount(labels).min()
        if wanted < 2 or smallest < 2:
            return rows, rows[:0]
        train, held = train_test_split(rows, test_size=wanted, random_state=rng, stratify=labels)
        return np.sort(train), np.sort(held)


class EBMClassifier(_EBM, AdditiveClassifier):
    """Explainable boosting for binary labels, without privacy.

    Steps are Newton steps (sum of residuals over sum of p(1 - p)), where Algorithm 1 averages the
    residuals: the same direction, in fewer epochs.

    Parameters
    ----------
    max_bins : int
        Largest number of bins of a numeric feature, at most 256. Bins have about equal counts.
    learning_rate, max_leaves, min_samples_leaf
        eta, the number of leaves of each step, and the smallest number of rows in a leaf. With
        early stopping a smaller eta needs more epochs and gives no better model (measured on
        Adult: 0.01 to 0.05).
    ridge : float
        Added to the curvature of each leaf. It bounds the Newton step of a leaf whose rows are
        predicted with near certainty. 0 gives plain averages for regression.
    n_epochs : int
        Largest number of passes over the features.
    outer_bags : int
        Number of models that are averaged, each with its own held-out rows.
    held_out_share, patience, tolerance
        Each bag stops after `patience` epochs in which the loss on its held-out rows has not
        fallen by `tolerance` relatively, and keeps its best epoch. A share of 0 runs all epochs.
    n_jobs : int or None
        Number of threads that boost the bags; -1 means one for each processor. The
        model is the same for any number.
    random_state : int or None
        Chooses the held-out rows.

    Attributes
    ----------
    n_epochs_ : list of int
        The number of epochs kept, for each bag.
    bins_, shape_functions_, bin_counts_, intercept_
        See `AdditiveModel`.

    Raises
    ------
    ValueError
        On parameters out of range, infinite values, or other than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = EBMClassifier(outer_bags=1, random_state=0).fit(X[["mean radius"]], y)
    >>> model.score(X[["mean radius"]], y) > 0.8
    True
    """

    @fitting
    def fit(self, X: Any, y: Any) -> EBMClassifier:
        """Fit to X (n, K) and y (n,) with two distinct labels."""
        frame = read_frame(self, X, reset=True)
        self.classes_, labels = read_labels(self, frame, y)
        share = float(labels.mean())
        loss = LogisticLoss(start=float(np.log(share / (1 - share))))
        self._train(frame, labels, loss, "binary")
        return self


class EBMRegressor(_EBM, AdditiveRegressor):
    """Explainable boosting for regression, without privacy.

    Parameters are those of `EBMClassifier`.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> EBMRegressor:
        """Fit to X (n, K) and targets y (n,)."""
        frame = read_frame(self, X, reset=True)
        y = read_targets(self, frame, y)
        # Float32 scores near 0 keep their digits; large targets would not.
        loss = SquaredLoss.centred(y)
        self._train(frame, y, loss, "regression")
        return self
