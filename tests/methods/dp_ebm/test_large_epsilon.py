"""DP-EBM at epsilons where noise is next to nothing, and where Theorem 2 does not hold any more."""

import math

import pytest

from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.privacy.composition import TWO_PHASE_COMPOSITIONS
from dprepro.privacy.ledger import spent_epsilon
from tests.methods.dp_ebm.test_dp_ebm import DOMAIN, RANGE, table

X, LABELS, TARGETS = table(400)
TASKS = {
    "binary": (DPEBMClassifier, DOMAIN, LABELS),
    "regression": (DPEBMRegressor, RANGE, TARGETS),
}
COMPOSITIONS = pytest.mark.parametrize("composition", TWO_PHASE_COMPOSITIONS)


def fitted(task, composition, epsilon, delta=1e-6, sensitivity="published"):
    estimator, domain, y = TASKS[task]
    model = estimator(
        epsilon, delta, composition=composition, sensitivity=sensitivity, n_epochs=30,
        learning_rate=0.1, domain=domain, random_state=0,
    )  # fmt: skip
    return model.fit(X, y)


@COMPOSITIONS
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("sensitivity", ["published", "sound"])
def test_epsilon_200_is_fitted_and_kept(task, composition, sensitivity):
    model = fitted(task, composition, 200.0, sensitivity=sensitivity)
    assert model.score(X, TASKS[task][2]) > 0.5
    assert model.ledger_.spent_epsilon() <= 200 + 1e-6


@pytest.mark.parametrize("composition", ["classic", "classic-boosting"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("epsilon", "delta"), [(200.0, 1e-2), (1000.0, 1e-6)])
def test_where_theorem_2_fails_the_fit_goes_on_and_the_ledger_says_what_is_spent(
    task, composition, epsilon, delta
):
    ledger = fitted(task, composition, epsilon, delta).ledger_
    assert ledger.spent_epsilon() > 1.1 * epsilon
    assert not ledger.within_budget
    assert not ledger.holds
    boosting = ledger.entries[-1]
    assert boosting.budget.epsilon > epsilon


@pytest.mark.parametrize("composition", ["gdp", "joint"])
@pytest.mark.parametrize("task", TASKS)
def test_exact_compositions_keep_epsilon_1000_but_for_the_grain_of_the_accountant(
    task, composition
):
    """With ideal draws, that is: the samplers' distance leaves nothing of delta."""
    ledger = fitted(task, composition, 1000.0).ledger_
    assert spent_epsilon(tuple(ledger.entries), 1e-6) <= 1000 * 1.001
    assert ledger.spent_epsilon() == math.inf
    assert not ledger.samplers_suffice
    assert not ledger.holds
