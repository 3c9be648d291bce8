"""Every variant of benchmarks/ebm_plus_ablation.py still fits, and leaves something out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import CodedResiduals, Histogram, Totals
from dprepro.privacy.query import Query
from tests.benchmark import program
from tests.methods.dp_ebm_plus.test_algorithm import problem

ablation = program("ebm_plus_ablation")
ALIKE = {"whole", "4 epochs", "16 epochs", "64 epochs"}
"""Variants that nothing is replaced in: parameters of the method."""

CASES = {
    "labels": (LOGISTIC, 1, 1, 0.9),
    "rare labels": (LOGISTIC, 10, 20, 0.3),
    "numbers": (SQUARED, 1, 1, 0.9),
    "few labels": (LOGISTIC, 1, 1, 0.05),
    "few numbers": (SQUARED, 1, 1, 0.05),
}
"""A loss, how many times the rows are there, one in how many positive labels is kept, and epsilon:
of a small one rows are few."""

ONLY = {
    "few rows: bins apart": {"few labels", "few numbers"},
    "few rows: the bound as elsewhere": {"few labels"},
    "labels: one feature after another": {"labels", "rare labels", "few labels"},
    "many rows: bins apart": {"labels", "rare labels", "numbers"},
    "codes not counted from their mean": {*CASES},
    "noise in histograms": {*CASES},
    "noise in sums of residuals": {*CASES},
}
"""Where these variants change something; elsewhere they must not."""


def fitted(name: str) -> dict[str, list[np.ndarray]]:
    """Return the functions of each of `CASES`, learned with one seed."""
    shapes = {}
    for case, (loss, times, kept, epsilon) in CASES.items():
        X, y, domain = problem(loss)
        X, y = pd.concat(times * [X], ignore_index=True), np.tile(y, times)
        y = y * (np.arange(y.size) % kept == 0)
        estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
        with ablation.VARIANTS[name]():
            model = estimator(epsilon, 1e-6, n_epochs=4, domain=domain, random_state=1).fit(X, y)
        shapes[case] = model.shape_functions_
    return shapes


@pytest.mark.parametrize("name", [n for n in ablation.VARIANTS if not n.startswith("DP-EBM")])
def test_a_variant_changes_what_is_learned(name: str) -> None:
    whole, other = fitted("whole"), fitted(name)
    changed = {case for case in CASES if not is_same(whole[case], other[case])}
    assert bool(changed) == (name not in ALIKE)
    assert changed == ONLY.get(name, changed)


def is_same(ours: list[np.ndarray], others: list[np.ndarray]) -> bool:
    pairs = zip(ours, others, strict=True)
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("kinds", [*combinations((Totals, Histogram, CodedResiduals), 2)])
def test_only_the_queries_that_are_named_lose_their_noise(kinds: tuple[type[Query], ...]) -> None:
    X, y, domain = problem(LOGISTIC)

    def fit(seed: int, *exact: type[Query]) -> list[np.ndarray]:
        with ablation.exactly(*exact):
            model = DPEBMPlusClassifier(0.9, n_epochs=2, domain=domain, random_state=seed)
            return model.fit(X, y).shape_functions_

    assert not is_same(fit(1, *kinds), fit(2, *kinds))
    with_all = (Totals, Histogram, CodedResiduals)
    assert is_same(fit(1, *with_all), fit(2, *with_all))


def test_what_is_not_there_is_not_replaced() -> None:
    """Else a variant would silently be the whole method. An attribute must be the class's own."""
    for owner, name in ((ablation.low_signal, "_NOISE"), (ablation.LowSignalBooster, "_stride")):
        with pytest.raises(KeyError, match=name), ablation.replaced(owner, name, 1.0):
            pass
