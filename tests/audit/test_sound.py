"""What keeps its promise passes, and the audit is no formality: it comes close to the truth."""

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit, find_case

pytestmark = pytest.mark.audits

STRONG = 8.0
"""A large epsilon shows itself in few runs."""


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("dp-ebm-gdp", "binary"),
        ("dp-ebm-joint", "binary"),
        ("dp-ebm-sound", "binary"),
        ("dp-ebm-sound", "regression"),
    ],
)
def test_dp_ebm_is_bounded_within_a_factor_of_two(name, task):
    """Of three audits: where one bound lies depends on a few runs in the tail."""
    results = [audit(find_case(name, task, epsilon=STRONG), 1200, seed=seed) for seed in range(3)]
    assert {(result.bound, result.verdict) for result in results} == {("GDP", AuditVerdict.WITHIN)}
    bounds = [result.lower_bound for result in results]
    assert results[0].spent_epsilon / 2 < np.median(bounds)
    assert max(bounds) < results[0].spent_epsilon


@pytest.mark.parametrize(
    ("name", "trials"),
    [
        ("dp-ebm-classic", 400),
        ("dpboost-sound", 600),
        ("dp-llm", 300),
        ("dp-bag-sound", 400),
        ("lazybb-1r/boosted", 400),
        ("lazybb-topdown/boosted", 400),
        ("lazybb-1r-approx/rounds", 400),
    ],
)
def test_other_sound_methods_pass(name, trials):
    result = audit(find_case(name, epsilon=4.0), trials, seed=2)
    assert not result.verdict.is_refuted
    assert result.lower_bound < result.spent_epsilon


@pytest.mark.parametrize("name", ["lazybb-1r", "lazybb-topdown", "lazybb-topdown/splits"])
def test_a_round_of_boosting_is_bounded(name):
    result = audit(find_case(name, epsilon=4.0), 600, seed=1)
    assert result.verdict is AuditVerdict.WITHIN
    assert 0.3 * result.spent_epsilon < result.lower_bound < result.spent_epsilon


@pytest.mark.parametrize(
    ("name", "trials", "attainable"),
    [
        ("dp-linear-fair", 3000, 2.0),
        ("dp-logistic-fair", 600, 3.0),
        ("dp-random-forest", 800, 4.0),
    ],
)
def test_the_bound_nears_what_the_pair_can_show(name, trials, attainable):
    """Attainable is the largest log likelihood ratio of what the pair releases, at epsilon 4."""
    result = audit(find_case(name, epsilon=4.0), trials, seed=2)
    assert result.verdict is AuditVerdict.WITHIN
    assert 0.5 * attainable < result.lower_bound < attainable


@pytest.mark.parametrize(
    ("name", "share"),
    [("gaussian", 0.75), ("laplace", 0.75), ("exponential", 0.6), ("permute-and-flip", 0.6)],
)
def test_the_mechanisms_are_bounded_closely(name, share):
    result = audit(find_case(name, epsilon=2.0), 20_000, seed=5)
    assert result.verdict is AuditVerdict.WITHIN
    assert result.lower_bound > share * result.spent_epsilon


def test_bounds_above_the_truth_are_rare():
    """Thirty audits of a mechanism that spends all of its epsilon: 95 % each."""
    bounds = [audit(find_case("gaussian"), 1000, seed=s).lower_bound for s in range(30)]
    assert np.sum(np.array(bounds) > 1.0) <= 4
