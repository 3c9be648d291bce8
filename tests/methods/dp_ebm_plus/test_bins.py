"""Histograms as they are asked for, the counts that they make likely, and bins."""

import numpy as np
import pytest

from dprepro.additive.bins import OTHER
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.dp_ebm_plus.bins import binned, histogram, likely_counts
from dprepro.methods.dp_ebm_plus.grid import fine_cells, grid_edges
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT, CodedHistogram
from dprepro.privacy.query import NoisyAnswer, SensitivityError
from tests.methods.dp_ebm_plus.test_grid import column, features

RNG = np.random.default_rng(5)


def answered(feature, counts, deviation, rng=None):
    """Return how cells are asked for, and the answer that these rows in them bring."""
    strategy = histogram(0, feature, deviation, counts.sum())
    scale = deviation * CodedHistogram.of(strategy.code).charged
    numbers = strategy.code.numbers(counts.astype(np.int64)) * CENTRE_UNIT * strategy.code.weights
    noise = 0.0 if rng is None else scale * rng.normal(size=numbers.size)
    return strategy, NoisyAnswer(numbers + noise, scale)


FEATURES = [
    NumericFeature("x", -1.0, 1.0),
    NumericFeature("x", 5.0, 5.0, missing=True),
    NumericFeature("x", 0.0, 1e6, missing=True),
    CategoricalFeature("c", ("a", "b", "c")),
]


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("deviation", [1e-6, 1.0, 30.0, 1e3, 1e9])
def test_a_row_is_charged_for_the_longest_code_of_a_cell(feature, deviation):
    code = histogram(3, feature, deviation, 1000.0).code
    query = CodedHistogram.of(code)
    vectors = code.weights[:, None] * code.mix * CENTRE_UNIT
    longest = np.sqrt((vectors**2).sum(axis=0)).max()
    assert query.charged == query.enforced == pytest.approx(longest)
    assert 0.9 < longest < 1.1  # weights are rounded to powers of 2^(1/4)
    with pytest.raises(SensitivityError, match="charge at least"):
        CodedHistogram(0.99 * query.enforced, 1.0, code)
    code.weights[:] *= 1.01
    with pytest.raises(SensitivityError, match="charge at least"):
        query.check()


def test_numbers_of_cells_say_more_of_all_rows_the_more_noise_there_is():
    feature = NumericFeature("x", 1.0, 2.0)
    counts = np.append(np.full(128, 100.0), 0.0)
    errors = []
    for deviation in (1.0, 100.0, 1e4):
        strategy = histogram(0, feature, deviation, counts.sum())
        own, after = strategy.noise(deviation * CodedHistogram.of(strategy.code).charged)
        # Number c has the noise own_c e_c - after_c e_(c+1) once it is a count.
        total = own - np.append(0.0, after[:-1])
        errors.append(np.sqrt((total[:-1] ** 2).sum()) / deviation)
    assert errors[0] == pytest.approx(np.sqrt(128), rel=0.05)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 3


def test_ranges_of_cells_are_known_better_than_by_counting_each():
    feature = NumericFeature("x", 1.0, 2.0)
    exact = np.append(np.repeat([700.0, 20.0], 64), 0.0)
    rows, rng, errors = exact.sum(), np.random.default_rng(1), []
    for _ in range(20):
        likely, _ = likely_counts(feature, *answered(feature, exact, 2000.0, rng), rows)
        errors.append(likely[:64].sum() - exact[:64].sum())
    # Sixty-four cells that are counted one by one have an error of 16,000 rows.
    assert np.sqrt(np.mean(np.square(errors))) < 8000


@pytest.mark.parametrize("missing", [False, True])
def test_counts_are_even_under_noise_and_as_counted_without(missing):
    feature = NumericFeature("x", 1.0, 2.0, missing=missing)
    cells = 129
    exact = np.append(1000.0 * np.exp(-np.arange(cells - 1) / 9), 70.0 if missing else 0.0)
    rows = exact.sum()
    known, variances = likely_counts(feature, *answered(feature, exact, 0.5), rows)
    np.testing.assert_allclose(known, exact, atol=3)
    assert (variances[:-1] < 1).all()
    even, _ = likely_counts(feature, *answered(feature, exact, 1e8, RNG), rows)
    used = slice(None) if missing else slice(-1)
    np.testing.assert_allclose(even[used], rows / (cells - (not missing)), rtol=0.01)
    assert missing or known[-1] == even[-1] == 0


def test_the_more_noise_the_wider_are_bins():
    feature = NumericFeature("x", 1.0, 2.0)
    exact = np.append(np.full(128, 100.0), 0.0)
    asked = [answered(feature, exact, noise) for noise in (1.0, 200.0, 1e9)]
    found = [binned(feature, *each, 12800.0) for each in asked]
    # 200 rows are .6 deviations of the noise in two cells and more; six cells hold a 24th.
    assert [each.intervals for each in found] == [128, 64, 21]
    assert found[0].counts.sum() == pytest.approx(12800, abs=128 * 2**-11)  # each is rounded


def test_every_category_has_a_bin():
    feature = CategoricalFeature("c", ("a", "b", "c"))
    strategy = histogram(0, feature, 4.0, 92.0)
    answer = NoisyAnswer(np.array([5.0, -3.0, 90.0, 0.0]) * strategy.code.weights, 4.0)
    found = binned(feature, strategy, answer, 92.0)
    assert found.bins.n_bins == 3
    assert found.intervals == 0
    assert (found.counts > 0).all()


@pytest.mark.parametrize("feature", features(), ids=["numeric", "categorical"])
@pytest.mark.parametrize("deviation", [1.0, 30.0, 3000.0])
def test_rows_are_encoded_as_their_cells_were_joined(feature, deviation):
    values = column(feature, 4000)
    cells, counts = fine_cells(values, feature)
    asked = answered(feature, counts, deviation, np.random.default_rng(1))
    found = binned(feature, *asked, 4000.0)
    np.testing.assert_array_equal(found.bins.encode(values), found.bin_of_cell[cells])
    assert found.counts.shape == (found.bins.n_bins,)
    assert found.counts.min() > 0
    assert found.counts.sum() == pytest.approx(4000, abs=found.bins.n_bins * 2**-11)
    assert found.bins.missing_bin == found.bins.n_bins - 1


def test_a_bin_is_closed_where_a_24th_of_all_rows_is_and_none_where_hardly_any_are():
    feature = NumericFeature("x", 1.0, 2.0)
    exact = np.append(np.repeat([1000.0, 1.0], 64), 0.0)
    loud, quiet = (binned(feature, *answered(feature, exact, s), exact.sum()) for s in (1e9, 0.1))
    assert loud.intervals == 21  # of even counts
    # A bin holds a 250th of all rows at least: 256 of them, so all cells of one row are one bin.
    assert quiet.intervals == 64
    np.testing.assert_array_equal(quiet.bins.cuts, grid_edges(feature)[:63])


def test_categories_are_bins_as_far_as_a_byte_can_number_them():
    many = CategoricalFeature("x", tuple(map(str, range(3000))))
    counts = np.append(np.arange(3000.0), 0.0)
    found = binned(many, *answered(many, counts, 0.1), counts.sum())
    assert found.bins.n_bins <= 256
    assert found.bins.labels[-1] == OTHER
    assert found.bin_of_cell[:2000].min() == found.bins.n_bins - 1


def test_a_feature_of_one_value_has_one_bin():
    feature = NumericFeature("x", 3.0, 3.0)
    found = binned(feature, *answered(feature, np.array([50.0, 0.0]), 1.0), 50.0)
    assert (found.bins.n_bins, found.intervals) == (1, 1)


def test_a_count_lost_in_the_noise_is_not_negative_and_no_more_than_a_fourth_of_an_even_one():
    feature = CategoricalFeature("x", ("a", "b", "c"))
    strategy = histogram(0, feature, 30.0, 1700.0)
    noisy = np.array([900.0, 800.0, -400.0, 0.0]) * strategy.code.weights
    found = binned(
        feature, strategy, NoisyAnswer(noisy, 30.0 * strategy.code.weights.max()), 1700.0
    )
    assert 0 < found.counts[2] < 1700 / 3 / 4 * 1.1
    assert found.counts.sum() == pytest.approx(1700, abs=0.01)
