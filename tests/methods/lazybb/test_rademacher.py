"""The bound: its complexity against every rule, and what a vote really does on unseen rows."""

import math

import numpy as np
import pytest

from dprepro.methods.lazybb.estimator import LazyBBClassifier
from dprepro.methods.lazybb.hypotheses import Rule
from dprepro.methods.lazybb.queries import Literals
from dprepro.methods.lazybb.rademacher import FAILURE, accuracy_bound, complexity


def draw(rows, seed=0, columns=6):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (rows, columns))
    flipped = rng.random(rows) < 0.1
    return X, (X[:, 0] ^ flipped).astype(int)


def test_the_complexity_is_the_best_agreement_of_any_rule_with_random_signs():
    X, _ = draw(40)
    literals = Literals(X)
    rules = [Rule(c, s) for c in (None, *range(6)) for s in (-1, 1)]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (40, 100))
    agreements = np.max([rule.outputs(literals) @ signs for rule in rules], axis=0)
    assert complexity(literals) == pytest.approx(agreements.mean() / 40, abs=1e-12)


def test_margins_of_one_prove_all_but_complexity_and_slack():
    literals = Literals(draw(50_000)[0])
    slack = 3 * math.sqrt(math.log(4 * 5 / FAILURE) / 100_000)
    missed = math.sqrt(2 * math.log(2 / FAILURE) / (100 * 50_000))
    found = accuracy_bound(literals, np.ones(50_000), 5)
    assert found == pytest.approx(1 - 2 * (complexity(literals) + missed) - slack)


def test_what_the_draws_may_miss_covers_the_error_of_their_mean():
    """The complexity by many draws is that by a hundred, within the allowance for these."""
    X, _ = draw(40)
    rules = [Rule(c, s) for c in (None, *range(6)) for s in (-1, 1)]
    outputs = np.array([rule.outputs(Literals(X)) for rule in rules])
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (40, 20_000))
    exact = (outputs @ signs).max(axis=0).mean() / 40
    missed = math.sqrt(2 * math.log(2 / FAILURE) / (100 * 40))
    assert abs(complexity(Literals(X)) - exact) < missed < exact


def test_a_bound_lies_below_the_accuracy_on_unseen_rows_and_grows_with_the_rows():
    bounds = []
    for rows in (500, 50_000):
        X, y = draw(rows)
        model = LazyBBClassifier(rounds=5, epsilon=5, diagnostics=True, random_state=0).fit(X, y)
        bounds.append(model.figures_["rademacher_bound"])
        assert bounds[-1] < model.score(*draw(20_000, seed=1))
    assert bounds[0] < bounds[1]


def test_there_is_no_bound_below_nothing():
    assert accuracy_bound(Literals(draw(20)[0]), -np.ones(20), 3) == 0.0
