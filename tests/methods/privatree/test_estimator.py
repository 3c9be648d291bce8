"""The estimator: without noise the tree is the greedy one, and both forms say what they promise."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.privatree.curator import NOISY_SIZE, RANGES
from dprepro.methods.privatree.estimator import PrivaTreeClassifier

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("u", "v"))), ("no", "yes"))


def table(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(rows), "c": rng.choice(["u", "v"], rows)})
    y = np.where((X["x"] > 0.3) ^ (X["c"] == "v"), "yes", "no")
    return X, y


@pytest.mark.parametrize("as_published", [False, True])
def test_with_a_large_epsilon_the_tree_finds_both_features(as_published):
    X, y = table()
    model = PrivaTreeClassifier(
        epsilon=1e4, max_depth=2, domain=DOMAIN, as_published=as_published, random_state=0
    ).fit(X, y)
    assert model.score(*table(500, 1)) > 0.97
    assert set(model.predict_proba(X).ravel()) == {0.0, 1.0}
    assert sorted(model.tree_.feature.tolist()) in ([0, 1, 1], [0, 0, 1])


def test_the_first_cut_is_that_of_the_least_impurity():
    X, _ = table()
    y = np.where(X["x"] > 0.7, "yes", "no")
    model = PrivaTreeClassifier(epsilon=1e4, max_depth=1, domain=DOMAIN, random_state=0).fit(X, y)
    assert model.tree_.feature.tolist() == [0]
    assert model.bins_[0].edges[model.tree_.last[0]] == pytest.approx(0.7)
    assert model.classes_[model.tree_.label].tolist() == ["no", "yes"]


def test_the_sound_tree_holds_and_reads_nothing():
    model = PrivaTreeClassifier(domain=DOMAIN).fit(*table())
    ledger = model.ledger_
    assert ledger.holds
    assert ledger.is_sampled_exactly
    assert (ledger.unaccounted, ledger.gaps) == ([], [])
    assert "number of rows" in ledger.assumed_public


def test_as_published_the_ledger_names_ranges_and_the_gap_and_does_not_hold():
    X, y = table()
    model = PrivaTreeClassifier(domain=DOMAIN, as_published=True).fit(X, y)
    assert model.bins_[0].edges[-1] == X["x"].max() < 1
    ledger = model.ledger_
    assert ledger.unaccounted == [RANGES]
    assert ledger.gaps == [NOISY_SIZE]
    assert ledger.spent_epsilon() == pytest.approx(1.0)
    assert not ledger.holds


def test_without_rows_in_a_leaf_each_label_is_as_likely():
    X = pd.DataFrame({"x": np.full(200, 0.05), "c": ["u"] * 200})
    y = np.array(["yes", "no"] * 100)
    fits = [PrivaTreeClassifier(epsilon=1.0, domain=DOMAIN).fit(X, y) for _ in range(40)]
    share = np.mean([model.tree_.label.mean() for model in fits])
    assert share == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    "given", [{"max_depth": 0}, {"max_depth": 11}, {"n_bins": 0}, {"accepted_error": 0.0}]
)
def test_a_parameter_out_of_range_is_refused(given):
    (name,) = given
    with pytest.raises(ValueError, match=name):
        PrivaTreeClassifier(domain=DOMAIN, **given).fit(*table(20))
