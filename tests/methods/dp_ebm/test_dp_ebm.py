"""DP-EBM as an estimator: ledger, sensitivity, determinism, edge cases."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import PrivacyWarning
from dprepro.methods.dp_ebm.binning import histogram, random_cuts
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm.losses import LARGEST, SCORE_BITS, LogisticLoss
from dprepro.privacy import curator_base
from dprepro.privacy.composition import calibrate_two_phases
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import REPLACE_ONE
from tests.methods.dp_ebm.lab import pass_sums

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), ("0", "1"))
RANGE = Domain(DOMAIN.features, (-1.0, 2.0))


def table(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(rows), "c": rng.choice(["a", "b"], rows)})
    signal = np.sin(6 * X["x"]) + (X["c"] == "b")
    labels = (rng.logistic(size=rows) < 3 * (signal - 0.5)).astype(int)
    return X, labels.to_numpy(), signal.to_numpy()


def classifier(**params):
    return DPEBMClassifier(
        **{"epsilon": 4.0, "domain": DOMAIN, "random_state": 0, "n_epochs": 100} | params
    )


@pytest.mark.parametrize("composition", ["gdp", "classic"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_the_ledger_holds_what_was_drawn_and_does_not_overspend(composition, epsilon):
    X, y, _ = table()
    model = classifier(epsilon=epsilon, composition=composition, random_state=None).fit(X, y)
    noise = calibrate_two_phases(
        composition, epsilon, 1e-6, binning_queries=2, boosting_queries=200, binning_share=0.1
    )
    binning, boosting = model.ledger_.entries
    assert (binning.uses, boosting.uses) == (2, 200)
    assert binning.noise_multiplier == pytest.approx(noise.binning)
    assert boosting.noise_multiplier == pytest.approx(noise.boosting)
    assert (binning.sensitivity, boosting.sensitivity) == (1.0, 0.01)
    assert model.ledger_.spent_epsilon() <= epsilon + 1e-6
    assert model.ledger_.holds


def test_a_fixed_seed_is_named_in_the_ledger():
    X, y, _ = table()
    assert classifier().fit(X, y).ledger_.unaccounted == [
        "fixed seed: repeatable, never for release"
    ]


def test_a_public_domain_is_assumed_public_and_epsilon_is_1_unless_told():
    X, y, _ = table(200)
    model = DPEBMClassifier(domain=DOMAIN, n_epochs=2, random_state=0).fit(X, y)
    assert model.ledger_.epsilon == 1.0
    assumed = model.ledger_.assumed_public
    assert "bounds, categories and target range or labels" in assumed
    with pytest.warns(PrivacyWarning):
        other = DPEBMClassifier(n_epochs=2, random_state=0).fit(X, y)
    assert not any(
        said.startswith("bounds, categories and") for said in other.ledger_.assumed_public
    )


@pytest.mark.parametrize(("rows", "bins"), [(2000, range(4, 11)), (4, range(1, 40))])
def test_bins_are_as_many_as_the_noisy_number_of_rows_allows(rows, bins):
    X, y, _ = table(rows)
    model = classifier(adjacency="add/remove-one", max_bins=8, n_epochs=1).fit(X, y)
    assert model.bins_[0].n_bins in bins


def test_without_a_domain_every_read_is_warned_of_and_named():
    X, y, _ = table()
    with pytest.warns(PrivacyWarning, match="Epsilon does not cover"):
        model = classifier(domain=None, random_state=None).fit(X, y)
    assert model.ledger_.unaccounted == [
        "bounds of x",
        "categories of c",
        "which features have missing values",
    ]
    assert not model.ledger_.holds


def test_the_cuts_do_not_betray_the_generator_of_the_noise(monkeypatch):
    used = []

    def spy(generator, *arguments):
        used.append(generator)
        return random_cuts(generator, *arguments)

    monkeypatch.setattr("dprepro.methods.dp_ebm.estimator.random_cuts", spy)
    monkeypatch.setattr(
        curator_base, "NoiseSource", lambda *a: sources.append(NoiseSource(*a)) or sources[-1]
    )
    sources = []
    X, y, _ = table(rows=50)
    classifier(random_state=None, n_epochs=2).fit(X, y)
    assert used[0] is sources[0].public_generator
    assert used[0] is not sources[0].generator


def test_the_regressor_names_the_papers_gap():
    X, _, y = table()
    model = DPEBMRegressor(domain=RANGE, n_epochs=10).fit(X, y)
    assert "not bounded by the label range" in model.ledger_.gaps[0]
    assert not model.ledger_.holds


def test_the_boosting_noise_scales_with_the_target_range():
    X, _, y = table()
    one = DPEBMRegressor(4.0, domain=RANGE, random_state=0, n_epochs=50).fit(X, y)
    wide = Domain(DOMAIN.features, (-1000.0, 2000.0))
    thousand = DPEBMRegressor(4.0, domain=wide, random_state=0, n_epochs=50).fit(X, 1000 * y)
    np.testing.assert_allclose(thousand.predict(X), 1000 * one.predict(X), rtol=1e-3)
    for wide_noise, noise in zip(thousand.shape_noise_, one.shape_noise_, strict=True):
        np.testing.assert_allclose(wide_noise, 1000 * noise, rtol=1e-3)


def test_one_row_moves_one_cell_of_each_histogram_by_one():
    X, _, _ = table(rows=50)
    for feature in DOMAIN.features:
        for removed in range(0, 50, 7):
            _, with_row = histogram(X[feature.name], feature, 32)
            _, without = histogram(X[feature.name].drop(removed), feature, 32)
            assert np.abs(with_row - without).sum() == 1


def test_one_row_moves_the_leaf_sums_of_a_step_by_less_than_the_sensitivity():
    """Brute force over all 0/1 tables of 2 features and up to 3 rows, and every canary."""
    worst = 0
    rows = list(itertools.product([0, 1], repeat=3))
    for table_rows in itertools.combinations_with_replacement(rows, 3):
        for canary in rows:
            with_row, without = leaf_sums([*table_rows, canary]), leaf_sums(table_rows)
            # In whole numbers, by what goes into one leaf.
            shift = np.abs(with_row - without)
            assert (shift > 0).sum() <= 1
            worst = max(worst, shift.max())
    assert 0.45 * LARGEST < worst <= LARGEST


def leaf_sums(rows):
    """Return the second step's leaf sums; the first released 4 and -4 for its two bins."""
    *codes, targets = np.array(rows).T
    codes = np.array(codes, dtype=np.uint8)
    none, cuts = np.zeros(len(rows)), np.array([1, 255], np.uint8)
    rises = (np.array([4, -8, 0]) * 2**SCORE_BITS).astype(np.int32)
    total, above, _ = pass_sums(
        LogisticLoss(), none, targets, codes[0], cuts, rises, codes[1], cuts
    )
    return np.array([total - above, above])


def canary_world(K, sensitivity):
    """Rows that teach F(e_k) = 1 and F(0) = 0 drive F(1, ..., 1) up to K, next to without noise.

    Returns the residual, in units of the label range, of the row (1, ..., 1) with y = 0.
    """
    names = [f"x{k}" for k in range(K)]
    unit = np.repeat(np.vstack([np.zeros(K), np.eye(K)]), 100, axis=0)
    y = unit.sum(axis=1)
    domain = Domain(tuple(NumericFeature(name, 0, 1) for name in names), (0.0, 1.0))
    model = DPEBMRegressor(
        1e6, 0.1, max_bins=16, n_epochs=100, learning_rate=0.1, domain=domain, random_state=0,
        sensitivity=sensitivity,
    ).fit(pd.DataFrame(unit, columns=names), y)  # fmt: skip
    canary = pd.DataFrame(np.ones((1, K)), columns=names)
    raw = model.intercept_ + model.contributions(canary).sum()
    return abs(0.0 - raw), model


def test_the_published_regression_bound_is_exceeded_and_the_sound_one_is_not():
    """A row's part in a leaf sum is y - F(x); Theorem 6 takes it as at most R = 1."""
    residual, model = canary_world(8, "published")
    assert residual > 2.0
    assert model.ledger_.gaps
    residual, model = canary_world(8, "sound")
    clipped = min(residual, 0.5)  # what the kernel lets through, see test_kernel
    assert clipped <= model.ledger_.entries[1].sensitivity / model.learning_rate
    assert model.ledger_.gaps == []


@pytest.mark.parametrize("adjacency", ["zero-out", "add/remove-one", "replace-one"])
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_the_sound_variants_hold_and_spend_all_of_epsilon(kind, adjacency):
    X, labels, signal = table()
    settings = {
        "epsilon": 1.0, "composition": "joint", "sensitivity": "sound", "adjacency": adjacency,
        "n_epochs": 100,
    }  # fmt: skip
    if kind == "classifier":
        ledger = DPEBMClassifier(domain=DOMAIN, **settings).fit(X, labels).ledger_
    else:
        ledger = DPEBMRegressor(domain=RANGE, **settings).fit(X, signal).ledger_
    assert ledger.holds
    assert ledger.spent_epsilon() == pytest.approx(1.0, abs=1e-4)
    assert ("number of rows" in ledger.assumed_public) == (adjacency != "add/remove-one")
    if adjacency == "replace-one":
        assert ledger.spent_epsilon(REPLACE_ONE) == ledger.spent_epsilon()
    else:
        assert 1.0 < ledger.spent_epsilon(REPLACE_ONE) < 2.5


@pytest.mark.parametrize("sensitivity", ["published", "sound"])
def test_only_sound_labels_have_noise_that_follows_the_largest_difference(sensitivity):
    X, y, _ = table(200)
    model = classifier(sensitivity=sensitivity, n_epochs=20).fit(X, y)
    released = model.ledger_.entries[1].releases
    assert released.endswith("largest difference that any row can then have") == (
        sensitivity == "sound"
    )


def test_sound_regression_halves_the_published_noise():
    X, _, y = table()
    noise = {
        s: DPEBMRegressor(domain=RANGE, sensitivity=s, n_epochs=10).fit(X, y).ledger_.entries[1]
        for s in ("published", "sound")
    }
    assert noise["sound"].scale == pytest.approx(noise["published"].scale / 2)


def test_sound_predictions_stay_in_the_target_range():
    X, _, y = table(rows=200)
    model = DPEBMRegressor(0.05, domain=RANGE, sensitivity="sound", random_state=0).fit(X, y)
    predicted = model.predict(X)
    assert -1.0 <= predicted.min() <= predicted.max() <= 2.0
    assert len(np.unique(predicted)) > 1


def test_the_same_seed_gives_the_same_model_bit_for_bit():
    X, y, _ = table()
    first, second = classifier().fit(X, y), classifier().fit(X, y)
    for a, b in zip(first.shape_functions_, second.shape_functions_, strict=True):
        np.testing.assert_array_equal(a, b)
    other = classifier(random_state=1).fit(X, y)
    assert not np.array_equal(other.shape_functions_[0], first.shape_functions_[0])


def test_without_a_seed_no_two_fits_agree():
    X, y, _ = table()
    first, second = (classifier(random_state=None).fit(X, y) for _ in range(2))
    assert first.intercept_ != second.intercept_


def test_it_learns_and_more_budget_learns_more():
    X, y, _ = table(rows=20_000)
    X_test, y_test, _ = table(rows=5000, seed=1)

    def mean_auc(epsilon):
        fits = (classifier(epsilon=epsilon, random_state=s).fit(X, y) for s in range(5))
        return np.mean([roc_auc_score(y_test, m.decision_function(X_test)) for m in fits])

    assert mean_auc(8.0) > 0.87
    assert mean_auc(8.0) > mean_auc(0.02) + 0.02


def test_with_next_to_no_noise_the_regressor_finds_the_shapes():
    X, _, y = table(rows=20_000)
    model = DPEBMRegressor(
        1e5, 0.1, domain=RANGE, max_bins=128, learning_rate=0.1, random_state=0
    ).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.05


def test_prediction_is_intercept_plus_contributions():
    X, y, _ = table()
    model = classifier().fit(X, y)
    total = model.intercept_ + model.contributions(X).sum(axis=1)
    np.testing.assert_allclose(model.decision_function(X), total)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X)[:, 1] > 0.5)


def test_shape_functions_are_centred_under_the_noisy_counts():
    X, y, _ = table()
    model = classifier().fit(X, y)
    for shape, counts in zip(model.shape_functions_, model.bin_counts_, strict=True):
        assert shape.shape == counts.shape
        assert counts.min() > 0
        # Half a step of the grid: what is taken out is rounded, too.
        assert np.average(shape, weights=counts) == pytest.approx(0.0, abs=2.0**-25)


def test_row_order_is_in_no_bit():
    X, y, _ = table()
    order = np.random.default_rng(0).permutation(len(X))
    first = classifier().fit(X, y)
    second = classifier().fit(X.iloc[order], y[order])
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_labels_keep_their_names():
    X, y, _ = table()
    domain = Domain(DOMAIN.features, ("no", "yes"))
    model = classifier(domain=domain).fit(X, np.array(["no", "yes"])[y])
    assert set(model.predict(X)) == {"no", "yes"}


def test_unseen_categories_and_values_outside_the_bounds_are_predictable():
    X, y, _ = table()
    model = classifier().fit(X, y)
    strange = pd.DataFrame({"x": [-5.0, 7.0, np.nan], "c": ["z", None, "a"]})
    parts = model.contributions(strange)
    assert np.isfinite(parts).all()
    assert parts[0, 0] == model.shape_functions_[0][0]
    assert parts[1, 0] == model.shape_functions_[0][-1]
    assert parts[2, 0] == 0.0


def test_constant_and_single_category_features_do_no_harm():
    X, y, _ = table()
    X = X.assign(constant=3.0, single="only")
    domain = Domain(
        (
            *DOMAIN.features,
            NumericFeature("constant", 3, 3),
            CategoricalFeature("single", ("only",)),
        ),
        DOMAIN.target,
    )
    model = classifier(domain=domain, epsilon=8.0).fit(X, y)
    assert model.bins_[2].n_bins == model.bins_[3].n_bins == 1
    assert model.shape_functions_[2][0] == pytest.approx(0.0, abs=1e-12)
    assert roc_auc_score(y, model.decision_function(X)) > 0.8


def test_declared_missing_values_are_learnt_from():
    X, y, _ = table(rows=20_000)
    missing = (y == 1) & (np.random.default_rng(0).random(y.size) < 0.5)
    X = X.assign(x=X["x"].mask(missing))
    domain = Domain((NumericFeature("x", 0, 1, missing=True), DOMAIN.features[1]), DOMAIN.target)
    model = classifier(domain=domain, epsilon=8.0, n_epochs=300).fit(X, y)
    gap = model.contributions(X)[:, 0]
    assert gap[missing].mean() > gap[~missing].mean() + 0.5


@pytest.mark.parametrize("adjacency", ["zero-out", "add/remove-one"])
@pytest.mark.parametrize("estimator", [DPEBMClassifier, DPEBMRegressor])
def test_all_that_leaves_is_a_multiple_of_one_power_of_two(estimator, adjacency):
    """Counts are whole; functions and intercept are whole numbers of a power of two."""
    X, labels, signal = table()
    is_classifier = estimator is DPEBMClassifier
    wide = Domain(DOMAIN.features, (-100.0, 207.3))
    model = estimator(
        0.1, domain=DOMAIN if is_classifier else wide, adjacency=adjacency, sensitivity="sound",
        n_epochs=30, random_state=0,
    ).fit(X, labels if is_classifier else 50 * signal)  # fmt: skip
    step = 2.0**model.powers_.functions
    released = np.concatenate(model.shape_functions_)
    np.testing.assert_array_equal(released, np.rint(released / step) * step)
    assert np.abs(released).max() > 1000 * step
    counts = np.concatenate(model.bin_counts_)
    np.testing.assert_array_equal(counts, np.rint(counts))
    assert counts.min() >= 1
