"""1-Rules: all errors in one product are the errors one by one."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.methods.lazybb.hypotheses import Rule, errors
from dprepro.methods.lazybb.queries import Literals
from dprepro.methods.lazybb.weights import Weighing
from tests.methods.lazybb.lab import exact

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (40, 5))
SIGNS = RNG.choice([-1, 1], 40)
WEIGHTS = RNG.integers(0, 2**60 // 40, 40)
RULES = [*(Rule(j, s) for s in (1, -1) for j in range(5)), Rule(None, 1), Rule(None, -1)]


def error(rule: Rule) -> int:
    return int(WEIGHTS[rule.outputs(Literals(X)) != SIGNS].sum())


def test_errors_are_those_of_each_rule() -> None:
    found = errors(Literals(X), WEIGHTS * SIGNS)
    assert found.dtype == np.int64
    assert found.tolist() == [error(r) for r in RULES]


def test_outputs_are_the_sign_where_the_column_is_true() -> None:
    np.testing.assert_array_equal(Rule(2, -1).outputs(Literals(X)), np.where(X[:, 2], -1, 1))
    assert (Rule(None, -1).outputs(Literals(X)) == -1).all()
    assert [Rule(2, -1).columns, Rule(None, 1).columns] == [{2}, set()]


@pytest.mark.parametrize("best", RULES)
def test_without_noise_the_rule_that_is_always_right_is_found(best: Rule) -> None:
    hypotheses, _ = exact(X, best.outputs(Literals(X)), Weighing(0.4, 1.0), 1)
    assert hypotheses == [best]
