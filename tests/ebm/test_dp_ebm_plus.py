"""DP-EBM+ as an estimator: ledger, refusals, invariances, and that it beats DP-EBM."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm import (
    DPEBMClassifier,
    DPEBMPlusClassifier,
    DPEBMPlusRegressor,
    DPEBMRegressor,
    PrivacyWarning,
    dp_ebm_plus,
)
from dprepro.ebm.batch_boosting import BatchBooster
from dprepro.ebm.clipping import typical_deviation
from dprepro.ebm.fine_grid import fine_cells, merge_fine
from dprepro.ebm.grouped_counts import exact_answers, sum_deviations
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource

FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("money", 0, 1e5),
    CategoricalFeature("c", ("a", "b")),
)
DOMAIN = Domain(FEATURES, ("0", "1"))
RANGE = Domain(FEATURES, (-5.0, 5.0))


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.random(rows),
            "money": np.where(rng.random(rows) < 0.5, 0.0, np.exp(rng.normal(4, 2, rows))),
            "c": rng.choice(["a", "b"], rows),
        }
    )
    signal = np.sin(6 * X["x"]) + (X["money"] > 100) + (X["c"] == "b") - 1
    labels = (rng.logistic(size=rows) < 2 * signal).astype(int)
    return X, labels.to_numpy(), (signal + rng.normal(0, 0.1, rows)).to_numpy()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_ledger_spends_the_budget_and_no_more(epsilon):
    X, labels, y = table()
    fits = (
        DPEBMPlusClassifier(epsilon, domain=DOMAIN).fit(X, labels),
        DPEBMPlusRegressor(epsilon, domain=RANGE).fit(X, y),
    )
    for model in fits:
        totals, histograms, epochs = model.ledger_.entries
        assert (totals.uses, histograms.uses, epochs.uses) == (1, 3, 16)
        assert model.ledger_.adjacency == "add/remove-one"
        assert model.ledger_.verify() == pytest.approx(epsilon, abs=1e-4)
        assert model.ledger_.within_budget
        assert model.ledger_.holds


def test_the_ledger_does_not_depend_on_the_rows():
    ledgers = []
    for rows in (20, 3000):
        X, labels, _ = table(rows)
        ledgers.append(DPEBMPlusClassifier(domain=DOMAIN).fit(X, labels).ledger_.summary())
    assert ledgers[0] == ledgers[1]


def test_bounds_are_never_guessed_unless_told():
    X, labels, _ = table(50)
    observed = Domain.observe(X, labels.astype(str), "binary")
    for domain in (None, observed):
        with pytest.raises(ValueError, match="does not guess bounds: pass domain"):
            DPEBMPlusClassifier(domain=domain).fit(X, labels)
    model = DPEBMPlusClassifier(domain=observed, observed=True).fit(X, labels)
    assert "bounds of x, money" in model.ledger_.unpaid
    assert not model.ledger_.holds
    with pytest.warns(PrivacyWarning, match="unpaid for"):
        DPEBMPlusClassifier(observed=True).fit(X, labels)


def replacing(answer, seed=0):
    """Return a source whose noise puts `answer(exact)` in the place of what is released."""

    class Replacing(NoiseSource):
        exact = None

        def gaussian(self, shape, **parameters):
            self.drawn = super().gaussian(shape, **parameters)
            return answer(self.exact[: shape[0]]) - self.exact[: shape[0]]

    return Replacing(Ledger(1.0, 1e-6, "add/remove-one"), seed)


def powers(targets, logistic):
    """Return the number of rows and the sums of powers of the targets, from their middle."""
    middle = 0.5 if logistic else 0.0
    return np.array([((targets - middle) ** k).sum() for k in range(3)])


@pytest.mark.parametrize("logistic", [True, False])
def test_nothing_but_the_noisy_totals_says_how_many_rows_there_are(logistic):
    """Noise that cancels the totals of a table, and puts others there, hides it altogether."""
    found = []
    for rows in (2, 40, 3000):
        _, labels, y = table(rows)
        targets = labels if logistic else y / 10
        source = replacing(lambda exact: np.array([200.0, 30.0, 9.0])[: exact.size])
        source.exact = powers(targets, logistic)
        model = DPEBMPlusClassifier(domain=DOMAIN)
        found.append(model._release_totals(source, targets, logistic))
    np.testing.assert_allclose(found[1:], found[:1] * 2)
    assert found[0][0] == pytest.approx(200)
    noise = source.ledger.entries[0].scale / 200
    start = math.log(0.65 / 0.35) if logistic else 0.15 / (1 + (noise / 0.25) ** 2)
    assert found[0][1] == pytest.approx(start)


def test_a_variance_that_is_lost_in_noise_is_what_is_expected_of_any_table():
    found = [typical_deviation(0.01, noise) for noise in (0.0, 1e-5, 0.04, 1e3)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(0.1)
    assert found[3] == pytest.approx(0.2, rel=1e-6)
    assert typical_deviation(-5.0, 1.0) > 0


@pytest.mark.parametrize("logistic", [True, False])
def test_the_totals_move_by_no_more_than_they_are_charged_for(logistic):
    """Brute force over targets: a row adds its powers, from 0 on."""
    source = replacing(lambda exact: exact)
    source.exact = np.zeros(3)
    DPEBMPlusClassifier(domain=DOMAIN)._release_totals(source, np.array([0.0, 0.5]), logistic)
    worst = max(
        np.linalg.norm(np.power(t, np.arange(source.drawn.size))) for t in np.linspace(-0.5, 0.5, 9)
    )
    assert source.ledger.entries[0].sensitivity == pytest.approx(worst)


def test_histograms_are_told_with_noise_and_no_row_is_twice_in_one():
    X, _, _ = table(300)
    exact = np.concatenate([exact_answers(f, fine_cells(X[f.name], f)[1]) for f in FEATURES])
    source = replacing(lambda exact: 7.0 + np.arange(exact.size))
    source.exact = exact
    model = DPEBMPlusClassifier(domain=DOMAIN)
    _, noisy, deviation = model._release_histograms(source, X, DOMAIN, 0.12)
    np.testing.assert_allclose(np.concatenate(noisy), 7.0 + np.arange(exact.size))
    (entry,) = source.ledger.entries
    assert (deviation, entry.uses, entry.sensitivity) == (entry.scale, 3, 1.0)
    assert source.drawn.std() == pytest.approx(entry.scale, rel=0.15)


@pytest.mark.parametrize(
    ("estimator", "domain", "seen"),
    [(DPEBMPlusClassifier, DOMAIN, 3.0), (DPEBMPlusRegressor, RANGE, 2.0)],
)
def test_bins_and_booster_are_told_of_the_noise_that_is_there(estimator, domain, seen, monkeypatch):
    told, functions = [], []

    def merging(feature, counts, error, rows, **rule):
        told.append((error, rule["seen"]))
        bins, bin_counts, bin_of_cell = merge_fine(feature, counts, error, rows, **rule)
        functions.append(sum_deviations(feature, bin_of_cell, bins.n_bins, error))
        return bins, bin_counts, bin_of_cell

    class Watched(BatchBooster):
        def __init__(self, targets, functions, **parameters):
            self.uncertainties = [function.uncertainty for function in functions]
            boosters.append(self)
            super().__init__(targets, functions, **parameters)

    boosters = []
    monkeypatch.setattr(dp_ebm_plus, "merge_fine", merging)
    monkeypatch.setattr(dp_ebm_plus, "BatchBooster", Watched)
    X, labels, y = table()
    model = estimator(domain=domain).fit(X, labels if domain is DOMAIN else y)
    scale = model.ledger_.entries[1].scale
    errors = [scale * math.sqrt(2), scale * math.sqrt(2), scale]
    assert told == [(pytest.approx(error), seen) for error in errors]
    assert len(functions) == len(boosters[0].uncertainties)
    for expected, found in zip(functions, boosters[0].uncertainties, strict=True):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("epsilon", "features", "rows"),
    [
        # 4 of the rarer label, of which there is one in five; sqrt(3) / mu is 2 at most.
        (8.0, 3, 20),
        # Half a deviation of sqrt(K) / (sqrt(0.87) mu), and mu(0.1, 1e-6) is 0.0276.
        (0.1, 3, 5 * 0.5 * math.sqrt(3 / 0.87) / 0.0276),
        (0.1, 2, 5 * 0.5 * math.sqrt(2 / 0.87) / 0.0276),
    ],
)
def test_a_bin_of_labels_holds_enough_to_stand_out_from_their_noise(
    epsilon, features, rows, monkeypatch
):
    told = []
    merge = dp_ebm_plus._DPEBMPlus._merge

    def merging(self, domain, cells, noisy, deviation, total, seen, fewest):
        told.append(fewest)
        return merge(self, domain, cells, noisy, deviation, total, seen, fewest)

    monkeypatch.setattr(dp_ebm_plus._DPEBMPlus, "_merge", merging)
    X, labels, y = table()
    X, known = X.iloc[:, :features], FEATURES[:features]
    released = (3000.0, math.log(0.2 / 0.8), 0.5)
    monkeypatch.setattr(dp_ebm_plus._DPEBMPlus, "_release_totals", lambda *_: released)
    DPEBMPlusClassifier(epsilon, domain=Domain(known, ("0", "1"))).fit(X, labels)
    DPEBMPlusRegressor(epsilon, domain=Domain(known, (-5.0, 5.0))).fit(X, y)
    assert told == [pytest.approx(rows, rel=0.01), 0.0]


@pytest.mark.parametrize("n_epochs", [4, 16])
def test_the_epochs_get_the_noise_that_is_drawn_for_them(n_epochs, monkeypatch):
    seen = {}

    class Watched(BatchBooster):
        def __init__(self, *args, deviation, **parameters):
            seen["deviation"] = deviation
            super().__init__(*args, deviation=deviation, **parameters)

        def learn(self, noise):
            seen["noise"] = noise
            super().learn(noise)

    monkeypatch.setattr(dp_ebm_plus, "BatchBooster", Watched)
    X, labels, y = table()
    for estimator, targets, domain in (
        (DPEBMPlusClassifier, labels, DOMAIN),
        (DPEBMPlusRegressor, y, RANGE),
    ):
        model = estimator(n_epochs=n_epochs, domain=domain, random_state=0).fit(X, targets)
        entry = model.ledger_.entries[2]
        # A row moves an epoch's answers, over their weights, by one: see test_batch_boosting.
        assert (entry.uses, entry.sensitivity) == (n_epochs, 1.0)
        assert seen["deviation"] == pytest.approx(entry.scale)
        assert seen["noise"].shape[0] == n_epochs
        assert seen["noise"].std() == pytest.approx(entry.scale, rel=0.15)


def test_the_order_of_rows_does_not_matter():
    X, labels, _ = table()
    shuffled = np.random.default_rng(1).permutation(len(X))
    one = DPEBMPlusClassifier(domain=DOMAIN, random_state=0).fit(X, labels)
    other = DPEBMPlusClassifier(domain=DOMAIN, random_state=0).fit(
        X.iloc[shuffled], labels[shuffled]
    )
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-4)


def test_predictions_are_in_the_targets_unit_and_range():
    X, _, y = table()
    wide = Domain(FEATURES, (-5000.0, 5000.0))
    one = DPEBMPlusRegressor(4.0, domain=RANGE, random_state=0).fit(X, y).predict(X)
    thousand = DPEBMPlusRegressor(4.0, domain=wide, random_state=0).fit(X, 1000 * y).predict(X)
    np.testing.assert_allclose(thousand, 1000 * one, rtol=1e-3, atol=1)
    tight = DPEBMPlusRegressor(domain=Domain(FEATURES, (0.0, 0.5))).fit(X, y).predict(X)
    assert 0 <= tight.min() <= tight.max() <= 0.5


def test_functions_rise_where_they_are_told_to():
    X, labels, y = table()
    for estimator, target, domain in (
        (DPEBMPlusClassifier, labels, DOMAIN),
        (DPEBMPlusRegressor, y, RANGE),
    ):
        model = estimator(domain=domain, monotone={"x": "increasing"}).fit(X, target)
        assert (np.diff(model.shape_functions_[0]) >= -1e-12).all()
        assert model.ledger_.verify() <= 1 + 1e-6


def test_it_beats_dp_ebm_on_skewed_features():
    X, labels, y = table(6000)
    test, test_labels, test_y = table(4000, seed=1)
    plus = DPEBMPlusClassifier(domain=DOMAIN, random_state=0).fit(X, labels)
    plain = DPEBMClassifier(domain=DOMAIN, random_state=0).fit(X, labels)
    aucs = [roc_auc_score(test_labels, m.decision_function(test)) for m in (plus, plain)]
    assert aucs[0] > aucs[1] + 0.01
    errors = [
        np.mean((estimator(domain=RANGE, random_state=0).fit(X, y).predict(test) - test_y) ** 2)
        for estimator in (DPEBMPlusRegressor, DPEBMRegressor)
    ]
    assert errors[0] < errors[1] / 2


def rare(rows, seed):
    """Return a table of 0.5 % positives, which often lie far out; bounds are generous."""
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < 0.005
    far = labels[:, None] & (rng.random((rows, 3)) < 0.6)
    values = rng.standard_normal((rows, 3)) + far * rng.uniform(5, 20, (rows, 3))
    return pd.DataFrame(values, columns=["p", "q", "r"]), labels.astype(int)


def rare_auc(estimator, bound, seed):
    domain = Domain(tuple(NumericFeature(f, -bound, bound) for f in "pqr"), ("0", "1"))
    model = estimator(1.0, domain=domain, random_state=seed).fit(*rare(20_000, seed))
    X, labels = rare(20_000, 99)
    return roc_auc_score(labels, model.decision_function(X))


def test_rare_labels_far_out_are_found_within_generous_bounds():
    """DP-EBM's even cells hold all rows in a few; on tight bounds it is ahead by a little."""
    plus, plain = (
        np.mean([rare_auc(estimator, 1000, seed) for seed in range(4)])
        for estimator in (DPEBMPlusClassifier, DPEBMClassifier)
    )
    assert plus > plain + 0.1


@pytest.mark.parametrize("only", ["no", "yes"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_table_with_one_label_gives_probabilities(only, epsilon):
    X, _, _ = table(400)
    domain = Domain(FEATURES, ("no", "yes"))
    for seed in range(3):
        model = DPEBMPlusClassifier(epsilon, domain=domain, random_state=seed)
        model.fit(X, [only] * 400)
        assert model.classes_.tolist() == ["no", "yes"]
        shares = model.predict_proba(X)
        assert np.isfinite(shares).all()
        assert ((shares > 0) & (shares < 1)).all()
        if epsilon == 8:
            assert (model.predict(X) == only).all()


@pytest.mark.parametrize("rows", [2, 3])
def test_tiny_tables_and_budgets_give_finite_models(rows):
    X = pd.DataFrame({"x": [0.0, 1.0, 0.5], "money": [0.0, 1.0, 1e5], "c": ["a", "b", "a"]})
    for epsilon in (1e-3, 8.0):
        labels = DPEBMPlusClassifier(epsilon, domain=DOMAIN).fit(X[:rows], [0, 1, 1][:rows])
        numbers = DPEBMPlusRegressor(epsilon, domain=RANGE).fit(X[:rows], [-5.0, 5, 0][:rows])
        assert np.isfinite(labels.decision_function(X)).all()
        assert np.isfinite(numbers.predict(X)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 0.0}, "delta must lie strictly between"),
        ({"n_epochs": 0}, "n_epochs must be an integer of at least 1"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    X, labels, _ = table(20)
    with pytest.raises(ValueError, match=message):
        DPEBMPlusClassifier(domain=DOMAIN, **parameters).fit(X, labels)


def test_scaled_targets_stay_in_the_unit_that_is_paid_for(monkeypatch):
    seen = []

    def capture(self, frame, targets, domain, logistic):
        seen.append(targets)
        raise InterruptedError

    monkeypatch.setattr(DPEBMPlusRegressor, "_train", capture)
    X, _, _ = table(50)
    rounding = Domain(FEATURES, (1e16, 1e16 + 2))
    with pytest.raises(InterruptedError):
        DPEBMPlusRegressor(domain=rounding).fit(X, np.repeat([1e16, 1e16 + 2], 25))
    assert np.abs(seen[0]).max() == 0.5


@pytest.mark.parametrize("bounds", [(1e308, 1.5e308), (-1.7e308, 1.7e308)])
def test_ranges_that_overflow_are_refused(bounds):
    X, _, y = table(50)
    with pytest.raises(ValueError, match="target's range is"):
        DPEBMPlusRegressor(domain=Domain(FEATURES, bounds)).fit(X, y)
