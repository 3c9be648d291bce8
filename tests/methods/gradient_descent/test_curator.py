"""Sums of gradients: those of logistic regression, whole numbers, each row's part at most 1."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.bounded_norm_encoding import UNIT, UnitRows
from dprepro.methods.gradient_descent.curator import (
    LARGEST_WEIGHT,
    WEIGHT_UNIT,
    ExactGradients,
    GradientCurator,
    GradientSum,
    RowCount,
    Weights,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_part
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), ("0", "1"))
COLUMNS = UnitRows(DOMAIN, 4).columns


def table(n=500):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(-0.2, 1.2, n), "c": rng.choice(["a", "b"], n)})
    return frame, rng.integers(0, 2, n).astype(np.float32)


def exact(frame, y, weights=None):
    made = ExactGradients(UnitRows(DOMAIN, 4).encode(frame), y)
    if weights is not None:
        made.tell(weights)
    return made


def random_weights(seed, size=20.0):
    rng = np.random.default_rng(seed)
    return np.rint(rng.normal(0, size, COLUMNS) / WEIGHT_UNIT).astype(np.int64)


def curator(seed=None, relation=ADD_REMOVE):
    return GradientCurator(Private(Rows(*table())), DOMAIN, 4, Ledger(1.0, 1e-6, relation), seed)


def test_the_gradient_is_that_of_logistic_regression():
    frame, y = table()
    weights = random_weights(0)
    x = UnitRows(DOMAIN, 4).encode(frame).toarray() * UNIT
    rates = 1 / (1 + np.exp(-x @ (weights * WEIGHT_UNIT)))
    found = exact(frame, y, weights).gradient()
    assert found.numbers.dtype == np.int64
    np.testing.assert_allclose(found.value, x.T @ (y - rates), atol=len(y) * 2.0**-16)


def test_the_order_of_rows_changes_nothing():
    frame, y = table()
    one = exact(frame, y, random_weights(1)).gradient().numbers
    other = exact(frame[::-1], y[::-1], random_weights(1)).gradient().numbers
    np.testing.assert_array_equal(one, other)


def test_a_row_moves_the_sum_by_its_own_part_and_by_one_at_most():
    frame, y = table(60)
    for seed, size in enumerate((0.0, 1.0, 300.0, 1e6)):
        weights = random_weights(seed, size)
        whole = exact(frame, y, weights).gradient()
        less = exact(frame[:-1], y[:-1], weights).gradient()
        alone = exact(frame[-1:], y[-1:], weights).gradient()
        np.testing.assert_array_equal(whole.numbers - less.numbers, alone.numbers)
        parts = [exact(frame[i : i + 1], 1 - y[i : i + 1], weights) for i in range(60)]
        norms = [float(np.linalg.norm(part.gradient().value)) for part in parts]
        assert max(norms) <= 1
    assert max(norms) > 0.9


def test_weights_that_could_overflow_are_refused():
    made = exact(*table(20))
    with pytest.raises(SensitivityError, match="int64"):
        made.tell(np.zeros(COLUMNS))
    with pytest.raises(SensitivityError, match="round and clip"):
        made.tell(np.full(COLUMNS, LARGEST_WEIGHT + 1))
    made.tell(np.full(COLUMNS, LARGEST_WEIGHT))
    assert np.linalg.norm(made.gradient().value) <= 20


def test_queries_are_answered_with_the_noise_of_the_ledger_as_often_as_it_says():
    made = curator(seed=0)
    with pytest.raises(BudgetError, match="open one"):
        made.answer(RowCount(1.0, 1.0))
    budget = PrivacyBudget(1.0, 1e-6)
    made.open_count(*gdp_part(budget, 0.5))
    mu, rest = gdp_part(budget, 0.5)
    made.open_steps(mu, 200, rest)
    count = made.answer(RowCount(1.0, 1.0))
    assert abs(count.value[0] - 500) < 5 * count.scale
    made.tell(Weights(random_weights(2)))
    silent = exact(*table(), random_weights(2)).gradient().value
    found = [made.answer(GradientSum(1.0, 1.0)) for _ in range(200)]
    noise = np.array([release.value for release in found]) - silent
    assert noise.std() == pytest.approx(np.sqrt(200) / mu, rel=0.1)
    with pytest.raises(BudgetError):
        made.answer(GradientSum(1.0, 1.0))


def test_another_relation_is_refused():
    with pytest.raises(SensitivityError, match="add/remove-one"):
        curator(relation=ZERO_OUT)
