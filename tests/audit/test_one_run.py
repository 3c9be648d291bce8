"""One run, many canaries."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit_in_one_run, find_one_run_case, one_run_names
from dprepro.audit.auditing import GUESSED_SHARE
from dprepro.audit.case import OneRunCase
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.lower_bounds import Guesses, mu_lower_bound
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sampling import ExactSampler
from tests.audit.test_render import text


def result_of(name, task=None, epsilon=8.0, seed=0):
    return audit_in_one_run(find_one_run_case(name, task, epsilon=epsilon), seed=seed)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_one_fit_of_the_sound_dp_ebm_says_something_and_not_too_much(task):
    results = [result_of("dp-ebm-sound", task, seed=seed) for seed in range(5)]
    assert {result.verdict for result in results} == {AuditVerdict.WITHIN}
    assert np.median([result.lower_bound for result in results]) > 1.0
    assert np.median([result.independent_bound for result in results]) > 8.0 / 2


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_without_noise_the_scores_are_the_coins(task, monkeypatch):
    """Every category's sum of residuals is read off exactly, and 0 lies half way."""
    case = find_one_run_case("dp-ebm-sound", task)
    monkeypatch.setattr(ExactSampler, "gaussian", lambda _, scale, shape: np.zeros(shape, int))
    monkeypatch.setattr(ExactSampler, "normals", lambda _, shape: np.zeros((*shape, 10), np.uint64))
    coins = np.random.default_rng(0).random(case.canaries) < 0.5
    scores, _ = case.run(coins, 0)
    np.testing.assert_allclose(scores, np.where(coins, 0.25, -0.25), atol=1e-3)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_two_thousand_canaries_in_one_fit_say_nearly_all_by_the_curve(task):
    """One in every bin of every feature; each has its bin in one of 16, so 1/4 of mu at most."""
    result = result_of("dp-ebm-sound/everywhere", task)
    most = epsilon_of(mu_of(8.0, 1e-6) / 4, 1e-6)
    assert result.canaries == 2048
    assert result.lower_bound < 0.6 * result.curve_bound
    assert 0.4 * most < result.curve_bound < most
    assert result.verdict is AuditVerdict.WITHIN


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_every_bin_of_every_feature_has_a_canary(task, monkeypatch):
    """Without noise each score is the coin: of missing values, numbers and categories."""
    case = find_one_run_case("dp-ebm-sound/everywhere", task, epsilon=8.0)
    monkeypatch.setattr(ExactSampler, "gaussian", lambda _, scale, shape: np.zeros(shape, int))
    monkeypatch.setattr(ExactSampler, "normals", lambda _, shape: np.zeros((*shape, 10), np.uint64))
    coins = np.random.default_rng(0).random(case.canaries) < 0.5
    scores, _ = case.run(coins, 0)
    np.testing.assert_allclose(scores, np.where(coins, 0.25, -0.25), atol=0.01)


def test_one_fit_convicts_the_published_regression():
    result = result_of("dp-ebm-gdp", "regression", epsilon=1.0)
    assert result.verdict is AuditVerdict.EXCEEDED
    assert result.lower_bound > 1.0
    assert result.correct == result.guesses
    assert not result.unexplained


def test_one_run_catches_half_the_noise(monkeypatch):
    scale = NoiseSource.enter_gaussian
    assert result_of("gaussian").verdict is AuditVerdict.WITHIN
    monkeypatch.setattr(NoiseSource, "enter_gaussian", lambda *a, **k: scale(*a, **k) / 2)
    result = result_of("gaussian")
    assert result.verdict is AuditVerdict.EXCEEDED
    assert result.unexplained
    assert result.lower_bound < result.curve_bound < result.independent_bound
    assert replace(result, independent_bound=None).verdict is AuditVerdict.EXCEEDED


def test_the_general_bound_alone_catches_it_at_a_small_epsilon(monkeypatch):
    scale = NoiseSource.enter_gaussian
    monkeypatch.setattr(NoiseSource, "enter_gaussian", lambda *a, **k: scale(*a, **k) / 4)
    assert result_of("gaussian", epsilon=1.0).lower_bound > 1.0


@pytest.mark.parametrize("name", one_run_names())
def test_the_number_of_guesses_is_fixed_beforehand(name):
    case = find_one_run_case(name, epsilon=8.0)
    result = audit_in_one_run(case, seed=1)
    assert result.canaries == case.canaries
    assert result.guesses == round(GUESSED_SHARE * case.canaries)
    assert 0 <= result.correct <= result.guesses


def test_a_result_is_json_and_repeats_by_its_seed():
    first, second = (result_of("dp-ebm-sound", seed=7) for _ in range(2))
    assert first == second
    facts = json.loads(json.dumps(first.to_json(), allow_nan=False))
    assert facts["bound"] == "one run"
    assert facts["correct"] == first.correct


def test_chance_is_all_that_a_tiny_budget_leaves():
    result = result_of("gaussian", epsilon=0.01)
    assert result.lower_bound < 0.2


def test_the_bounds_share_the_risk_of_a_refutation():
    """One of three bounds of 99.99 % each would be too high up to three times as often."""
    seen = []

    def run(coins, seed):
        scores = coins - 0.5 + np.random.default_rng(seed).standard_normal(coins.size)
        seen.append((coins, scores > 0))
        entry = LedgerEntry("gaussian", "a sum", 1.0, "L2", 1.0, 1, (6.0, 1e-6))
        return scores, Ledger(6.0, 1e-6, "zero-out", [entry])

    result = audit_in_one_run(OneRunCase("told", None, "none", 3000, run), seed=0)
    ((coins, said),) = seen
    wrong = int((said & ~coins).sum()), int((~said & coins).sum())
    guesses = Guesses(wrong[0], int((~coins).sum()), wrong[1], int(coins.sum()))
    alone, shared = (
        epsilon_of(float(mu_lower_bound(guesses, confidence=1 - risk)), 1e-6)
        for risk in (1e-4, 1e-4 / 3)
    )
    assert result.refuting_bound == pytest.approx(shared, rel=1e-9)
    assert result.refuting_bound < alone < result.independent_bound


def test_more_runs_are_not_asked_of_one_run():
    result = replace(result_of("gaussian"), independent_bound=9.0, refuting_bound=1.0)
    assert result.verdict is AuditVerdict.UNDECIDED
    shown = text([result])
    assert "leave --one-run out" in shown
    assert "--trials" not in shown
