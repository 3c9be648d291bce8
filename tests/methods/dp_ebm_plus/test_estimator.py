"""DP-EBM+ as an estimator: ledger, refusals, invariances, and that it beats DP-EBM."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.additive.describe import had_few_rows
from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.inputs import PrivacyWarning
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import SQUARED
from dprepro.privacy.ledger import spent_epsilon
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, FEATURES, RANGE, table


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_ledger_spends_the_budget_and_no_more(epsilon):
    X, labels, y = table()
    fits = (
        DPEBMPlusClassifier(epsilon, domain=DOMAIN).fit(X, labels),
        DPEBMPlusRegressor(epsilon, domain=RANGE).fit(X, y),
    )
    for model, n_epochs in zip(fits, (32, 64), strict=True):
        # At 0.1 the 3,000 rows are few for numbers, but for noise in their number and spread.
        n_epochs = n_epochs if had_few_rows(model) else 32
        totals, histograms, epochs = model.ledger_.entries
        assert (totals.uses, histograms.uses, epochs.uses) == (1, 3, n_epochs)
        assert model.ledger_.adjacency == "add/remove-one"
        assert model.ledger_.spent_epsilon() == pytest.approx(epsilon, abs=1e-4)
        assert model.ledger_.within_budget
        assert model.ledger_.holds


@pytest.mark.parametrize("epsilon", [200.0, 1000.0])
def test_very_large_epsilons_are_fitted(epsilon):
    """The accountant's grain is coarse there: it may find a thousandth too much.

    It is asked for ideal draws: at 1000 the samplers' distance leaves nothing of delta.
    """
    X, labels, y = table(400)
    for model in (
        DPEBMPlusClassifier(epsilon, domain=DOMAIN, n_epochs=4).fit(X, labels),
        DPEBMPlusRegressor(epsilon, domain=RANGE, n_epochs=4).fit(X, y),
    ):
        ledger = model.ledger_
        ideal = spent_epsilon(tuple(ledger.entries), ledger.delta)
        assert 0.99 * epsilon < ideal <= 1.001 * epsilon
        assert ledger.spent_epsilon() == (ideal if epsilon < 260 else math.inf)


def test_the_ledger_depends_on_the_released_number_of_rows_alone(monkeypatch):
    ledgers = {}
    for released in (300.0, 3000.0):
        for rows in (20, 3000):
            X, labels, _ = table(rows)
            monkeypatch.setattr(
                algorithm, "release_totals", lambda *_, n=released: (n, 0.0, 0.5, 1.0)
            )
            ledger = DPEBMPlusClassifier(domain=DOMAIN).fit(X, labels).ledger_
            assert ledger.spent_epsilon() == pytest.approx(1.0, abs=1e-4)
            ledgers[released, rows] = ledger.summary()
    assert ledgers[300.0, 20] == ledgers[300.0, 3000]
    assert ledgers[3000.0, 20] == ledgers[3000.0, 3000]
    # With few rows less goes to the histograms.
    assert ledgers[300.0, 20] != ledgers[3000.0, 20]


def test_bounds_are_never_guessed_unless_told():
    X, labels, _ = table(50)
    observed = Domain.observe(X, labels.astype(str), "binary")
    for domain in (None, observed):
        with pytest.raises(ValueError, match="does not guess bounds: pass domain"):
            DPEBMPlusClassifier(domain=domain).fit(X, labels)
    model = DPEBMPlusClassifier(domain=observed, observed=True).fit(X, labels)
    assert "bounds of x, money" in model.ledger_.unaccounted
    assert not model.ledger_.holds
    with pytest.warns(PrivacyWarning, match="Epsilon does not cover"):
        DPEBMPlusClassifier(observed=True).fit(X, labels)


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
        assert model.ledger_.spent_epsilon() <= 1 + 1e-6


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


def rare(rows, seed):
    """Return a table of 0.5 % positives, which often lie far out; bounds are generous."""
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < 0.005
    far = labels[:, None] & (rng.random((rows, 3)) < 0.6)
    values = rng.standard_normal((rows, 3)) + far * rng.uniform(5, 20, (rows, 3))
    return pd.DataFrame(values, columns=["p", "q", "r"]), labels.astype(int)


def rare_auc(estimator, bound, seed):
    domain = Domain(tuple(NumericFeature(f, -bound, bound) for f in "pqr"), ("0", "1"))
    model = estimator(1.0, domain=domain, random_state=seed).fit(*rare(20_000, seed))
    X, labels = rare(20_000, 99)
    return roc_auc_score(labels, model.decision_function(X))


def test_rare_labels_far_out_are_found_within_generous_bounds():
    """DP-EBM's even cells hold all rows in a few; on tight bounds it is ahead by a little."""
    plus, plain = (
        np.mean([rare_auc(estimator, 1000, seed) for seed in range(4)])
        for estimator in (DPEBMPlusClassifier, DPEBMClassifier)
    )
    assert plus > plain + 0.1


@pytest.mark.parametrize("only", ["no", "yes"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_table_with_one_label_gives_probabilities(only, epsilon):
    X, _, _ = table(400)
    domain = Domain(FEATURES, ("no", "yes"))
    for seed in range(3):
        model = DPEBMPlusClassifier(epsilon, domain=domain, random_state=seed)
        model.fit(X, [only] * 400)
        assert model.classes_.tolist() == ["no", "yes"]
        shares = model.predict_proba(X)
        assert np.isfinite(shares).all()
        assert ((shares > 0) & (shares < 1)).all()
        if epsilon == 8:
            assert (model.predict(X) == only).all()


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


def test_scaled_targets_stay_in_the_unit_that_is_charged():
    rounding = Domain(FEATURES, (1e16, 1e16 + 2))
    targets = SQUARED.targets(np.repeat([1e16, 1e16 + 2], 25), rounding)
    assert np.abs(targets).max() == 2**23


@pytest.mark.parametrize("bounds", [(1e308, 1.5e308), (-1.7e308, 1.7e308)])
def test_ranges_that_overflow_are_refused(bounds):
    X, _, y = table(50)
    with pytest.raises(ValueError, match=r"at most 8\.5e\+270 in size"):
        DPEBMPlusRegressor(domain=Domain(FEATURES, bounds)).fit(X, y)
