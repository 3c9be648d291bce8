"""EBM without privacy: Algorithm 1, bagging and early stopping."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from dprepro.methods.dp_ebm.ebm import EBMClassifier, EBMRegressor
from dprepro.methods.dp_ebm.greedy_kernel import boost_greedily
from dprepro.methods.dp_ebm.losses import LogisticLoss


def naive_algorithm_1(codes, y, counts, n_bins, rate, max_leaves, n_epochs):
    """Squared error, best-first cuts, averages of residuals: Algorithm 1 in float64."""
    shapes, residual = np.zeros(counts.shape), y.astype(float)
    for t in range(n_epochs * len(codes)):
        k = t % len(codes)
        sums = np.bincount(codes[k], residual, n_bins[k])
        edges = _best_first(sums, counts[k], n_bins[k], max_leaves)
        for start, stop in itertools.pairwise(edges):
            step = rate * sums[start:stop].sum() / counts[k, start:stop].sum()
            shapes[k, start:stop] += step
            residual[(codes[k] >= start) & (codes[k] < stop)] -= step
    return shapes


def _best_first(sums, counts, n_bins, max_leaves):
    edges = [0, n_bins]

    def score(start, stop):
        return sums[start:stop].sum() ** 2 / counts[start:stop].sum()

    while len(edges) <= max_leaves:
        gains = [
            (score(a, cut) + score(cut, b) - score(a, b), cut)
            for a, b in itertools.pairwise(edges)
            for cut in range(a + 1, b)
        ]
        if not gains or max(gains)[0] <= 0:
            break
        edges = sorted([*edges, max(gains)[1]])
    return edges


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 5])
def test_the_greedy_kernel_is_algorithm_1(max_leaves):
    rng = np.random.default_rng(0)
    n_bins = np.array([6, 9, 1])
    codes = np.array([rng.integers(0, b, 5000) for b in n_bins], dtype=np.uint8)
    y = (np.sin(codes[0]) + 0.3 * codes[1] + rng.normal(0, 0.1, 5000)).astype(np.float32)
    counts = np.zeros((3, 9))
    for k, bins in enumerate(n_bins):
        counts[k, :bins] = np.bincount(codes[k], minlength=bins)
    shapes, epochs = boost_greedily(
        codes,
        y,
        codes[:, :0],
        y[:0],
        0.0,
        n_bins,
        counts,
        0.3,
        False,
        max_leaves,
        1,
        0.0,
        4,
        9,
        0.0,
    )
    expected = naive_algorithm_1(codes, y, counts, n_bins, 0.3, max_leaves, 4)
    assert epochs == 4
    np.testing.assert_allclose(shapes, expected, atol=1e-4)


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


def test_it_is_a_worthy_classifier(breast_cancer):
    X, X_test, y, y_test = breast_cancer
    model = EBMClassifier(random_state=0).fit(X, y)
    assert roc_auc_score(y_test, model.decision_function(X_test)) > 0.985


def test_early_stopping_keeps_the_best_epoch(breast_cancer):
    X, X_test, y, y_test = breast_cancer
    stopped = EBMClassifier(random_state=0).fit(X, y)
    overfit = EBMClassifier(random_state=0, held_out_share=0, n_epochs=2000, outer_bags=1).fit(X, y)
    assert max(stopped.n_epochs_) < 2000
    assert overfit.n_epochs_ == [2000]
    assert log_loss(y_test, stopped.predict_proba(X_test)) < log_loss(
        y_test, overfit.predict_proba(X_test)
    )


def test_certain_leaves_take_bounded_steps(breast_cancer):
    X, X_test, y, _ = breast_cancer
    model = EBMClassifier(random_state=0).fit(X, y)
    assert np.abs(model.decision_function(X_test)).max() < 30


def test_bags_are_averaged(breast_cancer):
    X, X_test, y, _ = breast_cancer
    model = EBMClassifier(outer_bags=3, random_state=0).fit(X, y)
    assert len(model.n_epochs_) == 3
    one = EBMClassifier(outer_bags=1, random_state=0).fit(X, y)
    assert not np.allclose(model.decision_function(X_test), one.decision_function(X_test))


def test_it_finds_known_shapes_and_keeps_the_targets_unit():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(8000), "c": rng.choice(["a", "b", "c"], 8000)})
    truth = 1e6 + 1000 * np.sin(6 * X["x"]) + X["c"].map({"a": 0, "b": 500, "c": -500})
    model = EBMRegressor(random_state=0).fit(X, truth + rng.normal(0, 50, 8000))
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 25
    assert model.intercept_ == pytest.approx(truth.mean(), rel=1e-4)
    by_category = dict(zip(model.bins_[1].labels, model.shape_functions_[1], strict=True))
    assert by_category["b"] - by_category["c"] == pytest.approx(1000, abs=20)


def test_missing_values_get_a_score_of_their_own():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(4000)})
    missing = rng.random(4000) < 0.2
    y = X["x"].where(~missing, 5.0)
    model = EBMRegressor(random_state=0).fit(X.assign(x=X["x"].mask(missing)), y)
    assert model.predict(pd.DataFrame({"x": [np.nan]}))[0] == pytest.approx(5.0, abs=0.05)


def test_a_constant_target_is_predicted():
    X = pd.DataFrame({"x": np.arange(50.0)})
    assert EBMRegressor().fit(X, np.full(50, 7.0)).predict(X) == pytest.approx(np.full(50, 7.0))


def test_numbers_out_of_text_targets_are_refused():
    with pytest.raises(ValueError, match=r"y must hold numbers,"):
        EBMRegressor().fit(pd.DataFrame({"x": [1.0, 2.0]}), ["a", "b"])


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"max_bins": 1}, "max_bins"), ({"max_bins": 257}, "max_bins"),
        ({"n_epochs": 0}, "n_epochs"),
        ({"max_leaves": 0}, "max_leaves"), ({"max_leaves": 257}, "max_leaves"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"), ({"outer_bags": 0}, "outer_bags"),
        ({"patience": 0}, "patience"), ({"learning_rate": 0.0}, "learning_rate"),
        ({"ridge": -0.1}, "ridge"), ({"held_out_share": -0.1}, "held_out_share"),
        ({"held_out_share": 1.1}, "held_out_share"),
    ],
)  # fmt: skip
def test_a_parameter_out_of_range_is_named(wrong, name):
    with pytest.raises(ValueError, match=f"{name} must be a"):
        EBMClassifier(**wrong).fit([[1.0], [2.0], [3.0]], [0, 1, 1])


def test_parameters_at_the_ends_of_their_ranges_are_taken():
    least = EBMClassifier(
        max_bins=2, n_epochs=1, max_leaves=1, min_samples_leaf=1, outer_bags=1, patience=1,
        ridge=0.0, held_out_share=0.0,
    )  # fmt: skip
    least.check_parameters()
    EBMClassifier(max_bins=256, max_leaves=256).check_parameters()
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    assert least.set_params(random_state=0).fit(X, y).n_epochs_ == [1]


@pytest.mark.parametrize(
    ("labels", "held"),
    [
        ([0, 1] * 7, 2),
        ([0, 1] * 6, 2),
        ([0, 1] * 4, 0),  # it would be one row
        ([0] * 12 + [1] * 2, 2),
        ([0] * 13 + [1], 0),  # it cannot be on both sides
    ],
)
def test_rows_are_held_out_where_there_are_enough(labels, held):
    targets = np.array(labels, np.float32)
    model, rng = EBMClassifier(), np.random.RandomState(0)
    train, apart = model._hold_out(targets, LogisticLoss(), rng)
    assert apart.size == held
    assert sorted([*train, *apart]) == list(range(targets.size))
    assert (np.diff(train) > 0).all()


def test_boosting_starts_at_the_log_odds_of_all_rows_or_at_their_mean():
    X, y = np.zeros((40, 1)), np.arange(40) % 4 == 0
    model = EBMClassifier(n_epochs=1, random_state=0).fit(X, y)
    assert model.intercept_ == pytest.approx(np.log(1 / 3), abs=1e-3)
    regressor = EBMRegressor(n_epochs=1, random_state=0).fit(X, 10.0 * y + 5)
    assert regressor.intercept_ == pytest.approx(7.5, abs=0.05)
    constant = EBMRegressor(n_epochs=1, random_state=0).fit(X, np.full(40, 3.0))
    assert constant.predict(X).tolist() == [3.0] * 40


@pytest.mark.parametrize("estimator", [EBMClassifier, EBMRegressor])
def test_a_second_fit_may_have_other_columns(estimator):
    model = estimator(n_epochs=1, random_state=0)
    y = np.arange(20) % 2
    model.fit(pd.DataFrame({"a": np.arange(20.0)}), y)
    model.fit(pd.DataFrame({"b": np.arange(20.0), "c": np.ones(20)}), y)
    assert list(model.feature_names_in_) == ["b", "c"]
    assert estimator().n_epochs == 5000
