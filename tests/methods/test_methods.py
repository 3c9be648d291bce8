"""What every method must do, whatever it is: a new method is tested by being there."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.methods.entry import Guarantee, Made, Setting
from dprepro.methods.registry import all_methods
from tests.methods.quick import quick

FEATURES = (NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b")))
CASES = [(method, task) for method in all_methods().values() for task in sorted(method.tasks)]
PRIVATE = [(method, task) for method, task in CASES if method.takes_epsilon]

# What reads square images, and no other rows.
IMAGES = {"cnn", "dp-cnn"}

pytestmark = pytest.mark.filterwarnings("ignore", category=ConvergenceWarning)


def ids(cases):
    return [f"{method.name}-{task}" for method, task in cases]


def problem(task, rows=400, images=False):
    if images:
        return pictures(task, rows)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(rows), "c": rng.choice(["a", "b"], rows)})
    signal = X["x"].to_numpy() + (X["c"] == "b")
    if task == "regression":
        return X, signal, Domain(FEATURES, (0.0, 2.0))
    classes = 2 if task == "binary" else 3
    y = np.clip((signal * classes / 2).astype(int), 0, classes - 1)
    return X, y, Domain(FEATURES, tuple(map(str, range(classes))))


def pictures(task, rows):
    """Images of 16 x 16 pixels, each class brighter in columns of its own."""
    rng, classes = np.random.default_rng(0), 2 if task == "binary" else 3
    y = rng.integers(0, classes, rows)
    pixels = rng.random((rows, 16, 16)) / 2
    pixels[np.arange(rows), :, 4 * y] += 0.5
    features = tuple(NumericFeature(f"pixel{k}", 0, 1) for k in range(256))
    X = pd.DataFrame(pixels.reshape(rows, -1), columns=[f.name for f in features])
    return X, y, Domain(features, tuple(map(str, range(classes))))


def fit(method, task, epsilon=2.0, seed=0):
    X, y, domain = problem(task, images=method.name in IMAGES)
    X = ENCODINGS[method.encoding](domain).transform(X)
    epsilon, delta = (epsilon, 1e-6) if method.takes_epsilon else (math.inf, 0.0)
    if method.requires:
        pytest.importorskip(method.requires)
    model = method.build(Setting(task, epsilon, delta, domain, seed), **quick(method))
    return model.fit(X, y), X


@pytest.mark.parametrize(("method", "task"), CASES, ids=ids(CASES))
def test_it_builds_fits_and_predicts_finite_values(method, task):
    model, X = fit(method, task)
    assert len(model.predict(X)) == len(X)
    if task != "regression":
        scores = (
            model.decision_function(X)
            if hasattr(model, "decision_function")
            else model.predict_proba(X)
        )
        assert np.isfinite(scores).all()
    clone(model)


@pytest.mark.parametrize(("method", "task"), CASES, ids=ids(CASES))
def test_the_same_seed_gives_the_same_predictions(method, task):
    first, X = fit(method, task)
    second, _ = fit(method, task)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize(("method", "task"), PRIVATE, ids=ids(PRIVATE))
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_ledger_verifies_within_the_budget(method, task, epsilon):
    model, _ = fit(method, task, epsilon, seed=None)
    ledger = model.ledger_
    assert ledger.entries
    assert ledger.spent_epsilon() > 0
    # A method that promises nothing may overspend, if it says so.
    overspending_is_named = any("budget" in gap for gap in ledger.gaps)
    assert ledger.within_budget or (method.guarantee is Guarantee.NONE and overspending_is_named)
    assert ledger.adjacency == method.adjacency


@pytest.mark.parametrize(("method", "task"), PRIVATE, ids=ids(PRIVATE))
def test_a_stated_guarantee_holds_or_its_gap_is_named(method, task):
    """On a public domain and without a seed, only named gaps may break a stated guarantee."""
    model, _ = fit(method, task, seed=None)
    if method.guarantee is Guarantee.NONE:
        assert not model.ledger_.holds
    elif not model.ledger_.holds:
        assert model.ledger_.gaps
    if method.guarantee is Guarantee.PURE:
        assert model.ledger_.delta == 0.0


@pytest.mark.parametrize("method", all_methods().values(), ids=lambda m: m.name)
def test_the_entry_is_complete(method):
    assert method.encoding in ENCODINGS
    assert method.reference
    assert method.tasks
    assert (method.adjacency is not None) == method.takes_epsilon
    assert method.takes_epsilon or method.guarantee is Guarantee.NONE
    assert bool(method.assumes) == method.takes_epsilon


@pytest.mark.parametrize(("method", "task"), CASES, ids=ids(CASES))
def test_listed_defaults_are_the_real_ones(method, task):
    if method.requires:
        pytest.importorskip(method.requires)
    _, _, domain = problem(task)
    setting = Setting(task, 1.0, 1e-6, domain, 0)
    plain = method.build(setting).get_params()
    given = method.defaults
    if isinstance(method.build, Made):  # others may be for another task
        given = {name: value for name, value in given.items() if name in plain}
    explicit = method.build(setting, **given).get_params()
    # What the estimator has no parameter for is an option of the method itself.
    for name in method.defaults.keys() & plain.keys():
        assert explicit[name] == plain[name]
    assert explicit == plain
