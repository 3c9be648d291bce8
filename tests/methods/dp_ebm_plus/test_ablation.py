"""Every variant of benchmarks/ebm_plus_ablation.py still fits, and leaves something out."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from dprepro.data.dataset import Dataset
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import CodedHistogram, CodedResiduals, Totals
from dprepro.privacy.query import Query
from tests.benchmark import program
from tests.methods.dp_ebm_plus.test_algorithm import problem

ablation = program("ebm_plus_ablation")
ONLY = {
    "as it is": set(),
    "no wait": {"regression"},
    "no middle": {"regression"},
    "clipped at 0.5": {"binary"},
    "clipped at 1": {"binary"},
}
"""The tasks in which these variants change something; others do in both."""


@cache
def fitted(name: str, task: str) -> list[np.ndarray]:
    """Return the functions and the intercept, learned with one seed."""
    X, y, domain = problem(LOGISTIC if task == "binary" else SQUARED)
    dataset = Dataset("drawn", X, y, task, domain, "drawn", "")
    model = ablation.fit(name, dataset, np.arange(y.size), 1.0, seed=1)
    return [*model.shape_functions_, np.atleast_1d(model.intercept_)]


@pytest.mark.parametrize("name", [n for n in ablation.VARIANTS if n not in ablation.OTHERS])
def test_a_variant_changes_what_is_learned(name: str) -> None:
    tasks = ("binary", "regression")
    changed = {task for task in tasks if not is_same(fitted("as it is", task), fitted(name, task))}
    assert changed == ONLY.get(name, {*tasks})


@pytest.mark.parametrize("name", ablation.OTHERS)
def test_other_methods_fit(name: str) -> None:
    assert all(np.isfinite(each).all() for each in fitted(name, "binary"))


def is_same(ours: list[np.ndarray], others: list[np.ndarray]) -> bool:
    pairs = zip(ours, others, strict=True)
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("kinds", [*combinations((Totals, CodedHistogram, CodedResiduals), 2)])
def test_only_the_queries_that_are_named_lose_their_noise(kinds: tuple[type[Query], ...]) -> None:
    X, y, domain = problem(LOGISTIC)

    def fit(seed: int, *exact: type[Query]) -> list[np.ndarray]:
        with ablation.exactly(*exact):
            model = DPEBMPlusClassifier(0.9, n_epochs=2, domain=domain, random_state=seed)
            return model.fit(X, y).shape_functions_

    assert not is_same(fit(1, *kinds), fit(2, *kinds))
    with_all = (Totals, CodedHistogram, CodedResiduals)
    assert is_same(fit(1, *with_all), fit(2, *with_all))


def test_what_is_not_there_is_not_replaced() -> None:
    """Else a variant would silently be the whole method. An attribute must be the class's own."""
    for owner, name in ((ablation, "_NOISE"), (ablation.CodedResiduals, "enforced_")):
        with pytest.raises(KeyError, match=name), ablation.replaced(owner, name, 1.0):
            pass
