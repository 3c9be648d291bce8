"""What is fitted, and by whom: the same rows, domain, budget and work for both libraries."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from dprepro.data.dataset import load
from dprepro.data.domain import Domain, NumericFeature
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier

LIBRARIES = ("dprepro", "interpret-core")
EPSILON, DELTA = 1.0, 1e-6


@dataclass(frozen=True)
class Problem:
    """Training rows X (n, K) with labels y (n,), and their domain, read beforehand."""

    name: str
    X: pd.DataFrame
    y: np.ndarray

    @cached_property
    def domain(self) -> Domain:
        return Domain.observe(self.X, self.y, "binary")

    def row_steps(self, epochs: int) -> int:
        """Rows x features x epochs: what the kernel has to go through."""
        return self.X.size * epochs

    def small(self) -> Problem:
        """A few hundred rows of both classes, to warm up."""
        rows = np.r_[np.flatnonzero(self.y == 0)[:400], np.flatnonzero(self.y == 1)[:400]]
        return Problem(self.name, self.X.iloc[rows].reset_index(drop=True), self.y[rows])


def real(name: str, data_dir: Path | None) -> Problem:
    """Return the first training split (80 %) of a dataset."""
    dataset = load(name, data_dir)
    rows, _ = split_rows(len(dataset.y), 0.2, 0, name, 0)
    return Problem(name, dataset.X.iloc[rows].reset_index(drop=True), dataset.y[rows])


def synthetic(rows: int, features: int) -> Problem:
    """Return standard normal features and labels of which half depend on them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((features, rows)).T  # a block of memory a feature, as in any frame
    y = (rng.random(rows) < expit(np.sin(2 * X[:, 0]) + X[:, 1])).astype(np.int64)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(features)], copy=False)
    return Problem(f"synthetic {rows:,} x {features}", frame, y)


def from_spec(spec: str, data_dir: Path | None) -> Problem:
    """Return the problem of ``"adult"`` (a dataset) or of ``"1000x5"`` (rows x features)."""
    rows, _, features = spec.partition("x")
    if rows.isdigit() and features.isdigit():
        return synthetic(int(rows), int(features))
    return real(spec, data_dir)


def dp_ebm(library: str, problem: Problem, seed: int, epochs: int = 300, **options: Any) -> Any:
    """Return an unfitted DP-EBM (GDP) of either library, with equal settings."""
    if library == "dprepro":
        return DPEBMClassifier(
            EPSILON, DELTA, domain=problem.domain, n_epochs=epochs, random_state=seed, **options
        )
    from interpret.privacy import DPExplainableBoostingClassifier

    features = problem.domain.features
    numeric = [isinstance(feature, NumericFeature) for feature in features]
    return DPExplainableBoostingClassifier(
        feature_types=["continuous" if is_numeric else "nominal" for is_numeric in numeric],
        privacy_bounds={k: (f.lower, f.upper) for k, f in enumerate(features) if numeric[k]},
        max_bins=33,  # it bins with one less than it is told: 32, as here
        max_rounds=epochs,
        n_jobs=1,
        epsilon=EPSILON,
        delta=DELTA,
        random_state=seed,
        **options,
    )


def plain_ebm(library: str, seed: int) -> Any:
    """Return an unfitted EBM without privacy of either library, as each is by default."""
    if library == "dprepro":
        return EBMClassifier(random_state=seed)
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=seed)


def fit_quietly(model: Any, problem: Problem) -> Any:
    """Fit; the warnings about seeds and bounds are expected here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(problem.X, problem.y)
