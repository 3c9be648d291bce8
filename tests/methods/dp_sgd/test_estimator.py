"""DP-SGD learns where noise is small, keeps to its budget always, and repeats by its seed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_sgd.estimator import DPSGDClassifier, DPSGDRegressor

FEATURES = (NumericFeature("a", 0, 1), NumericFeature("b", -2, 2))
DOMAIN = Domain(FEATURES, ("no", "yes"))
CLASSES = Domain(FEATURES, ("0", "1", "2"))
RANGE = Domain(FEATURES, (0.0, 10.0))


def table(n=3000):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.random(n), "b": rng.uniform(-2, 2, n)})


def inside(X):
    """Labels that no sum of functions of one feature explains."""
    return ((X["a"] > 0.5) == (X["b"] > 0)).to_numpy().astype(int)


def fitted(kind=DPSGDClassifier, domain=DOMAIN, y=None, n=3000, **params):
    X = table(n)
    y = inside(X) if y is None else y(X)
    settings = {"epsilon": 50.0, "learning_rate": 0.1, "random_state": 0} | params
    return kind(domain=domain, **settings).fit(X, y), X, y


def test_it_learns_what_features_do_together():
    model, X, y = fitted()
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
    assert (model.predict(X) == y).mean() > 0.85
    chances = model.predict_proba(X)
    assert chances.shape == (3000, 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(chances.argmax(axis=1), model.predict(X))


def test_it_learns_several_classes():
    model, X, y = fitted(domain=CLASSES, y=lambda X: (3 * X["a"]).astype(int).to_numpy())
    assert (model.predict(X) == y).mean() > 0.85
    assert model.decision_function(X).shape == (3000, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_it_learns_numbers_and_stays_within_their_range():
    model, X, y = fitted(DPSGDRegressor, RANGE, lambda X: (10 * X["a"] * (X["b"] > 0)).to_numpy())
    found = model.predict(X)
    assert np.sqrt(np.mean((found - y) ** 2)) < 0.4 * y.std()
    assert found.min() >= 0
    assert found.max() <= 10


@pytest.mark.parametrize("sampling", [0.1, 1.0])
def test_it_spends_its_budget_and_no_more(sampling):
    model, _, _ = fitted(n=200, epsilon=1.0, delta=1e-5, steps=20, sampling=sampling)
    ledger = model.ledger_
    (entry,) = ledger.entries
    assert (entry.uses, entry.sampling) == (20, sampling)
    assert 0.99 < ledger.spent_epsilon() <= 1 + 1e-6
    assert ledger.holds is False  # by its seed alone, which the ledger names
    assert not ledger.gaps
    assert not ledger.floating_point


def test_with_hardly_any_budget_it_is_noise():
    model, X, y = fitted(epsilon=1e-3, delta=1e-7, n=300, sampling=1.0)
    assert roc_auc_score(y, model.decision_function(X)) == pytest.approx(0.5, abs=0.25)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_seed_repeats_a_fit_and_none_does_not():
    one, two, other = (
        fitted(n=200, steps=20, random_state=seed)[0].network_.first for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()
    free = [fitted(n=200, steps=20, random_state=None)[0].network_.first for _ in range(2)]
    assert (free[0] != free[1]).any()


def test_rows_beyond_the_domain_count_as_its_ends():
    model, _, _ = fitted(n=300, steps=20)
    ends = pd.DataFrame({"a": [1.0, 0.0], "b": [2.0, -2.0]})
    beyond = pd.DataFrame({"a": [9.0, -1e300], "b": [1e300, -3.0]})
    np.testing.assert_array_equal(model.decision_function(ends), model.decision_function(beyond))


def test_labels_may_be_the_domains_texts():
    X = table(300)
    numbers = DPSGDClassifier(domain=DOMAIN, steps=20, random_state=0).fit(X, inside(X))
    words = np.array(["no", "yes"])[inside(X)]
    texts = DPSGDClassifier(domain=DOMAIN, steps=20, random_state=0).fit(X, words)
    np.testing.assert_array_equal(numbers.network_.first, texts.network_.first)
    assert set(texts.predict(X)) <= {"no", "yes"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"width": 0}, "width"),
        ({"width": 1025}, "width"),
        ({"steps": 0}, "steps"),
        ({"sampling": 0.0}, "sampling"),
        ({"sampling": 1.5}, "sampling"),
        ({"clip_norm": 17.0}, "clip_norm"),
        ({"clip_norm": np.nan}, "clip_norm"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        DPSGDClassifier(domain=DOMAIN, **parameters).fit(table(20), np.arange(20) % 2)


def test_a_target_without_a_range_is_refused():
    with pytest.raises(ValueError, match="range is empty"):
        DPSGDRegressor(domain=Domain(FEATURES, (1.0, 1.0))).fit(table(20), np.ones(20))
