"""Looks at the bound: all of them together hold with the stated confidence."""

import numpy as np
import pytest
from scipy.stats import norm

from dprepro.audit.trials import schedule
from dprepro.privacy.lower_bounds import CONFIDENCE, Guesses, epsilon_lower_bound, mu_lower_bound
from dprepro.runtime.errors import DpreproError


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("trials", [40, 1001, 60_000])
def test_all_runs_train_or_judge_and_the_risks_add_up(trials, learns):
    plan = schedule(trials, learns)
    assert plan.runs == trials
    assert (plan.training > 0) == learns
    assert plan.training % 2 == 0
    risks = [1 - look.confidence(CONFIDENCE) for look in plan.looks]
    assert sum(risks) == pytest.approx(1 - CONFIDENCE)
    assert [look.runs for look in plan.looks] == sorted({look.runs for look in plan.looks})


def test_only_many_runs_are_looked_at_early():
    assert len(schedule(1000, learns=True).looks) == 1
    assert len(schedule(20_000, learns=True).looks) == 3
    assert schedule(20_000, learns=True).training == 2500


def test_too_few_trials_are_refused():
    with pytest.raises(DpreproError, match="at least 40 trials, got 39"):
        schedule(39, learns=True)


def highest_bounds(wrong, trials, bound, repeats=2000):
    """Return the largest bound of all looks, which is what an audit that ends early can state."""
    rng = np.random.default_rng(0)
    best, done = np.full(repeats, -np.inf), 0
    counts = np.zeros((4, repeats), dtype=int)
    for look in schedule(trials, learns=False).looks:
        more = look.runs - done
        done = look.runs
        present = rng.binomial(more, 0.5, repeats)
        counts += [
            rng.binomial(more - present, wrong[0]), more - present,
            rng.binomial(present, wrong[1]), present,
        ]  # fmt: skip
        best = np.maximum(best, bound(Guesses(*counts), look.confidence(CONFIDENCE)))
    return best


def test_whichever_look_an_audit_ends_at_bounds_above_mu_are_rare():
    """A mechanism that is exactly mu-GDP, guessed by the best threshold."""
    mu = 0.3
    wrong = norm.cdf(-mu / 2)
    best = highest_bounds((wrong, wrong), 4000, lambda g, c: mu_lower_bound(g, "accuracy", c))
    assert 0.02 < np.mean(best > mu) <= 0.05 + 3 * np.sqrt(0.05 / best.size)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_whichever_look_an_audit_ends_at_bounds_above_epsilon_are_rare(delta):
    """Guesses "present" alone: a rare event, with the canary e^epsilon times as likely."""
    epsilon, rare = 1.0, 0.02
    wrong = (rare, 1 - (np.exp(epsilon) * rare + delta))
    best = highest_bounds(
        wrong, 4000, lambda g, c: epsilon_lower_bound(g, delta, "present", c)
    )  # fmt: skip
    assert np.mean(best > epsilon) <= 0.05 + 3 * np.sqrt(0.05 / best.size)
    assert np.median(best) > 0.3
