"""What DP-EBM+ releases: with the noise that is paid for, and used as such."""

import math

import numpy as np
import pytest

from dprepro.additive.exact_sums import exact_sum
from dprepro.data.domain import Domain
from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.ebm_plus import estimator as dp_ebm_plus
from dprepro.ebm_plus.booster import BatchBooster
from dprepro.ebm_plus.clipping import typical_deviation
from dprepro.ebm_plus.grid import fine_cells, merge_fine
from dprepro.ebm_plus.groups import exact_answers, sum_deviations
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from tests.ebm_plus.plus_table import DOMAIN, FEATURES, RANGE, table


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
    return np.array([exact_sum((targets - middle) ** k) for k in range(3)])


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
