"""Every variant of benchmarks/ebm_plus_ablation.py still fits, and leaves something out."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED
from tests.benchmark import program
from tests.ebm_plus.test_algorithm import problem

ablation = program("ebm_plus_ablation")
ALIKE = {"whole", "4 epochs", "16 epochs", "64 epochs"}
"""Variants that nothing is replaced in: parameters of the method."""


def fitted(name: str) -> list[np.ndarray]:
    """Return functions of labels, rare labels, numbers, and of few rows, learned with one seed."""
    shapes: list[np.ndarray] = []
    cases = ((LOGISTIC, 1, 0.9), (LOGISTIC, 20, 0.9), (SQUARED, 1, 0.9), (LOGISTIC, 1, 0.05))
    for loss, kept, epsilon in cases:
        X, y, domain = problem(loss)
        y = y * (np.arange(y.size) % kept == 0)
        estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
        with ablation.VARIANTS[name]():
            model = estimator(epsilon, 1e-6, n_epochs=4, domain=domain, random_state=1).fit(X, y)
        shapes += model.shape_functions_
    return shapes


@pytest.mark.parametrize("name", [n for n in ablation.VARIANTS if not n.startswith("DP-EBM")])
def test_a_variant_changes_what_is_learned(name: str) -> None:
    whole, other = fitted("whole"), fitted(name)
    same = [a.shape == b.shape and np.array_equal(a, b) for a, b in zip(whole, other, strict=True)]
    assert all(same) == (name in ALIKE)
