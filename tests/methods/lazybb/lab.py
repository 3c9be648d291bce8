"""Rows for LazyBB, their curators, and the exact learner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.methods.lazybb.calibration import Budget
from dprepro.methods.lazybb.curator import BooleanRows, ExactCurator, Hypothesis, LazyBBCurator
from dprepro.methods.lazybb.learners import boost, make_learner
from dprepro.methods.lazybb.queries import Literals
from dprepro.methods.lazybb.weights import Weighing
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.sensitivity import REPLACE_ONE


def budget(**changed: Any) -> Budget:
    fields = {"epsilon": 1.0, "delta": 1e-5, "composition": "pure", "calibration": "tight"}
    return Budget(**{**fields, "rounds": 20, "density": 0.25, **changed})


def rows_of(X: np.ndarray, signs: np.ndarray) -> Private[BooleanRows]:
    return Private(BooleanRows(Literals(X), signs))


def curator(
    X: np.ndarray, signs: np.ndarray, *, density: float = 0.25, seed: int | None = 0,
    gaps: tuple[str, ...] = (), epsilon: float = 1.0, delta: float = 0.0, **settings: Any,
) -> LazyBBCurator:  # fmt: skip
    ledger = Ledger(epsilon, delta, REPLACE_ONE, gaps=list(gaps))
    return LazyBBCurator(rows_of(X, signs), Weighing(0.4, density), ledger, seed, (), **settings)


def exact(
    X: np.ndarray, signs: np.ndarray, weighing: Weighing, rounds: int, splits: int = 0
) -> tuple[list[Hypothesis], ExactCurator]:
    """Return the hypotheses of the exact learner, and the curator that it asked."""
    made = ExactCurator(rows_of(X, signs), weighing, diagnostics=True)
    spends = budget(epsilon=math.inf, rounds=rounds, density=weighing.density)
    return boost(made, make_learner(made, spends, splits, 0.5), rounds), made
