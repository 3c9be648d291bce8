"""Planted faults: the audit of the real code path, with one thing broken, must catch each."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from interpret.privacy import DPExplainableBoostingRegressor

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.audit.case import Case
from dprepro.methods.dp_ebm import curator, losses, queries
from dprepro.methods.lazybb import calibration
from dprepro.methods.lazybb import queries as lazybb_queries
from dprepro.methods.lazybb.curator import LazyBBCurator
from dprepro.methods.lazybb.sensitivity import gain_sensitivity, smooth_distance
from dprepro.privacy import composition, mechanisms
from dprepro.privacy.curator_base import GaussianMechanism
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import BudgetError, SensitivityError

pytestmark = pytest.mark.audits

STRONG = 8.0
FEW = 100


def caught(name, task=None, *, epsilon=STRONG, trials=FEW, seed=1):
    result = audit(find_case(name, task, epsilon=epsilon), trials, seed=seed)
    return result.verdict is AuditVerdict.EXCEEDED


@pytest.mark.parametrize(("name", "task"), [("dp-ebm-sound", "binary"),
                                            ("dp-ebm-sound", "regression"),
                                            ("dp-ebm-joint", "binary")])  # fmt: skip
def test_half_the_noise(name, task, monkeypatch):
    add, hand = NoiseSource.add_gaussian, GaussianMechanism.hand_to_kernel

    def halved(self, query, shape):
        scale, normals = hand(self, query, shape)
        return scale / 2, normals

    assert not caught(name, task, trials=600)
    monkeypatch.setattr(GaussianMechanism, "hand_to_kernel", halved)
    monkeypatch.setattr(
        NoiseSource,
        "add_gaussian",
        lambda s, exact, scale, unit=1.0: add(s, exact, scale / 2, unit),
    )
    assert caught(name, task, trials=600)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_a_sensitivity_forgotten(name, monkeypatch):
    assert not caught(name, epsilon=2.0, trials=2000)
    monkeypatch.setattr(mechanisms, "_scale", lambda releases, multiplier, _: multiplier)
    assert caught(name, epsilon=2.0, trials=2000)


def test_a_sensitivity_with_the_learning_rate_counted_twice_is_refused(monkeypatch):
    charged = losses.SquaredLoss.charged_sensitivity
    monkeypatch.setattr(
        losses.SquaredLoss, "charged_sensitivity", lambda *arguments: charged(*arguments) * 0.05
    )
    with pytest.raises(SensitivityError, match="charge at least what is enforced"):
        caught("dp-ebm-sound", "regression")


def test_composition_forgotten_is_refused(monkeypatch):
    """Noise for one query, though every feature and epoch asks another."""
    sigma = composition.gdp_sigma
    monkeypatch.setattr(composition, "gdp_sigma", lambda queries, *budget: sigma(1, *budget))
    with pytest.raises(BudgetError, match="root of the uses"):
        caught("dp-ebm-gdp", "binary")


def test_residuals_not_clipped(monkeypatch):
    boost = curator.boost

    def unclipped(codes, targets, given, *rest):
        return boost(codes, targets, replace(given, bound=2**27 - 1), *rest)

    assert not caught("dp-ebm-sound", "regression", trials=1200)
    monkeypatch.setattr(curator, "boost", unclipped)
    assert caught("dp-ebm-sound", "regression", trials=1200)


@pytest.mark.parametrize("name", ["dp-ebm-sound", "dpboost-sound"])
def test_a_constant_seed(name, monkeypatch):
    start = NoiseSource.__init__
    monkeypatch.setattr(NoiseSource, "__init__", lambda self, ledger, _: start(self, ledger, 42))
    assert caught(name, "binary", epsilon=1.0)


def test_histograms_without_noise(monkeypatch):
    answer = GaussianMechanism.answer

    def silent(self, exact, query, unit=1.0):
        release = answer(self, exact, query, unit)
        is_histogram = isinstance(query, queries.CellCounts)
        return replace(release, value=exact * unit) if is_histogram else release

    monkeypatch.setattr(GaussianMechanism, "answer", silent)
    assert caught("dp-ebm-sound", "binary", epsilon=1.0)


@pytest.mark.parametrize("name", ["exponential", "permute-and-flip"])
def test_a_choice_without_its_factor_of_two(name, monkeypatch):
    enter = f"enter_{name.replace('-', '_')}"
    scale = getattr(NoiseSource, enter)
    assert not caught(name, epsilon=2.0, trials=6000)
    monkeypatch.setattr(NoiseSource, enter, lambda *a, **k: scale(*a, **k) / 2)
    assert caught(name, epsilon=2.0, trials=6000)


@pytest.mark.parametrize("name", ["lazybb-1r", "lazybb-topdown"])
def test_weights_taken_for_four_times_as_smooth(name, monkeypatch):
    plant(monkeypatch, "smooth_distance", lambda density, rows: smooth_distance(density, rows) / 4)
    assert caught(name, epsilon=2.0, trials=1000)


@pytest.mark.parametrize("name", ["lazybb-1r/boosted", "lazybb-topdown/boosted"])
def test_a_density_forgotten(name, monkeypatch):
    """Rows may weigh 1 / (kappa n), but noise is scaled for 1 / n."""
    plant(monkeypatch, "smooth_distance", lambda _, rows: 1 / rows)
    assert caught(name, epsilon=2.0, trials=600)


def test_every_round_spends_all_of_epsilon(monkeypatch):
    choice = calibration.choice_epsilon
    monkeypatch.setattr(
        calibration, "choice_epsilon", lambda how, _, *given: choice(how, 1, *given)
    )
    with pytest.raises(BudgetError):
        caught("lazybb-1r-approx/rounds", epsilon=2.0)
    monkeypatch.setattr(LazyBBCurator, "_require_budget", lambda *_: None)
    assert caught("lazybb-1r-approx/rounds", epsilon=2.0, trials=4000)


def test_a_split_pays_for_a_quarter_of_what_it_moves(monkeypatch):
    plant(monkeypatch, "gain_sensitivity", lambda *given: gain_sensitivity(*given) / 4)
    assert caught("lazybb-topdown/splits", epsilon=2.0, trials=400)


def plant(monkeypatch, name, wrong):
    """Make the noise follow a wrong figure; the curator must refuse it unless it has it, too."""
    monkeypatch.setattr(calibration, name, wrong)
    with pytest.raises(SensitivityError):
        find_case("lazybb-topdown/boosted", epsilon=2.0).fit(True, 0)
    for query in (lazybb_queries.RuleQuery, lazybb_queries.SplitQuery, lazybb_queries.LabelQuery):
        monkeypatch.setattr(query, "enforced", 1e-12)


# --- faults that others have shipped or published ------------------------------------------------


@pytest.mark.parametrize("name", ["dp-ebm-gdp", "dp-ebm-classic", "dp-ebm-joint"])
def test_the_published_regression(name):
    result = audit(find_case(name, "regression"), FEW, seed=1)
    assert result.verdict is AuditVerdict.EXCEEDED
    assert not result.unexplained
    assert "Theorem 6" in result.gaps[0]


@pytest.mark.parametrize(("name", "trials"), [("dpboost", 60), ("dp-linear", 200),
                                              ("dp-logistic", 300), ("toy-dp-ebm", 60),
                                              ("dp-bag", 400)])  # fmt: skip
def test_the_baselines_as_published(name, trials):
    result = audit(find_case(name), trials, seed=1)
    assert result.verdict is AuditVerdict.EXCEEDED
    assert result.gaps


class Shipped:
    """interpret-core's regressor on targets of `low` and a canary of `low` + 1, bounds public."""

    def __init__(self, low, present, seed):
        whole = LedgerEntry("cited", "the model", 1.0, "its word", 1.0, 1, (1.0, 1e-6))
        self.ledger_ = Ledger(1.0, 1e-6, "zero-out", [whole])
        x = np.append(np.arange(200) % 2, [1.0] * present)[:, None]
        y = np.append(np.full(200, low), [low + 1.0] * present)
        self.model = DPExplainableBoostingRegressor(
            epsilon=1.0, delta=1e-6, max_rounds=1, n_jobs=1, random_state=seed,
            privacy_bounds=np.array([[0.0, 1.0]]),
            privacy_target_min=low, privacy_target_max=low + 1.0,
        ).fit(x, y)  # fmt: skip

    def observe(self):
        """Sum of the leaf sums of the only step."""
        values = self.model.intercept_ + self.model.term_scores_[0]
        return np.array([np.sum(values * self.model.bin_weights_[0])])


@pytest.mark.filterwarnings("ignore:.*fixed random_state", "ignore:.*featuretypes")
@pytest.mark.parametrize(("low", "exceeded"), [(100.0, True), (0.0, False)])
def test_the_regressor_that_interpret_ships(low, exceeded):
    """30 fits a world suffice: far from 0, a row moves a leaf by a hundred times what is assumed.

    The control, targets in [0, 1], shows nothing.
    """
    case = Case("interpret", "regression", "a row or none", partial(Shipped, low), Shipped.observe)
    result = audit(case, 60, seed=4)
    assert (result.verdict is AuditVerdict.EXCEEDED) == exceeded
    assert (result.lower_bound > 1.0) == exceeded
