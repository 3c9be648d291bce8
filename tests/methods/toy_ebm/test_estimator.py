"""The toy DP-EBM does what the slides say, and its ledger says why that is not private."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dprepro.methods.toy_ebm.estimator import ToyDPEBMClassifier, ToyDPEBMRegressor

NOISELESS = {"epsilon": 1e9, "random_state": 0}


def frame(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=n), "c": rng.choice(["a", "b", "z"], n)})


def naive(X, y, edges, epochs, rate):
    """Boost without noise, a row at a time."""
    bins = [np.clip(np.digitize(X["x"], edges) - 1, 0, len(edges) - 2), X["c"].to_numpy()]
    scores = np.zeros(len(y))
    for _ in range(epochs):
        for column in bins:
            step = np.zeros(len(y))
            for value in set(column):
                mask = column == value
                step[mask] = rate * np.mean(y[mask] - scores[mask])
            scores += step
    return scores


def test_without_noise_every_bin_moves_by_its_mean_residual():
    X = frame()
    y = X["x"].to_numpy() + 2.0 * (X["c"] == "z")
    model = ToyDPEBMRegressor(
        **NOISELESS, n_epochs=5, learning_rate=0.3, max_bins=4, sigmoid=False
    ).fit(X, y)
    edges = np.quantile(X["x"], np.linspace(0, 1, 5))
    np.testing.assert_allclose(model.predict(X), naive(X, y, edges, 5, 0.3), atol=1e-6)


def test_unseen_and_missing_categories_add_nothing():
    X = frame()
    model = ToyDPEBMRegressor(epsilon=1.0, sigmoid=False, random_state=0, n_epochs=3).fit(
        X, X["x"].to_numpy()
    )
    other = X.assign(c="new")
    expected = model.predict(X) - model.shapes_[1][model.bins_[1].encode(X["c"])]
    np.testing.assert_allclose(model.predict(other), expected)
    np.testing.assert_allclose(model.predict(X.assign(c=None)), expected)


def test_equal_values_of_other_types_are_categories_of_their_own():
    X = frame().assign(c=pd.Series([1, True, "1", None] * 75, dtype=object))
    y = (X["c"].map(str) == "True").to_numpy() * 10.0
    model = ToyDPEBMRegressor(**NOISELESS, n_epochs=200, learning_rate=0.3, sigmoid=False).fit(X, y)
    assert model.bins_[1].categories == ("1", "True")
    np.testing.assert_allclose(model.predict(X), y, atol=0.1)


def test_the_noise_is_what_the_slides_say():
    X, y = frame(2000), np.tile([0, 1], 1000)
    settings = {"max_bins": 32, "n_epochs": 200, "learning_rate": 1e-4}  # residuals hardly move
    noisy = ToyDPEBMClassifier(0.5, 1e-5, **settings, random_state=3).fit(X, y)
    clear = ToyDPEBMClassifier(**NOISELESS, delta=1e-5, **settings).fit(X, y)
    draws = (noisy.shapes_[0] - clear.shapes_[0]) / (1e-4 * math.sqrt(200))
    expected = math.sqrt(2 * math.log(1.25 / 1e-5)) / 0.5
    assert noisy.ledger_.entries[0].scale == pytest.approx(expected)
    assert np.std(draws) == pytest.approx(expected, rel=0.5)


def test_the_ledger_promises_nothing():
    X, y = frame(), np.tile([0, 1], 150)
    ledger = ToyDPEBMClassifier(1.0, 1e-5).fit(X, y).ledger_
    assert not ledger.holds
    assert len(ledger.unaccounted) == len(ledger.gaps) == 3
    assert [entry.uses for entry in ledger.entries] == [300, 300]
    # 600 uses of noise made for one, even if the assumed sensitivity were right.
    assert ledger.spent_epsilon() > 20


def test_a_bin_of_one_row_moves_by_far_more_than_the_ledger_assumes():
    """Zero-out brute force: the mean of a bin is not a statistic of sensitivity 1."""
    X = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0, 2.0, 3.0]})
    y = np.array([0.0, 0, 0, 0, 0, 100.0])
    settings = {**NOISELESS, "n_epochs": 1, "learning_rate": 1.0, "max_bins": 6, "sigmoid": False}
    full = ToyDPEBMRegressor(**settings).fit(X, y).predict(X)
    nulled = ToyDPEBMRegressor(**settings).fit(X, np.where(y == 100, 0, y)).predict(X)
    assert np.max(np.abs(full - nulled)) > 10


@pytest.mark.parametrize("sigmoid", [True, False])
def test_the_sigmoid_is_on_what_is_predicted(sigmoid):
    X = frame()
    y = X["x"].to_numpy() * 10 + 20
    model = ToyDPEBMRegressor(8.0, n_epochs=50, sigmoid=sigmoid, random_state=0).fit(X, y)
    scores = model._scores(X)
    np.testing.assert_array_equal(model.predict(X), expit(scores) if sigmoid else scores)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"delta": 0.0}, "delta must lie strictly"),
        ({"learning_rate": 2}, "learning_rate must be a number above 0"),
        ({"max_bins": 1}, "max_bins must be an integer of at least 2"),
        ({"n_epochs": 0}, "n_epochs must be an integer of at least 1"),
    ],
)
def test_parameters_out_of_range_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        ToyDPEBMClassifier(**setting).fit(frame(), np.tile([0, 1], 150))
