"""Fits: the tree finds what goes together, rows follow the domain, seeds repeat them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import PrivacyWarning
from dprepro.methods.synthetic.estimator import SyntheticClassifier, SyntheticRegressor
from dprepro.methods.synthetic.mst import drawn_cells
from dprepro.methods.synthetic.tree_model import MOST_ROWS, TreeModel

FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("z", 0, 1, missing=True),
    CategoricalFeature("c", ("a", "b", "rare")),
)
LABELS, RANGE = Domain(FEATURES, ("no", "yes")), Domain(FEATURES, (-1.0, 2.0))


def table(n=4000, seed=0):
    """Return rows where z follows x, and the label c; some z are missing."""
    rng = np.random.default_rng(seed)
    x, c = rng.random(n), rng.choice(["a", "b"], n)
    z = np.where(rng.random(n) < 0.1, np.nan, np.clip(x + rng.normal(0, 0.05, n), 0, 1))
    y = np.where((c == "b") ^ (rng.random(n) < 0.1), "yes", "no")
    return pd.DataFrame({"x": x, "z": z, "c": c}), y


def fit(epsilon=8.0, seed=0, rows=None, **params):
    X, y = table() if rows is None else rows
    return SyntheticClassifier(epsilon=epsilon, domain=LABELS, random_state=seed, **params).fit(
        X, y
    )


def test_the_tree_finds_the_columns_that_go_together():
    """At a large epsilon: z with x, and the label, column 3, with c."""
    for seed in range(3):
        pairs = fit(seed=seed).pairs_
        assert {*pairs[:2]} == {(0, 1), (2, 3)}
        assert len(pairs) == 3


def test_rows_are_about_as_many_as_there_are_and_follow_the_strong_pair():
    model = fit()
    X, y = model.synthetic_rows()
    assert abs(len(X) - 4000) < 50
    assert list(X) == ["x", "z", "c"]
    assert X["z"].isna().mean() == pytest.approx(0.1, abs=0.02)
    known = X.dropna()
    assert np.corrcoef(known["x"], known["z"])[0, 1] > 0.8
    assert ((X["c"] == "b") == (y.astype(str) == "1")).mean() == pytest.approx(0.9, abs=0.02)
    assert np.unique(X["x"]).size <= 32


def test_it_learns_labels_of_rows_as_they_are():
    X, y = table(seed=1)
    model = fit()
    assert model.score(X, y) > 0.88
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_several_classes_and_numbers_are_learnt():
    X, _ = table()
    y = np.array(["l", "m", "h"])[np.digitize(X["x"], [0.3, 0.7])]
    domain = Domain(FEATURES, ("l", "m", "h"))
    classes = SyntheticClassifier(epsilon=8.0, domain=domain, random_state=0).fit(X, y)
    assert classes.score(X, y) > 0.9
    assert classes.predict_proba(X).shape == (4000, 3)
    numbers = SyntheticRegressor(epsilon=8.0, domain=RANGE, random_state=0).fit(X, 3 * X["x"] - 1)
    assert numbers.score(X, 3 * X["x"] - 1) > 0.98
    assert numbers.predict(X).max() <= 2.0


def test_a_seed_repeats_all_and_another_draws_other_rows():
    one, two, other = fit(1.0), fit(1.0), fit(1.0, seed=1)
    np.testing.assert_array_equal(one.cells_, two.cells_)
    X, _ = table(50, seed=2)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert not np.array_equal(one.cells_, other.cells_)
    unseeded = [fit(1.0, seed=None).cells_ for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_the_ledger_holds_and_names_what_it_takes_as_public():
    ledger = fit(1.0, seed=None).ledger_
    assert ledger.holds
    assert ledger.spent_epsilon() == pytest.approx(1.0, rel=1e-5)
    assert not ledger.floating_point
    assert not any("number of rows" in text for text in ledger.assumed_public)
    with pytest.warns(PrivacyWarning):
        observed = SyntheticClassifier(random_state=0).fit(*table(200)).ledger_
    assert not observed.holds


def test_a_row_out_of_the_domain_is_refused_without_a_word_of_its_value():
    X, y = table(20)
    X.loc[3, "c"] = "secret"
    with pytest.raises(ValueError, match="category that is not in its domain") as error:
        fit(rows=(X, y))
    assert "secret" not in str(error.value)
    X, y = table(20)
    X.loc[3, "x"] = np.nan
    with pytest.raises(ValueError, match="'x' has missing values"):
        fit(rows=(X, y))


def test_at_a_tiny_epsilon_all_cells_are_one_and_rows_are_bounded():
    X, y = table(20)
    model = fit(1e-3, rows=(X, y))
    assert 2 <= len(model.cells_) <= MOST_ROWS
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_where_all_rows_have_one_label_its_probability_is_1(monkeypatch):
    draw = TreeModel.draw

    def of_one_label(model, generator):
        drawn = draw(model, generator)
        drawn[:, -1] = 1
        return drawn

    monkeypatch.setattr(TreeModel, "draw", of_one_label)
    model = fit()
    assert isinstance(model.learner_, DummyClassifier)
    np.testing.assert_array_equal(model.predict_proba(table(5)[0]), [[0, 1]] * 5)


def test_merged_cells_are_divided_evenly():
    model = TreeModel(
        6000, (np.array([3000.0, 3000.0]), np.array([6000.0])), {(0, 1): np.full((2, 1), 3000.0)}
    )
    places = [np.array([1, 0, 1, 1]), np.array([0])]
    cells = drawn_cells(model, places, np.random.default_rng(0))
    assert np.bincount(cells[:, 0])[1] == 3000
    np.testing.assert_allclose(np.bincount(cells[:, 0])[[0, 2, 3]], 1000, atol=120)


@pytest.mark.parametrize("n_bins", [1, 1001, 2.5])
def test_bins_out_of_range_are_refused(n_bins):
    with pytest.raises(ValueError, match="n_bins must be"):
        fit(n_bins=n_bins)


@pytest.mark.parametrize("epsilon", [1e-4, 1e4])
def test_what_the_accountant_cannot_show_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be a number from 0\.001 to 1000"):
        fit(epsilon)


def test_a_pickled_model_predicts_the_same():
    X, _ = table(200)
    model = SyntheticRegressor(domain=RANGE, random_state=0).fit(X, 3 * X["x"] - 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
