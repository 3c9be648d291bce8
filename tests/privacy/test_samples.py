"""Who is sampled for one draw says nothing of who is for another, in every method that samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.methods.dp_bag import curator as dp_bag
from dprepro.methods.dp_bag.estimator import DPBagClassifier
from dprepro.methods.dp_sgd.curator import ExactGradients
from dprepro.methods.dp_sgd.estimator import DPSGDClassifier
from dprepro.methods.dpboost.estimator import DPBoostRegressor
from dprepro.methods.dpboost.subsets import IndependentRows
from dprepro.methods.locally_linear import gradients
from dprepro.methods.locally_linear.estimator import DPLLMClassifier
from dprepro.methods.s_bdt.curator import ExactSums
from dprepro.methods.s_bdt.estimator import SBDTClassifier
from dprepro.privacy.sampling import ExactSampler
from tests.privacy.curators import LABELS, NUMERIC, RANGE

ROWS, RATE = 400, 0.3
Draws = list[np.ndarray]


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(ROWS), "z": rng.random(ROWS)})
    X["c"] = rng.choice(["a", "b"], ROWS)
    return X, (X["x"] > 0.5).to_numpy().astype(int)


def mask(places: np.ndarray) -> np.ndarray:
    drawn = np.zeros(ROWS, dtype=bool)
    drawn[places] = True
    return drawn


@contextmanager
def sums_heard(draws: Draws, exact: type[Any], name: str) -> Iterator[Any]:
    """Note the rows of each sum that a method of an object with the exact rows returns."""
    sums = getattr(exact, name)

    def heard(self: Any, query: Any, sampled: np.ndarray) -> np.ndarray:
        draws.append(sampled)
        return sums(self, query, sampled)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, name, heard)
        yield


@contextmanager
def s_bdt(draws: Draws) -> Iterator[Any]:
    """The rows of each tree."""
    with sums_heard(draws, ExactSums, "leaf_sums"):
        yield lambda seed: SBDTClassifier(
            n_trees=8, sampling=RATE, domain=LABELS, random_state=seed
        ).fit(*table())


@contextmanager
def dp_sgd(draws: Draws) -> Iterator[Any]:
    """The rows of each step."""
    with sums_heard(draws, ExactGradients, "sum"):
        yield lambda seed: DPSGDClassifier(
            steps=8, sampling=RATE, domain=LABELS, random_state=seed
        ).fit(*table())


@contextmanager
def dp_llm(draws: Draws) -> Iterator[Any]:
    """The rows of each batch."""
    batches = gradients.batches

    def heard(*given: Any) -> Iterator[np.ndarray]:
        for batch in batches(*given):
            draws.append(mask(batch))
            yield batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradients, "batches", heard)
        X, y = table()
        yield lambda seed: DPLLMClassifier(
            domain=NUMERIC, epochs=2, batch_size=int(ROWS * RATE), random_state=seed
        ).fit(X[["x", "z"]].to_numpy(), y)


@contextmanager
def dpboost(draws: Draws) -> Iterator[Any]:
    """The rows of the first tree of each ensemble."""
    draw = IndependentRows.draw

    def heard(subsets: Any, fits: Any) -> np.ndarray:
        is_first = subsets._unused.size == ROWS
        rows = draw(subsets, fits)
        if is_first:
            draws.append(mask(rows))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndependentRows, "draw", heard)
        X, y = table()
        yield lambda seed: DPBoostRegressor(
            variant="sound", n_trees=16, trees_per_ensemble=2, max_depth=2, epsilon=50.0,
            domain=RANGE, random_state=seed,
        ).fit(X, y)  # fmt: skip


@contextmanager
def bag(draws: Draws) -> Iterator[Any]:
    """The rows of the first teachers of each partition."""
    permutation = ExactSampler.permutation

    def heard(sampler: Any, size: int) -> np.ndarray:
        order = permutation(sampler, size)
        draws.append(mask(order[: int(size * RATE)]))
        return order

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactSampler, "permutation", heard)
        patch.setattr(dp_bag, "learn", lambda X, codes: _Constant())
        X, y = table()
        yield lambda seed: DPBagClassifier(
            inputs="domain", teachers=10, partitions=8, epsilon=50.0, domain=LABELS,
            random_state=seed,
        ).fit(X, y)  # fmt: skip


class _Constant:
    def predict(self, asked: np.ndarray) -> np.ndarray:
        return np.arange(len(asked)) % 2


METHODS: dict[str, Callable[[Draws], Any]] = {
    "s-bdt": s_bdt, "dp-sgd-mlp": dp_sgd, "dp-llm": dp_llm, "dpboost": dpboost, "dp-bag": bag,
}  # fmt: skip


def likeness(draws: Draws) -> float:
    """Return the largest correlation between two draws."""
    found = np.corrcoef(np.array(draws, dtype=float))
    return float(np.abs(found - np.diag(np.diag(found))).max())


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("seed", [3, None])
def test_draws_are_independent_of_each_other_and_of_other_fits(method: Any, seed: Any) -> None:
    draws: Draws = []
    with method(draws) as fit:
        fit(seed)
        of_one_fit = len(draws)
        fit(None if seed is None else seed + 1)
    assert of_one_fit >= 6
    # Correlations of independent draws deviate by 1 / sqrt(400): six deviations.
    assert likeness(draws) < 6 / np.sqrt(ROWS)
    assert all(0.05 < drawn.mean() < 0.9 for drawn in draws)
    assert likeness([*draws, draws[0]]) > 0.99  # one that two draws share would show
