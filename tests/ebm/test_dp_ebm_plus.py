"""DP-EBM+ as an estimator: ledger, refusals, invariances, and that it beats DP-EBM."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm import (
    DPEBMClassifier,
    DPEBMPlusClassifier,
    DPEBMPlusRegressor,
    DPEBMRegressor,
    PrivacyWarning,
)
from dprepro.privacy.mechanisms import NoiseSource

FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("money", 0, 1e5),
    CategoricalFeature("c", ("a", "b")),
)
DOMAIN = Domain(FEATURES, ("0", "1"))
RANGE = Domain(FEATURES, (-5.0, 5.0))


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.random(rows),
            "money": np.where(rng.random(rows) < 0.5, 0.0, np.exp(rng.normal(4, 2, rows))),
            "c": rng.choice(["a", "b"], rows),
        }
    )
    signal = np.sin(6 * X["x"]) + (X["money"] > 100) + (X["c"] == "b") - 1
    labels = (rng.logistic(size=rows) < 2 * signal).astype(int)
    return X, labels.to_numpy(), (signal + rng.normal(0, 0.1, rows)).to_numpy()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_ledger_spends_the_budget_and_no_more(epsilon):
    X, labels, y = table()
    fits = (
        DPEBMPlusClassifier(epsilon, domain=DOMAIN).fit(X, labels),
        DPEBMPlusRegressor(epsilon, domain=RANGE).fit(X, y),
    )
    for model in fits:
        totals, histograms, epochs = model.ledger_.entries
        assert (totals.uses, histograms.uses, epochs.uses) == (1, 3, 16)
        assert model.ledger_.adjacency == "add/remove-one"
        assert model.ledger_.verify() == pytest.approx(epsilon, abs=1e-4)
        assert model.ledger_.within_budget
        assert model.ledger_.holds


def test_the_ledger_does_not_depend_on_the_rows():
    ledgers = []
    for rows in (20, 3000):
        X, labels, _ = table(rows)
        ledgers.append(DPEBMPlusClassifier(domain=DOMAIN).fit(X, labels).ledger_.summary())
    assert ledgers[0] == ledgers[1]


def test_bounds_are_never_guessed_unless_told():
    X, labels, _ = table(50)
    observed = Domain.observe(X, labels.astype(str), "binary")
    for domain in (None, observed):
        with pytest.raises(ValueError, match="does not guess bounds: pass domain"):
            DPEBMPlusClassifier(domain=domain).fit(X, labels)
    model = DPEBMPlusClassifier(domain=observed, observed=True).fit(X, labels)
    assert "bounds of x, money" in model.ledger_.unpaid
    assert not model.ledger_.holds
    with pytest.warns(PrivacyWarning, match="unpaid for"):
        DPEBMPlusClassifier(observed=True).fit(X, labels)


def test_the_start_moves_by_no_more_than_it_is_charged_for():
    """Brute force over targets at the ends of their range: (1, t) has norm sqrt(5/4) at most."""
    X, _, y = table(40)
    model = DPEBMPlusRegressor(domain=RANGE).fit(X, y)
    worst = max(np.hypot(1.0, (t + 5) / 10 - 0.5) for t in np.linspace(-5, 5, 11))
    assert model.ledger_.entries[0].sensitivity == pytest.approx(worst)


def test_the_exact_number_of_rows_is_used_only_with_noise(monkeypatch):
    """Rows of weight zero everywhere would not be noticed: with the same answers, the same model.

    A row more of a table whose answers are all overwritten by noise leaves the model as it is.
    """
    gaussian = NoiseSource.gaussian
    monkeypatch.setattr(NoiseSource, "gaussian", lambda *a, **k: 1e30 * gaussian(*a, **k))
    X, labels, _ = table(401)
    models = [
        DPEBMPlusClassifier(domain=DOMAIN, random_state=1).fit(X[:rows], labels[:rows])
        for rows in (400, 401)
    ]
    for one, other in zip(*(m.bin_counts_ for m in models), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_order_of_rows_does_not_matter():
    X, labels, _ = table()
    shuffled = np.random.default_rng(1).permutation(len(X))
    one = DPEBMPlusClassifier(domain=DOMAIN, random_state=0).fit(X, labels)
    other = DPEBMPlusClassifier(domain=DOMAIN, random_state=0).fit(
        X.iloc[shuffled], labels[shuffled]
    )
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-4)


def test_predictions_are_in_the_targets_unit_and_range():
    X, _, y = table()
    wide = Domain(FEATURES, (-5000.0, 5000.0))
    one = DPEBMPlusRegressor(4.0, domain=RANGE, random_state=0).fit(X, y).predict(X)
    thousand = DPEBMPlusRegressor(4.0, domain=wide, random_state=0).fit(X, 1000 * y).predict(X)
    np.testing.assert_allclose(thousand, 1000 * one, rtol=1e-3, atol=1)
    tight = DPEBMPlusRegressor(domain=Domain(FEATURES, (0.0, 0.5))).fit(X, y).predict(X)
    assert 0 <= tight.min() <= tight.max() <= 0.5


def test_functions_rise_where_they_are_told_to():
    X, labels, y = table()
    for estimator, target, domain in (
        (DPEBMPlusClassifier, labels, DOMAIN),
        (DPEBMPlusRegressor, y, RANGE),
    ):
        model = estimator(domain=domain, monotone={"x": "increasing"}).fit(X, target)
        assert (np.diff(model.shape_functions_[0]) >= -1e-12).all()
        assert model.ledger_.verify() <= 1 + 1e-6


def test_it_beats_dp_ebm_on_skewed_features():
    X, labels, y = table(6000)
    test, test_labels, test_y = table(4000, seed=1)
    plus = DPEBMPlusClassifier(domain=DOMAIN, random_state=0).fit(X, labels)
    plain = DPEBMClassifier(domain=DOMAIN, random_state=0).fit(X, labels)
    aucs = [roc_auc_score(test_labels, m.decision_function(test)) for m in (plus, plain)]
    assert aucs[0] > aucs[1] + 0.01
    errors = [
        np.mean((estimator(domain=RANGE, random_state=0).fit(X, y).predict(test) - test_y) ** 2)
        for estimator in (DPEBMPlusRegressor, DPEBMRegressor)
    ]
    assert errors[0] < errors[1] / 2


@pytest.mark.parametrize("rows", [2, 3])
def test_tiny_tables_and_budgets_give_finite_models(rows):
    X = pd.DataFrame({"x": [0.0, 1.0, 0.5], "money": [0.0, 1.0, 1e5], "c": ["a", "b", "a"]})
    for epsilon in (1e-3, 8.0):
        labels = DPEBMPlusClassifier(epsilon, domain=DOMAIN).fit(X[:rows], [0, 1, 1][:rows])
        numbers = DPEBMPlusRegressor(epsilon, domain=RANGE).fit(X[:rows], [-5.0, 5, 0][:rows])
        assert np.isfinite(labels.decision_function(X)).all()
        assert np.isfinite(numbers.predict(X)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 0.0}, "delta must lie strictly between"),
        ({"n_epochs": 0}, "n_epochs must be an integer of at least 1"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    X, labels, _ = table(20)
    with pytest.raises(ValueError, match=message):
        DPEBMPlusClassifier(domain=DOMAIN, **parameters).fit(X, labels)


def test_scaled_targets_stay_in_the_unit_that_is_paid_for(monkeypatch):
    seen = []

    def capture(self, frame, targets, domain, logistic):
        seen.append(targets)
        raise InterruptedError

    monkeypatch.setattr(DPEBMPlusRegressor, "_train", capture)
    X, _, _ = table(50)
    rounding = Domain(FEATURES, (1e16, 1e16 + 2))
    with pytest.raises(InterruptedError):
        DPEBMPlusRegressor(domain=rounding).fit(X, np.repeat([1e16, 1e16 + 2], 25))
    assert np.abs(seen[0]).max() == 0.5


@pytest.mark.parametrize("bounds", [(1e308, 1.5e308), (-1.7e308, 1.7e308)])
def test_ranges_that_overflow_are_refused(bounds):
    X, _, y = table(50)
    with pytest.raises(ValueError, match="target's range is"):
        DPEBMPlusRegressor(domain=Domain(FEATURES, bounds)).fit(X, y)
