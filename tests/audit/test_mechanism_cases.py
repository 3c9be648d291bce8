"""The mechanisms' pairs, by the probabilities of what they release."""

import math

import numpy as np
import pytest

from dprepro.audit import find_case, find_one_run_case
from dprepro.audit.trials import run_trials
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import TOLERANCE


@pytest.mark.parametrize("name", ["gaussian", "laplace", "exponential", "permute-and-flip"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_all_of_epsilon_is_spent(name, epsilon):
    ledger = find_case(name, epsilon=epsilon).fit(True, 0).ledger_
    assert ledger.spent_epsilon() == pytest.approx(epsilon, abs=1e-3)
    assert ledger.spent_epsilon() <= epsilon + 10 * TOLERANCE


def test_the_choice_has_the_probabilities_of_the_exponential_mechanism():
    """Utilities differ by the sensitivity: weights e^(epsilon/2) and 1, or 1 and e^(epsilon/2)."""
    epsilon = 2.0
    runs = run_trials(find_case("exponential", epsilon=epsilon), 20_000, seed=0)
    weight = math.exp(epsilon / 2)
    chosen = runs.outputs[:, 0]
    better, worse = weight / (weight + 9), 1 / (1 + 9 * weight)
    assert chosen[runs.present].mean() == pytest.approx(better, abs=0.015)
    assert chosen[~runs.present].mean() == pytest.approx(worse, abs=0.01)
    assert math.log(better / worse) < epsilon


def test_the_sum_moves_by_mu_standard_deviations():
    runs = run_trials(find_case("gaussian", epsilon=4.0), 20_000, seed=0)
    with_canary, without = runs.outputs[runs.present], runs.outputs[~runs.present]
    distance = (with_canary.mean() - without.mean()) / without.std()
    assert distance == pytest.approx(mu_of(4.0, 1e-6), abs=0.06)


def test_laplace_noise_has_the_scale_that_epsilon_asks_for():
    runs = run_trials(find_case("laplace", epsilon=2.0), 20_000, seed=0)
    without = runs.outputs[~runs.present]
    shift = runs.outputs[runs.present].mean() - without.mean()
    assert shift / np.abs(without).mean() == pytest.approx(2.0, abs=0.1)


def test_in_one_run_every_sum_has_its_own_noise():
    case = find_one_run_case("gaussian", epsilon=4.0)
    coins = np.arange(case.canaries) % 2 == 0
    scores, ledger = case.run(coins, 0)
    residues = scores - np.where(coins, 1.5, -1.5)
    assert np.unique(residues).size == case.canaries
    assert residues.std() == pytest.approx(ledger.entries[0].scale, rel=0.03)
    assert scores[coins].mean() > 0 > scores[~coins].mean()
