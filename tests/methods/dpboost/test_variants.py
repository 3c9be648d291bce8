"""Options of the authors' code: which rows train, on what scale, and from where."""

import numpy as np
import pytest
from sklearn.base import clone

from dprepro.data.domain import Domain
from dprepro.methods.dpboost.estimator import DPBoostClassifier, DPBoostRegressor
from dprepro.methods.dpboost.variants import AS_PUBLISHED, FIRST_GAIN, of_code
from tests.methods.dpboost.test_estimator import DOMAIN, RANGE, table


def options(**changes):
    return {"parts": "equal", "scale": "0..1", "start": "mean", "first_gain": False} | changes


def classifier(epsilon=8.0, **changes):
    variant = of_code(**options(**changes))
    return DPBoostClassifier(epsilon, variant=variant, domain=DOMAIN, random_state=0)


def regressor(epsilon=8.0, **changes):
    variant = of_code(**options(scale="-1..1", **changes))
    return DPBoostRegressor(epsilon, variant=variant, domain=RANGE, random_state=0)


def test_the_options_of_the_published_variant_for_labels_give_its_bits():
    """Of labels: regression of the published variant starts from the mean."""
    X, y, _ = table()
    same = classifier(parts="geometric", scale="-1..1", start="zero").fit(X, y)
    published = DPBoostClassifier(8.0, domain=DOMAIN, random_state=0).fit(X, y)
    np.testing.assert_array_equal(same._scores(X), published._scores(X))
    assert of_code("geometric", "-1..1", "mean", False).centred > AS_PUBLISHED.centred


@pytest.mark.parametrize(("scale", "mean"), [("0..1", 0.3), ("-1..1", -0.4)])
def test_labels_start_from_zero_or_from_their_mean_on_their_scale(scale, mean):
    X, _, _ = table(rows=50)
    y = (np.arange(50) < 15).astype(int)  # too few rows to split: what is left is the start
    for start, expected in (("mean", mean), ("zero", 0.0)):
        scores = classifier(scale=scale, start=start).fit(X, y).decision_function(X)
        np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_scores_of_labels_0_and_1_are_probabilities_and_are_cut_in_the_middle():
    X, y, _ = table()
    model = classifier().fit(X, y)
    scores, probabilities = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_array_equal(probabilities[:, 1], np.clip(scores, 0, 1))
    np.testing.assert_array_equal(model.predict(X), (scores > 0.5).astype(int))
    assert 0 < model.predict(X).mean() < 1


def test_the_scale_of_a_regression_cancels_in_its_predictions():
    X, _, y = table(rows=50)
    variant = of_code(**options())
    small = DPBoostRegressor(8.0, variant=variant, domain=RANGE, random_state=0).fit(X, y)
    for model in (small, regressor().fit(X, y)):
        np.testing.assert_allclose(model.predict(X), y.mean(), atol=1e-6)


def test_rare_labels_of_plus_and_minus_one_are_filtered_out_when_boosting_starts_from_the_mean():
    """Their gradients are above 1; the others all agree, so that no tree can split."""
    X, _, _ = table()
    y = (X["x"] > 0.7).to_numpy().astype(int)
    filtered = classifier(scale="-1..1").fit(X, y)
    assert all(tree.feature.size == 1 for tree in filtered.trees_)
    assert any(tree.feature.size > 1 for tree in classifier().fit(X, y).trees_)


def test_equal_parts_let_late_trees_split_that_geometric_ones_leave_constant():
    X, y, _ = table(rows=10_000)
    late = slice(40, 50)
    for parts, splits in (("equal", 10), ("geometric", 0)):
        trees = classifier(parts=parts, scale="-1..1", start="zero").fit(X, y).trees_[late]
        assert sum(tree.feature.size > 1 for tree in trees) == splits


@pytest.mark.parametrize("start", ["zero", "mean"])
@pytest.mark.parametrize("first", [False, True])
def test_the_ledger_names_what_each_option_leaves_uncovered(start, first):
    X, y, _ = table()
    ledger = classifier(start=start, first_gain=first).fit(X, y).ledger_
    assert ("mean of the target" in ledger.unaccounted) == (start == "mean")
    assert (FIRST_GAIN in ledger.gaps) == first
    assert set(AS_PUBLISHED.gaps) <= set(ledger.gaps)
    assert not ledger.holds


def test_estimators_with_options_can_be_cloned():
    X, y, _ = table()
    model = classifier().fit(X, y)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again._scores(X), model._scores(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": "even"}, "parts must be one of 'geometric', 'equal', got 'even'"),
        ({"scale": "0-1"}, r"scale must be one of '-1..1', '0..1', got '0-1'"),
        ({"start": "0"}, "start must be one of 'zero', 'mean', got '0'"),
        ({"first_gain": 1}, "first_gain must be true or false, got 1"),
    ],
)
def test_options_that_the_code_does_not_have_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        of_code(**options(**change))


def test_the_range_of_targets_does_not_change_what_is_learnt():
    X, _, y = table()
    wide = Domain(DOMAIN.features, (-1000.0, 2000.0))
    one = regressor().fit(X, y).predict(X)
    variant = of_code(**options(scale="-1..1"))
    thousand = DPBoostRegressor(8.0, variant=variant, domain=wide, random_state=0)
    np.testing.assert_allclose(
        thousand.fit(X, 1000 * y).predict(X), 1000 * one, rtol=1e-6, atol=1e-6
    )


def test_a_feature_that_was_read_as_text_is_as_good_as_absent():
    X, y, _ = table()
    y = (X["x"] > 0.4).to_numpy().astype(int)
    variant = of_code("equal", "0..1", "mean", read_as_text=["x"])
    without = DPBoostClassifier(100.0, variant=variant, domain=DOMAIN, random_state=0).fit(X, y)
    assert {f for tree in without.trees_ for f in tree.feature.tolist()} <= {-1, 1}
    usual = classifier(epsilon=100.0).fit(X, y)
    assert {f for tree in usual.trees_ for f in tree.feature.tolist()} >= {-1, 0}
