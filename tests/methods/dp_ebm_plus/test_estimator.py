"""DP-EBM+ as an estimator: ledger, refusals, invariances, and that it beats DP-EBM."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from dprepro import load
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import PrivacyWarning
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from dprepro.privacy.ledger import spent_epsilon
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, FEATURES, RANGE, table
from tests.methods.dp_ebm_plus.stub import BOTH


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_ledger_spends_the_budget_and_no_more(epsilon):
    X, labels, y = table()
    for model in (
        DPEBMPlusClassifier(epsilon, domain=DOMAIN).fit(X, labels),
        DPEBMPlusRegressor(epsilon, domain=RANGE).fit(X, y),
    ):
        assert [entry.uses for entry in model.ledger_.entries] == [1, 3, 64]
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


def test_the_ledger_does_not_depend_on_the_rows():
    ledgers = []
    for rows in (20, 3000):
        X, labels, _ = table(rows)
        ledgers.append(DPEBMPlusClassifier(domain=DOMAIN, n_epochs=2).fit(X, labels).ledger_)
    assert ledgers[0].summary() == ledgers[1].summary()


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


@pytest.mark.parametrize("bounds", [(1e308, 1.5e308), (-1.7e308, 1.7e308)])
def test_ranges_that_overflow_are_refused(bounds):
    X, _, y = table(50)
    with pytest.raises(ValueError, match=r"at most 8\.5e\+270 in size"):
        DPEBMPlusRegressor(domain=Domain(FEATURES, bounds)).fit(X, y)


# --- what is learned ----------------------------------------------------------------------------


def drawn(numbers, rows=3000):
    """Return a table of two features, one that says much and one that says nothing."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.uniform(size=rows), "c": rng.choice(list("ab"), rows)})
    score = 4 * np.sin(3 * X["x"].to_numpy()) - 2 + 0.5 * rng.normal(size=rows)
    y = np.clip(score, -4, 4) if numbers else (score > 0).astype(int)
    target = (-4.0, 4.0) if numbers else ("0", "1")
    return X, y, Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), target)


@pytest.mark.parametrize("kind", [DPEBMPlusClassifier, DPEBMPlusRegressor])
def test_a_fit_learns_what_is_there_and_spends_what_it_says(kind):
    X, y, domain = drawn(kind is DPEBMPlusRegressor)
    model = kind(epsilon=1, delta=1e-6, domain=domain, n_epochs=8, random_state=2).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.ledger_.epsilon == 1
    assert [entry.uses for entry in model.ledger_.entries] == [1, 2, 8]
    assert 0.99 < model.ledger_.spent_epsilon() < 1 + 1e-5
    sizes = [np.ptp(shape) for shape in model.shape_functions_]
    assert sizes[0] > 5 * sizes[1]


def test_where_all_is_noise_no_function_is_zero_and_none_is_large():
    X, y, domain = drawn(numbers=False, rows=200)
    model = DPEBMPlusClassifier(0.01, domain=domain, n_epochs=8, random_state=3).fit(X, y)
    sizes = np.array([np.abs(shape).max() for shape in model.shape_functions_])
    assert ((sizes > 0) & (sizes < 2)).all()


def test_real_rows_are_ranked_well(data_dir):
    data = load("mammography", data_dir)
    X, y = data.X.iloc[::2].reset_index(drop=True), np.asarray(data.y)[::2]
    model = DPEBMPlusClassifier(1.0, domain=data.domain, n_epochs=16, random_state=0).fit(X, y)
    rest = data.X.iloc[1::2]
    scores = model.decision_function(rest)
    positive = np.asarray(data.y)[1::2] == model.classes_[1]
    ranks = pd.Series(scores).rank().to_numpy()
    n, m = positive.sum(), (~positive).sum()
    assert (ranks[positive].sum() - n * (n + 1) / 2) / (n * m) > 0.85


@BOTH
def test_without_a_feature_the_intercept_is_learned(loss):
    """No share is divided by zero, and all of the budget is spent."""
    domain = Domain((NumericFeature("x", 3, 3),), ("0", "1") if loss is LOGISTIC else (-1.0, 1.0))
    estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
    X, y = pd.DataFrame({"x": np.full(300, 3.0)}), np.arange(300) % 4 == 0
    model = estimator(1.0, 1e-6, domain=domain, random_state=0).fit(X, y.astype(int))
    assert model.ledger_.spent_epsilon() == pytest.approx(1.0, abs=1e-3)
    assert -3 < model.intercept_ < 1


def test_a_rare_label_is_learned_though_features_depend_on_each_other(data_dir):
    """cod-rna with 300 of its positives, under 1 % of the rows: the features go together."""
    table = load("cod-rna", data_dir, online=False)
    y = np.asarray(table.y)
    positive = np.random.default_rng(0).permutation(np.flatnonzero(y == 1))[:300]
    picked = np.sort(np.concatenate([np.flatnonzero(y == 0), positive]))
    X, y = table.X.iloc[picked].reset_index(drop=True), y[picked]
    train, test = split_rows(y.size, 0.2, 0, "cod-rna", 0)
    model = DPEBMPlusClassifier(8.0, 1e-6, domain=table.domain, random_state=0)
    chances = model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])[:, 1]
    constant = log_loss(y[test], np.full(test.size, y[train].mean()))
    assert log_loss(y[test], chances) < 0.75 * constant
    assert roc_auc_score(y[test], chances) > 0.9
