"""DPBoost as an estimator: ledger, guarantee, determinism, edge cases."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import PrivacyWarning
from dprepro.methods.dpboost.estimator import DPBoostClassifier, DPBoostRegressor
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), ("0", "1"))
RANGE = Domain(DOMAIN.features, (-1.0, 2.0))
VARIANTS = pytest.mark.parametrize("variant", ["as-published", "sound"])


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(rows), "c": rng.choice(["a", "b"], rows)})
    signal = np.sin(6 * X["x"]) + (X["c"] == "b")
    labels = (rng.logistic(size=rows) < 3 * (signal - 0.5)).astype(int)
    return X, labels.to_numpy(), signal.to_numpy()


def classifier(**params):
    return DPBoostClassifier(**{"epsilon": 8.0, "domain": DOMAIN, "random_state": 0} | params)


def regressor(**params):
    return DPBoostRegressor(**{"epsilon": 8.0, "domain": RANGE, "random_state": 0} | params)


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_sound_variant_spends_all_of_epsilon_and_keeps_its_promise(make, epsilon):
    X, y, _ = table()
    ledger = make(variant="sound", epsilon=epsilon, random_state=None).fit(X, y).ledger_
    assert ledger.spent_epsilon() == pytest.approx(epsilon)
    assert (ledger.delta, ledger.adjacency) == (0.0, ADD_REMOVE)
    assert ledger.unaccounted == ledger.gaps == []
    assert ledger.holds


@VARIANTS
@pytest.mark.parametrize("epsilon", [200.0, 1000.0])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_very_large_epsilons_are_fitted(make, epsilon, variant):
    X, y, _ = table(400)
    ledger = make(variant=variant, epsilon=epsilon, n_trees=5).fit(X, y).ledger_
    spent = {"sound": 1.0, "as-published": 0.75}[variant] * epsilon
    assert ledger.spent_epsilon() == pytest.approx(spent)
    assert ledger.within_budget


@pytest.mark.parametrize(("make", "mean"), [(classifier, []), (regressor, ["mean of the target"])])
def test_the_published_variant_names_what_it_reads_and_where_its_proof_fails(make, mean):
    X, y, _ = table()
    ledger = make(random_state=None).fit(X, y).ledger_
    assert ledger.spent_epsilon() == pytest.approx(0.75 * 8.0)
    assert ledger.adjacency == ZERO_OUT
    assert ledger.unaccounted == ["bin edges of all features", *mean]
    assert len(ledger.gaps) == 3
    assert not ledger.holds


@VARIANTS
def test_an_observed_domain_and_a_fixed_seed_are_unpaid(variant):
    X, y, _ = table()
    with pytest.warns(PrivacyWarning, match="Epsilon does not cover"):
        ledger = classifier(variant=variant, domain=None).fit(X, y).ledger_
    assert {"bounds of x", "categories of c"} < set(ledger.unaccounted)
    assert any("fixed seed" in read for read in ledger.unaccounted)


def test_sound_cuts_do_not_depend_on_the_rows_and_published_ones_do():
    X, y, _ = table()
    for variant, same in (("sound", True), ("as-published", False)):
        first = classifier(variant=variant).fit(X, y).bins_[0].cuts
        second = classifier(variant=variant).fit(X.iloc[:500], y[:500]).bins_[0].cuts
        assert np.array_equal(first, second) == same


@VARIANTS
@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_same_seed_gives_the_same_model_bit_for_bit(make, variant):
    X, y, _ = table()
    first, second = (make(variant=variant).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first._scores(X), second._scores(X))
    other = make(variant=variant, random_state=1).fit(X, y)
    assert not np.array_equal(first._scores(X), other._scores(X))


@VARIANTS
def test_without_a_seed_no_two_fits_agree(variant):
    X, y, _ = table()
    first, second = (classifier(variant=variant, random_state=None).fit(X, y) for _ in range(2))
    assert not np.array_equal(first.decision_function(X), second.decision_function(X))


@VARIANTS
def test_more_budget_learns_more(variant):
    X, y, _ = table(rows=20_000)

    def mean_auc(epsilon):
        fits = (classifier(variant=variant, epsilon=epsilon, random_state=s) for s in range(5))
        return np.mean([roc_auc_score(y, m.fit(X, y).decision_function(X)) for m in fits])

    assert mean_auc(100.0) > 0.85
    assert mean_auc(0.1) < 0.75


@VARIANTS
def test_with_next_to_no_noise_the_regressor_finds_the_function(variant):
    X, _, y = table(rows=20_000)
    model = regressor(variant=variant, epsilon=1e6, n_trees=200).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.1


def test_regression_starts_from_the_mean_as_published_and_from_the_middle_when_sound():
    X, _, y = table(rows=50)
    # Too few rows for the published trees to split: what is left is the start.
    np.testing.assert_allclose(regressor().fit(X, y).predict(X), y.mean(), atol=1e-6)
    assert regressor(variant="sound").fit(X, y).start_ == 0.0


def test_sound_predictions_stay_within_the_public_range_and_published_ones_need_not():
    X, _, y = table()
    sound = regressor(variant="sound", epsilon=0.05).fit(X, y).predict(X)
    published = regressor(epsilon=0.05).fit(X, y).predict(X)
    assert -1.0 <= sound.min() <= sound.max() <= 2.0
    assert published.max() > 2.0 or published.min() < -1.0


@VARIANTS
def test_targets_outside_their_range_are_clipped(variant):
    X, _, y = table()
    far = np.where(np.arange(len(y)) % 50 == 0, 1e6, y)
    clipped = regressor(variant=variant).fit(X, np.clip(far, -1.0, 2.0)).predict(X)
    np.testing.assert_array_equal(regressor(variant=variant).fit(X, far).predict(X), clipped)


@VARIANTS
def test_predictions_scale_with_the_target_range(variant):
    X, _, y = table()
    wide = Domain(DOMAIN.features, (-1000.0, 2000.0))
    one = regressor(variant=variant).fit(X, y).predict(X)
    thousand = regressor(variant=variant, domain=wide).fit(X, 1000 * y).predict(X)
    np.testing.assert_allclose(thousand, 1000 * one, rtol=1e-6, atol=1e-6)


@VARIANTS
def test_probabilities_labels_and_scores_agree(variant):
    X, y, _ = table()
    domain = Domain(DOMAIN.features, ("no", "yes"))
    model = classifier(variant=variant, domain=domain).fit(X, np.array(["no", "yes"])[y])
    scores, probabilities = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], np.clip((1 + scores) / 2, 0, 1))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))


@VARIANTS
def test_unseen_categories_and_missing_values_go_right_at_every_split(variant):
    X, y, _ = table()
    model = classifier(variant=variant, epsilon=100.0).fit(X, y)
    strange = pd.DataFrame({"x": [np.nan, 7.0], "c": ["z", "b"]})
    scores = model.decision_function(strange)
    assert scores[0] == scores[1]


@VARIANTS
def test_declared_missing_values_are_learnt_from(variant):
    X, y, _ = table(rows=20_000)
    missing = (y == 1) & (np.random.default_rng(0).random(y.size) < 0.5)
    X = X.assign(x=X["x"].mask(missing))
    domain = Domain((NumericFeature("x", 0, 1, missing=True), DOMAIN.features[1]), DOMAIN.target)
    model = classifier(variant=variant, domain=domain, epsilon=1000.0).fit(X, y)
    scores = model.decision_function(X)
    assert scores[missing].mean() > scores[~missing].mean() + 0.5


@VARIANTS
def test_constant_features_do_no_harm(variant):
    X, y, _ = table()
    X = X.assign(constant=3.0, single="only")
    features = (
        *DOMAIN.features,
        NumericFeature("constant", 3, 3),
        CategoricalFeature("single", ("only",)),
    )
    model = classifier(variant=variant, domain=Domain(features, DOMAIN.target), epsilon=100.0)
    assert roc_auc_score(y, model.fit(X, y).decision_function(X)) > 0.75
    assert all(tree.feature.max() < 2 for tree in model.trees_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be positive and finite"),
        ({"epsilon": np.inf}, "epsilon must be positive and finite"),
        ({"variant": "paper"}, "variant must be one of 'as-published', 'sound', got 'paper'"),
        ({"n_trees": 0}, "n_trees must be an integer of at least 1"),
        ({"trees_per_ensemble": 1.5}, "trees_per_ensemble must be an integer"),
        ({"learning_rate": 1.0}, "learning_rate must lie strictly between 0 and 1"),
        ({"max_depth": 11}, "max_depth must be an integer from 1 to 10"),
        ({"reg_lambda": -0.1}, "reg_lambda must be a finite number of at least 0"),
        ({"max_bins": 256}, "max_bins must be an integer from 2 to 255"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, y, _ = table(rows=20)
    with pytest.raises(ValueError, match=message):
        classifier(**change).fit(X, y)


@VARIANTS
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X.assign(x=np.inf), y), "infinity"),
        (lambda X, y: (X.assign(x=np.nan), y), "has missing values"),
        (lambda X, y: (X.assign(c="z"), y), "category that is not in its domain"),
        (lambda X, y: (X.assign(x="text"), y), "'x' is numeric in the domain"),
        (lambda X, y: (X, np.arange(20)), "domain's labels '0' and '1' as text, or their codes"),
        (lambda X, y: (X[["x"]], y), "X has 1 columns but the domain describes 2"),
    ],
)
def test_bad_data_is_a_clear_value_error(variant, spoil, message):
    X, y, _ = table(rows=20)
    with pytest.raises(ValueError, match=message):
        classifier(variant=variant).fit(*spoil(X, y))


def test_a_target_without_range_is_a_clear_value_error():
    X, _, y = table(rows=20)
    with pytest.raises(ValueError, match="target's range is empty or not finite"):
        regressor(domain=Domain(DOMAIN.features, (1.0, 1.0))).fit(X, y)


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
@VARIANTS
def test_other_penalties_give_finite_models(variant, reg_lambda):
    X, y, _ = table()
    model = classifier(variant=variant, reg_lambda=reg_lambda).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
