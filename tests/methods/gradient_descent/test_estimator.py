"""Noisy gradient descent: logistic regression where noise is small, within its budget always."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.gradient_descent.estimator import DPGradientDescentClassifier

DOMAIN = Domain((NumericFeature("a", 0, 1), NumericFeature("b", -2, 2)), ("no", "yes"))


def table(n=3000, curved=False):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(n), "b": rng.uniform(-2, 2, n)})
    effect = 3 * np.abs(X["b"]) - 3 if curved else 2 * X["b"]
    return X, (effect + 2 * X["a"] - 1 + rng.logistic(size=n) > 0).astype(int).to_numpy()


def test_with_a_large_budget_and_many_steps_it_is_logistic_regression():
    X, y = table()
    model = DPGradientDescentClassifier(
        epsilon=1000.0, knots=2, steps=400, largest_rate=8.0, domain=DOMAIN, random_state=0
    ).fit(X, y)
    plain = LogisticRegression(C=1e6).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.05)
    assert (model.predict(X) == plain.predict(X)).mean() > 0.98


def test_knots_follow_what_is_not_linear():
    X, y = table(curved=True)
    line, splines = (
        roc_auc_score(
            y,
            DPGradientDescentClassifier(epsilon=8.0, knots=knots, domain=DOMAIN, random_state=0)
            .fit(X, y)
            .decision_function(X),
        )
        for knots in (2, 8)
    )
    assert splines > line + 0.1


def test_it_spends_its_budget_on_the_count_and_on_all_steps():
    X, y = table(300)
    model = DPGradientDescentClassifier(epsilon=2.0, delta=1e-5, steps=7, domain=DOMAIN)
    ledger = model.fit(X, y).ledger_
    assert [entry.uses for entry in ledger.entries] == [1, 7]
    assert ledger.spent_epsilon() == pytest.approx(2.0, abs=1e-6)
    assert ledger.holds


def test_progress_bounds_what_noise_adds_up_to():
    """Labels without any signal and a small budget: the weights are noise."""
    X, y = table(300)
    y = np.arange(300) % 2
    small, large = (
        np.abs(
            DPGradientDescentClassifier(
                epsilon=0.01, progress=progress, domain=DOMAIN, random_state=0
            ).fit(X, y).coef_
        ).max()
        for progress in (0.1, 1.0)
    )  # fmt: skip
    assert 0 < small < 3 * 0.1
    assert 5 * small < large < 3 * 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"knots": 1}, "knots"),
        ({"steps": 0}, "steps"),
        ({"progress": -1.0}, "progress"),
        ({"largest_rate": np.nan}, "largest_rate"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        DPGradientDescentClassifier(domain=DOMAIN, **parameters).fit(*table(20))
