"""The pair for DP-EBM is the worst one: the canary moves every release by what is paid for."""

import numpy as np
import pytest

from dprepro.audit import find_case
from dprepro.audit.trials import run_trials
from dprepro.methods.dp_ebm.audit import NAMES
from dprepro.methods.dp_ebm.queries import LeafSums
from dprepro.methods.registry import all_methods
from dprepro.privacy.curator_base import listening
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.sampling import ExactSampler

pytestmark = pytest.mark.audits


@pytest.fixture
def without_noise(monkeypatch):
    """Ledgers as ever, and no noise."""
    monkeypatch.setattr(ExactSampler, "gaussian", lambda _, scale, shape: np.zeros(shape, np.int64))
    monkeypatch.setattr(ExactSampler, "normals", lambda _, shape: np.zeros((*shape, 10), np.uint64))


class LeafListener:
    """Hears learning rate x sum of residuals of every leaf at each step."""

    def asked(self, query, release):
        if isinstance(query, LeafSums):
            self.sums = release.value

    def told(self, instruction):
        pass


def leaf_sums(case, present):
    """Return the sums of the canary's leaf, the second, at each step, float64 (T,)."""
    listener = LeafListener()
    with listening(listener):
        case.fit(present, 0)
    return listener.sums[:, 1]


@pytest.mark.usefixtures("without_noise")
def test_a_label_moves_leaf_sums_by_nearly_the_published_bound():
    case = find_case("dp-ebm-gdp", "binary")
    rate = case.fit.__self__.params["learning_rate"]
    shift = leaf_sums(case, True) - leaf_sums(case, False)
    assert shift.size == 60
    assert np.abs(shift).max() <= rate * 1.001
    # The canary pulls down by its probability; what it has moved already, the crowd pulls back.
    assert np.abs(shift[0]) == pytest.approx(rate / 2, rel=1e-3)


@pytest.mark.usefixtures("without_noise")
def test_the_sound_regression_is_moved_by_exactly_its_bound_at_first():
    case = find_case("dp-ebm-sound", "regression")
    ledger = case.fit(True, 0).ledger_
    shift = leaf_sums(case, True) - leaf_sums(case, False)
    assert shift[0] == pytest.approx(ledger.entries[1].sensitivity, rel=1e-4)
    assert np.abs(shift).max() <= ledger.entries[1].sensitivity * 1.0001


@pytest.mark.usefixtures("without_noise")
def test_the_published_regression_is_moved_by_a_hundred_times_its_bound():
    case = find_case("dp-ebm-gdp", "regression")
    bound = case.fit(True, 0).ledger_.entries[1].sensitivity
    present, absent = case.fit(True, 0), case.fit(False, 0)
    score, product, count = case.observe(present) - case.observe(absent)
    steps = case.fit.__self__.params["n_epochs"]
    assert count == 1.0
    assert product == pytest.approx(101 * steps * bound, rel=0.01)
    assert score > 0


@pytest.mark.parametrize(("name", "task"), [("dp-ebm-joint", "binary"),
                                            ("dp-ebm-sound", "regression")])  # fmt: skip
def test_the_outputs_hold_most_of_mu(name, task):
    """Distance of the means in units of the noise, against mu(epsilon, delta), which is spent."""
    epsilon, runs = 8.0, run_trials(find_case(name, task, epsilon=8.0), 1600, seed=3)
    present, absent = runs.outputs[runs.present], runs.outputs[~runs.present]
    shift = present.mean(axis=0) - absent.mean(axis=0)
    covariance = (np.cov(present.T) + np.cov(absent.T)) / 2
    distance = np.sqrt(shift @ np.linalg.pinv(covariance) @ shift)
    assert 0.7 < distance / mu_of(epsilon, 1e-6) < 1.1


def test_every_dp_ebm_of_the_registry_has_this_pair():
    names = {*NAMES, "dp-ebm-plus"}
    # The same estimators on indicators, which have no categories for the pair, get the general one.
    found = {name for name in all_methods() if name.startswith("dp-ebm")}
    assert names == {name for name in found if not name.endswith("-indicators")}
    for name in names:
        assert "rows with one label" in find_case(name, "binary").neighbours
