"""Parameters of DP-EBM and data that it cannot take."""

import numpy as np
import pytest

from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.privacy.composition import TWO_PHASE_COMPOSITIONS
from tests.methods.dp_ebm.test_dp_ebm import DOMAIN, RANGE, classifier, table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"delta": 0.0}, "delta must lie strictly"),
        ({"composition": "rdp"}, "composition must be one of"),
        ({"binning_share": 1.0}, "binning_share must lie"),
        ({"max_bins": 0}, "max_bins must be an integer from 1 to 256"),
        ({"max_bins": 2.5}, "max_bins must be an integer"),
        ({"n_epochs": 0}, "n_epochs must be an integer of at least 1"),
        ({"max_leaves": 0}, "max_leaves must be an integer"),
        ({"adjacency": "neighbours"}, "adjacency must be one of 'zero-out'"),
        ({"sensitivity": "low"}, "sensitivity must be one of 'published', 'sound'"),
        ({"learning_rate": 0}, "learning_rate must be a number above 0"),
        ({"monotone": {"x": "up"}}, "monotone must map features to increasing or decreasing"),
        ({"monotone": ["x"]}, "monotone must map features"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, y, _ = table(rows=20)
    with pytest.raises(ValueError, match=message):
        classifier(**change).fit(X, y)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X.assign(x=np.inf), y), "infinity"),
        (lambda X, y: (X.assign(x=np.nan), y), "has missing values"),
        (lambda X, y: (X.assign(c="z"), y), "category that is not in its domain"),
        (lambda X, y: (X.assign(x="text"), y), "'x' is numeric in the domain"),
        (lambda X, y: (X.iloc[:1], y[:1]), "minimum of 2"),
        (lambda X, y: (X.iloc[:0], y[:0]), "minimum of 2"),
        (lambda X, y: (X, np.arange(20)), "domain's labels '0' and '1' as text, or their codes"),
        (lambda X, y: (X, np.where(y, np.nan, 0.0)), "Input y contains NaN"),
        (lambda X, y: (X, np.where(y, np.inf, 0.0)), "infinity"),
        (lambda X, y: (X[["x"]], y), "X has 1 columns but the domain describes 2"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    ],
)
def test_bad_data_is_a_clear_value_error(spoil, message):
    X, y, _ = table(rows=20)
    with pytest.raises(ValueError, match=message):
        classifier().fit(*spoil(X, y))


def test_a_target_without_range_is_a_clear_value_error():
    X, _, y = table(rows=20)
    with pytest.raises(ValueError, match="target's range is empty or not finite"):
        DPEBMRegressor(domain=Domain(DOMAIN.features, (1.0, 1.0))).fit(X, y)


@pytest.mark.parametrize("composition", TWO_PHASE_COMPOSITIONS)
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 5000.0])
@pytest.mark.parametrize("estimator", [DPEBMClassifier, DPEBMRegressor])
def test_every_epsilon_from_a_ten_thousandth_to_thousands_has_a_grid(
    estimator, epsilon, composition
):
    X, labels, signal = table(rows=300)
    is_classifier = estimator is DPEBMClassifier
    for sensitivity in ("published", "sound"):
        model = estimator(
            epsilon, composition=composition, domain=DOMAIN if is_classifier else RANGE,
            sensitivity=sensitivity, n_epochs=3, random_state=0,
        ).fit(X, labels if is_classifier else signal)  # fmt: skip
        assert np.isfinite(model._scores(X)).all()


def test_an_epsilon_whose_noise_no_grid_holds_is_refused():
    X, labels, _ = table(rows=300)
    with pytest.raises(ValueError, match="cannot be drawn"):
        classifier(epsilon=1e-13, composition="classic", n_epochs=3).fit(X, labels)


@pytest.mark.parametrize("estimator", [DPEBMClassifier, DPEBMRegressor])
def test_a_rate_whose_steps_would_be_rounded_away_is_refused(estimator):
    X, labels, signal = table(rows=100)
    y, domain = (labels, DOMAIN) if estimator is DPEBMClassifier else (signal, RANGE)
    with pytest.raises(ValueError, match="at least 1e-06, got 9e-07"):
        estimator(learning_rate=9e-7, domain=domain).fit(X, y)


@pytest.mark.parametrize("estimator", [DPEBMClassifier, DPEBMRegressor])
def test_defaults_are_those_of_the_paper(estimator):
    """Nori et al. use them for all experiments."""
    defaults = estimator().get_params()
    assert (defaults["n_epochs"], defaults["learning_rate"]) == (300, 0.01)
    assert (defaults["max_bins"], defaults["max_leaves"]) == (32, 3)
    assert (defaults["binning_share"], defaults["epsilon"]) == (0.1, 1.0)


def test_a_function_of_one_leaf_is_flat():
    X, y, _ = table(200)
    model = classifier(max_leaves=1, n_epochs=5).fit(X, y)
    assert [np.ptp(shape) for shape in model.shape_functions_] == [0.0, 0.0]


def test_a_function_can_be_made_monotone_after_the_fit():
    X, y, _ = table(300)
    free = classifier(epsilon=0.5).fit(X, y)
    bound = classifier(epsilon=0.5, monotone={"x": "increasing"}).fit(X, y)
    assert (np.diff(free.shape_functions_[0]) < 0).any()
    assert (np.diff(bound.shape_functions_[0]) >= -1e-9).all()
    assert bound.ledger_.entries == free.ledger_.entries


@pytest.mark.parametrize("estimator", [DPEBMClassifier, DPEBMRegressor])
def test_more_budget_states_less_noise_of_functions(estimator):
    X, labels, targets = table(300)
    domain, y = (DOMAIN, labels) if estimator is DPEBMClassifier else (RANGE, targets)
    little, much = (
        estimator(epsilon, domain=domain, random_state=0, n_epochs=20, max_bins=4).fit(X, y)
        for epsilon in (1.0, 100.0)
    )
    for k in range(2):
        assert much.shape_noise_[k].max() < little.shape_noise_[k].min() / 5


@pytest.mark.parametrize(("sensitivity", "known"), [("sound", (-1.0, 2.0)), ("published", None)])
def test_only_sound_predictions_have_a_range(sensitivity, known):
    X, _, y = table(200)
    model = DPEBMRegressor(domain=RANGE, sensitivity=sensitivity, n_epochs=2).fit(X, y)
    assert model.range_ == known


@pytest.mark.parametrize("estimator", [DPEBMClassifier, DPEBMRegressor])
def test_the_least_rate_is_taken(estimator):
    estimator(learning_rate=1e-6).check_parameters()
    with pytest.raises(ValueError, match="at least 1e-06, got 9e-07"):
        estimator(learning_rate=9e-7).check_parameters()
