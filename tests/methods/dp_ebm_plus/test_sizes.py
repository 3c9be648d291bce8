"""How large residuals and targets are, where noise is large, and when rows are few beside it."""

import math

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.low_signal import LowSignalBooster
from scipy.stats import norm

from dprepro.additive.describe import had_few_rows
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm, clipping, low_signal
from dprepro.methods.dp_ebm_plus.clipping import (
    EDGES,
    HALF_CELL,
    MAGNITUDES,
    likely_shares,
    typical_deviation,
)
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dp_ebm_plus.kernel import UNIT
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import Totals, totals_sensitivity
from dprepro.privacy.query import NoisyAnswer
from tests.methods.dp_ebm_plus.stub import Stub, ask_for_bound, booster, exact_answers, gaussian
from tests.methods.dp_ebm_plus.test_residuals import shares_of

ROWS, TRUE = 2000.0, 0.05
COUNTS = ROWS * shares_of(norm(0, TRUE))


def deviation_of(shares):
    return math.sqrt(shares @ (EDGES * HALF_CELL) ** 2)


# --- what is expected of the deviation ----------------------------------------------------------


def found_by(noise, *typicals):
    """Return the deviation found from the counts of residuals of `TRUE`, for each `typical`."""
    return [deviation_of(likely_shares(COUNTS, noise, ROWS, noise, t)) for t in typicals]


def test_what_is_expected_decides_where_noise_is_large():
    small, unknown, large = found_by(1e6, TRUE / 4, None, 4 * TRUE)
    assert small < TRUE
    assert 3 * small < unknown < 0.7 * large


def test_what_is_expected_does_not_matter_where_noise_is_small():
    found = found_by(1.0, TRUE / 4, None, 4 * TRUE)
    assert found == pytest.approx([deviation_of(COUNTS / ROWS)] * 3, rel=0.005)
    np.testing.assert_allclose(found, found[0], rtol=1e-5)


def test_between_the_two_it_matters_less_and_less():
    gaps = [np.ptp(np.log(found_by(noise, TRUE / 4, 4 * TRUE))) for noise in (1e6, 1e3, 100, 10)]
    assert np.all(np.diff(gaps) < 0)


@pytest.mark.parametrize("typical", [0.01, 0.2])
def test_without_any_counts_the_deviation_is_what_is_expected_give_or_take(typical):
    """Its binary logarithm has the standard deviation 1.5; all shapes are alike."""
    deviations = np.geomspace(0.001, 0.5, 40)
    weights = norm.pdf(np.log2(deviations), math.log2(typical), 1.5)
    shares = clipping._densities().reshape(-1, 40, MAGNITUDES).mean(axis=0)
    expected = weights @ shares / weights.sum()
    found = likely_shares(np.zeros(MAGNITUDES), 1e9, ROWS, 1.0, typical)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# --- the counts of all epochs of a coarse booster -----------------------------------------------


def learner(typical=4 * TRUE):
    """Return a coarse booster that expects far too large residuals at the start."""
    functions = booster(np.zeros((2, 9), int), np.zeros(9), SQUARED).functions
    return LowSignalBooster(functions, SQUARED, ROWS, 0.0, typical, 100.0, 64, rows_noise=50.0)


def releases(seed, epochs=64, noise=50.0):
    rng = np.random.default_rng(seed)
    return [NoisyAnswer(COUNTS + rng.normal(0, noise, MAGNITUDES), noise) for _ in range(epochs)]


def test_many_noisy_epochs_find_the_deviation_and_one_does_not():
    ratios = []
    for seed in range(20):
        known, found = learner(), []
        for epochs in (1, 64):
            known.magnitudes = releases(seed)[:epochs]
            found.append(math.sqrt(known.sizes()[1]) / TRUE)
        ratios.append(found)
    one, many = np.array(ratios).T
    assert np.abs(many - 1).max() < 0.15
    assert np.median(one) > 1.3
    assert np.mean(np.abs(one - 1) < 0.15) < 0.2


def test_a_mean_of_all_epochs_is_told_with_its_noise_and_what_was_expected_at_the_start(
    monkeypatch,
):
    told = []
    monkeypatch.setattr(
        low_signal, "likely_shares", lambda *given: told.append(given) or likely_shares(*given)
    )
    known = learner()
    known.magnitudes = [NoisyAnswer(COUNTS + 3, 30.0), NoisyAnswer(COUNTS - 1, 40.0)]
    counts, square = known.sizes()
    ((noisy, *others),) = told
    # The second epoch counts twice.
    np.testing.assert_allclose(noisy, COUNTS + (3 - 2 * 1) / 3)
    assert others == pytest.approx([math.hypot(30.0, 2 * 40.0) / 3, ROWS, 50.0, 4 * TRUE])
    assert counts.sum() == pytest.approx(ROWS)
    np.testing.assert_allclose(counts, ROWS * likely_shares(noisy, *others))
    assert square == pytest.approx(deviation_of(counts / ROWS) ** 2)
    known.choose_bound(NoisyAnswer(COUNTS, 1.0))
    assert known.root_mean_square == pytest.approx(math.sqrt(known.sizes()[1]))
    # They are normal, and spread evenly over a cell, which is half an octave.
    assert known.usual == pytest.approx(TRUE, rel=0.05)
    for found in (known.usual, known.root_mean_square):
        assert found != known.typical
        assert (found / UNIT).is_integer()  # queries follow from it
    assert told[-1][4] == told[0][4]  # what is found is not what is expected next


def test_what_was_found_before_does_not_matter():
    """All follows from the releases: nothing from the bounds that were chosen in between."""
    asked, found = releases(0, 6, 100.0), []
    for first in (0, 5):
        known = learner()
        known.magnitudes = asked[:first]
        for release in asked[first:]:
            known.choose_bound(release)
        found.append([known.bound, known.mean_square, known.usual, *known.sizes()[0]])
    np.testing.assert_array_equal(*found)
    assert abs(found[0][2] / (4 * TRUE) - 1) > 0.3  # it has moved from where it began


def test_where_residuals_become_smaller_the_later_epochs_count_more():
    """By their numbers: first of the larger, then as many of the smaller ones."""
    large, small = (ROWS * shares_of(norm(0, size)) for size in (2 * TRUE, TRUE))
    known = learner()
    known.magnitudes = [NoisyAnswer(counts, 1e-3) for counts in (*5 * [large], *5 * [small])]
    late = sum(range(6, 11)) / sum(range(1, 11))
    expected = (1 - late) * large + late * small
    # Below one row in a cell it is not the counts that say how many rows lie there.
    np.testing.assert_allclose(known.sizes()[0], expected, rtol=1e-3, atol=1)
    known.choose_bound(known.magnitudes.pop())
    assert TRUE < known.usual < 1.4 * TRUE


def test_the_intercept_is_clipped_at_two_and_a_half_deviations_by_the_median_size():
    known = learner()
    known.curator = Stub(exact_answers(np.zeros((2, 99), int), norm(0, TRUE).rvs(99, 0), SQUARED),
                         gaussian(1.0), 1.0)  # fmt: skip
    known.rows = 99.0
    ask_for_bound(known)
    assert known.usual < 2 * TRUE < known.typical
    assert known.residuals_of(known.intercept, 0.3).bound == pytest.approx(2.5 * known.usual)
    assert known.bound < 2 * known.usual


# --- rows are few sooner where a label is rare --------------------------------------------------


@pytest.mark.parametrize(("share", "expected"), [(0.5, 150.0), (0.1, 250.0), (0.9, 250.0)])
def test_labels_are_few_below_a_number_that_grows_as_one_becomes_rare(share, expected):
    rows = 1e6
    _, typical = LOGISTIC.start(np.array([(share - 0.5) * rows]), rows, np.array([1.0]))
    assert LOGISTIC.few(typical) == pytest.approx(expected)
    assert expected == pytest.approx(150 / (2 * math.sqrt(share * (1 - share))))


@pytest.mark.parametrize(("share", "few"), [(0.5, False), (0.02, True)])
def test_a_table_has_few_rows_if_a_label_is_rare_and_not_if_both_are_frequent(share, few):
    """There are 223 rows for each deviation of the noise, between 150 and 536."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(6000), "z": rng.random(6000)})
    labels = (rng.random(6000) < share).astype(int)
    domain = Domain(tuple(NumericFeature(name, 0, 1) for name in "xz"), ("0", "1"))
    model = DPEBMPlusClassifier(0.2, 1e-6, n_epochs=4, domain=domain, random_state=0)
    assert had_few_rows(model.fit(X, labels)) is few


# --- the totals ---------------------------------------------------------------------------------

TARGETS = np.tile([-0.4, 0.1, 0.2, 0.3], 100)


class Told:
    """A loss that keeps what it is told of the sums and their noise."""

    powers = 2

    def start(self, sums, rows, noises):
        self.sums, self.noises = sums, noises
        return SQUARED.start(sums, rows, noises)


def totals(noise, deviation, targets=TARGETS):
    """Return a curator of targets that lie in [-1/2, 1/2]."""
    return Stub(exact_answers(np.zeros((1, len(targets)), int), targets, SQUARED), noise, deviation)


def test_squares_count_four_times():
    curator = totals(None, 1.0)
    exact = curator.answer(Totals.up_to(2)).value
    np.testing.assert_allclose(exact, [400, 20, 4 * 30], atol=1e-3)
    assert totals_sensitivity(1).stated == pytest.approx(math.sqrt(1 + 1 / 4))
    assert totals_sensitivity(2).stated == pytest.approx(math.sqrt(1 + 1 / 4 + 1))


def test_noise_in_the_squares_moves_the_variance_by_a_quarter():
    """Here it is known: 4 in the last number alone, times the sensitivity of 1.5."""
    found = []
    for noise in (None, lambda _: np.array([0.0, 0.0, 4.0])):
        _, start, typical, _ = algorithm.release_totals(totals(noise, 1e-3), SQUARED)
        found.append(typical**2)
        assert start == pytest.approx(0.05, abs=1e-6)
    assert found[0] == pytest.approx(30 / 400 - 0.05**2, abs=1e-6)
    assert found[1] - found[0] == pytest.approx(1.5 * 4 / 4 / 400, abs=1e-6)


def test_a_variance_is_taken_for_as_uncertain_as_it_is():
    """Noise of 60 for a row in each number is 90 in all, and 22.5 in the sum of the squares."""
    rows, _, typical, noise = algorithm.release_totals(totals(None, 60.0), SQUARED)
    assert rows == pytest.approx(400)
    assert noise == pytest.approx(90)
    average = 0.05 / (1 + (90 / 400 / 0.25) ** 2)
    assert typical == pytest.approx(typical_deviation(30 / 400 - average**2, 22.5 / 400), rel=1e-5)


def test_each_sum_has_the_noise_that_the_loss_is_told_of():
    curator, told, sums = totals(gaussian(20.0), 20.0), Told(), []
    for _ in range(2000):
        algorithm.release_totals(curator, told)
        sums.append(told.sums)
    np.testing.assert_allclose(told.noises, [30.0, 7.5])
    # A standard deviation of 2,000 numbers has the relative error 1 / sqrt(4000).
    np.testing.assert_allclose(np.std(sums, axis=0), told.noises, rtol=4 / math.sqrt(4000))
    off = np.abs(np.mean(sums, axis=0) - [20, 30])
    assert np.all(off < 4 * told.noises / math.sqrt(2000))
