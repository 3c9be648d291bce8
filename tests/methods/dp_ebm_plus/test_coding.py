"""Codes: what one query about all features sums, and how codes are chosen."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from dprepro.methods.dp_ebm_plus.kernel import from_units, to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, Code, CodedResiduals
from dprepro.methods.dp_ebm_plus.strategy import (
    _BLOCK,
    code,
    coded_sums,
    rounded_weights,
    typical_norm,
)
from tests.methods.dp_ebm_plus.coded_rows import asked, random_codes, random_rows, sums_of, vectors
from tests.methods.dp_ebm_plus.stub import booster

SHARES = np.array([0.9, 0.07, 0.02, 0.0095, 0.0005])


def test_weights_are_the_doubles_nearest_to_powers_of_two():
    """By no function whose last digit depends on the machine; mpmath has 60 digits."""
    steps = range(-120, 40)
    with mpmath.workdps(60):
        powers = [float(mpmath.mpf(2) ** (mpmath.mpf(k) / 4)) for k in steps]
        squares = [float(mpmath.mpf(2) ** (mpmath.mpf(k) / 2) * 1.0001) for k in steps]
    assert rounded_weights(np.array(squares)).tolist() == powers


def test_weights_are_rounded_down_by_less_than_a_step():
    squares = np.exp(np.random.default_rng(1).uniform(-60, 20, 10_000))
    ratios = rounded_weights(squares) / np.sqrt(squares)
    assert (ratios <= 1 + 1e-15).all()
    assert (ratios > 2**-0.25 - 1e-15).all()
    np.testing.assert_array_equal(rounded_weights(4.0 ** np.arange(-9, 9)), 2.0 ** np.arange(-9, 9))


# --- sums ---------------------------------------------------------------------------------------


def by_numpy(rows, query, changes, logistic=True):
    """Return what is said of the sums, in floating point, and of the scores that moved."""
    scores = rows.scores.astype(np.int64)
    for feature, change in changes.items():
        scores = np.clip(scores + change[rows.bins[feature]], 1 - 2**30, 2**30 - 1)
    u = vectors(query, rows.bins)
    limits = np.minimum(query.bound / np.linalg.norm(u, axis=1), 1.0)
    scored = from_units(scores)
    guesses = expit(scored) if logistic else scored.clip(-0.5, 0.5)
    residuals = from_units(rows.targets) - guesses
    return np.clip(residuals, -limits, limits) @ u, scores


@pytest.mark.parametrize("rows", [1, 3, 500, _BLOCK, 2 * _BLOCK + 77])
@pytest.mark.parametrize("bound", [0.1, 0.8, 100.0])
@pytest.mark.parametrize("logistic", [True, False])
def test_sums_are_what_numpy_says(rows, bound, logistic):
    rng = np.random.default_rng(rows)
    codes = random_codes(rng, features=3)
    found = random_rows(rng, codes, rows)
    changes = {
        code.feature: to_units(rng.normal(size=code.n_bins)).astype(np.int32) for code in codes
    }
    query = asked(codes, bound)
    expected, scores = by_numpy(found, query, changes, logistic)
    answer = sums_of(found, query, changes, logistic)
    # Nearly every number is limited. Each code's squared norm is rounded up by 2^-19 at most.
    lengths = np.linalg.norm(vectors(query, found.bins), axis=1)
    rounded = 0 if logistic else np.minimum(bound, lengths) * len(codes) * 2.0**-20 / lengths**2
    np.testing.assert_allclose(answer.value, expected, atol=1e-6 * rows + np.sum(rounded))
    np.testing.assert_array_equal(found.scores, scores)
    assert answer.numbers.dtype == np.int64
    assert answer.numbers.size == sum(code.weights.size for code in codes)


def test_numbers_of_one_row_are_its_residual_times_its_code():
    """In whole numbers: 256 r - p_c r in the row's bin, -p_c r in others; weights are units."""
    codes = (
        Code(INTERCEPT, np.ones(1), np.zeros(1, int)),
        Code(4, np.array([0.5, 2.0, 1.0]), np.array([200, 40, 16])),
    )
    rows = random_rows(np.random.default_rng(0), codes, 1)
    rows.scores[:], rows.targets[:], rows.bins[4][:] = 0, 2**24, 1
    answer = sums_of(rows, asked(codes, 100.0))
    half = 2**23
    np.testing.assert_array_equal(
        answer.numbers, [256 * half, -200 * half, (256 - 40) * half, -16 * half]
    )
    np.testing.assert_array_equal(answer.unit, np.array([1.0, 0.5, 2.0, 1.0]) * 2.0**-32)
    np.testing.assert_allclose(answer.value, 0.5 * vectors(asked(codes, 1.0), rows.bins)[0])


def test_a_row_in_a_bin_that_holds_all_rows_adds_nothing_to_its_feature():
    codes = (
        Code(INTERCEPT, np.ones(1), np.zeros(1, int)),
        Code(0, np.full(2, 3.0), np.array([256, 0])),
    )
    rows = random_rows(np.random.default_rng(0), codes, 40)
    rows.bins[0][:] = 0
    answer = sums_of(rows, asked(codes, 0.3))
    np.testing.assert_array_equal(answer.numbers[1:], 0)
    assert answer.numbers[0] != 0
    # Nor does it pay for it: its residual is limited by the intercept's code alone.
    free = np.abs(from_units(rows.targets) - expit(from_units(rows.scores)))
    small = random_rows(np.random.default_rng(0), codes, 40)
    small.bins[0][:] = 1
    signs = np.sign(from_units(rows.targets) - 0.5)
    assert answer.value[0] == pytest.approx((signs * np.minimum(free, 0.3)).sum(), abs=1e-4)
    paid = (signs * np.minimum(free, 0.3 / math.sqrt(19))).sum()
    assert sums_of(small, asked(codes, 0.3)).value[0] == pytest.approx(paid, abs=1e-4)


def test_a_feature_may_move_though_it_is_not_asked_about_and_the_other_way_round():
    rng = np.random.default_rng(2)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, 300)
    kept, left = codes[:2], codes[2]
    changes = {left.feature: to_units(rng.normal(size=left.n_bins))}
    expected, scores = by_numpy(rows, asked(kept, 0.5), changes)
    before = rows.scores.copy()
    answer = sums_of(rows, asked(kept, 0.5), changes)
    np.testing.assert_allclose(answer.value, expected, atol=1e-3)
    np.testing.assert_array_equal(rows.scores, scores)
    assert (rows.scores != before).mean() > 0.9
    # It has no part in what a row pays either.
    rows.scores[:] = before + changes[left.feature][rows.bins[left.feature]]
    again = sums_of(rows, asked(kept, 0.5))
    np.testing.assert_array_equal(again.numbers, answer.numbers)


def test_moves_follow_each_other_where_scores_stop_at_the_largest():
    codes = random_codes(np.random.default_rng(0), features=2)
    rows = random_rows(np.random.default_rng(1), codes, 50)
    rows.scores[:] = 2**30 - 1 - 2**20
    up, down = (np.full(256, step, np.int32) for step in (2**22, -(2**22)))
    sums_of(rows, asked(codes, 1.0), {codes[1].feature: up, codes[2].feature: down})
    np.testing.assert_array_equal(rows.scores, 2**30 - 1 - 2**22)


@pytest.mark.parametrize("pieces", [2, 3, 17, 1000])
def test_sums_do_not_depend_on_where_rows_lie(pieces):
    """In any order, in partitions of any size, that end within a block: the same numbers."""
    rng = np.random.default_rng(pieces)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, _BLOCK + 1234)
    changes = {code.feature: to_units(rng.normal(size=code.n_bins)) for code in codes}
    query = asked(codes, 0.6)
    whole = sums_of(rows.part(slice(None)), query, changes)
    order = rng.permutation(rows.scores.size)
    together = np.zeros_like(whole.numbers)
    for piece in np.array_split(order, pieces):
        together += sums_of(rows.part(piece), query, changes).numbers
    np.testing.assert_array_equal(together, whole.numbers)


def test_bins_are_asked_for_once_for_each_feature():
    codes = random_codes(np.random.default_rng(0), features=2)
    rows, asked_for = random_rows(np.random.default_rng(1), codes, _BLOCK + 1), []

    def bins(feature):
        asked_for.append(feature)
        return rows.bins[feature]

    change = {7: np.zeros(2, np.int32)}
    rows.bins[7] = np.zeros(_BLOCK + 1, np.uint8)
    coded_sums(rows.scores, rows.targets, bins, asked(codes, 1.0), change, True)
    assert sorted(asked_for) == sorted([*(c.feature for c in codes), 7])


# --- codes that are chosen ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_squared_norms_are_those_of_the_vectors(seed):
    for each in random_codes(np.random.default_rng(seed), features=4):
        bins = np.arange(each.n_bins)
        u = vectors(CodedResiduals(1.0, 1.0, (each,), 1.0), {each.feature: bins})
        np.testing.assert_allclose(each.squared_norms(), (u**2).sum(axis=1), atol=1e-9)
        # As is said of a vector: w_c (1[b = c] - p_c), or w_c (M_cb - p_c).
        own, other = (256, 0) if each.mix is None else (each.mix[0, 0], each.mix[0, -1])
        assert u[0, 0] == pytest.approx(each.weights[0] * (own - each.centre[0]) / 256)
        if each.n_bins > 1:
            assert u[-1, 0] == pytest.approx(each.weights[0] * (other - each.centre[0]) / 256)


def is_power(weights):
    """Return whether weights are powers of 2^(1/4)."""
    steps = 4 * np.log2(weights)
    return np.abs(steps - np.rint(steps)).max() < 1e-9


@pytest.mark.parametrize("share", [1.0, 0.3, 1e-4])
@pytest.mark.parametrize("rare", [0.0, LOGISTIC.rare, 1.0])
def test_weights_spend_the_share_on_rows_and_more_on_rare_ones(share, rare):
    """Weights are rounded down, so that noise is drawn for a few scales: by 2^(1/4) at most."""
    made = code(3, 1234.5 * SHARES, share, rare)
    assert made.feature == 3
    assert is_power(made.weights)
    ideal = SHARES**-rare / (SHARES ** (1 - rare)).sum() * share
    ratio = made.weights**2 / ideal
    assert (ratio <= 1 + 1e-9).all()
    assert (ratio > 0.5**0.5 * (1 - 1e-9)).all()
    spent = (SHARES * made.weights**2).sum()
    assert share / math.sqrt(2) < spent <= share * (1 + 1e-9)


@pytest.mark.parametrize("counts", [SHARES, np.full(7, 1 / 3), np.array([1e9, 1e-3])])
def test_without_care_for_rare_bins_all_weights_are_the_same(counts):
    made = code(0, counts, 0.37, 0.0)
    assert np.ptp(made.weights) == 0
    assert made.weights[0] ** 2 <= 0.37 < made.weights[0] ** 2 * math.sqrt(2)


def test_rare_bins_are_asked_about_more_precisely():
    weights = code(0, SHARES, 1.0, LOGISTIC.rare).weights
    assert (np.diff(weights) > 0).all()
    # The square goes like the root of the share: 1,800 times as rare, 42 times the square.
    assert 42 / 2 < (weights[-1] / weights[0]) ** 2 < 42 * 2


def test_centres_are_the_shares_of_rows():
    centre = code(0, 5000 * SHARES, 1.0, LOGISTIC.rare).centre
    np.testing.assert_array_equal(centre, [230, 18, 5, 2, 0])
    assert centre.dtype == np.int64
    nearly_all = code(0, np.array([1e6, 1.0]), 1.0, LOGISTIC.rare)
    np.testing.assert_array_equal(nearly_all.centre, [256, 0])
    short, long = nearly_all.squared_norms()
    assert short < 1e-3 < long


def test_a_single_bin_is_not_centred():
    """Its vector would be 0, and the intercept would not be asked about."""
    made = code(INTERCEPT, np.array([1e5]), 0.25, LOGISTIC.rare)
    assert made.centre.tolist() == [0]
    assert made.weights.tolist() == [0.5]


def test_the_typical_norm_is_that_of_rows():
    rng = np.random.default_rng(5)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, 4000)
    counts = [np.bincount(rows.bins[c.feature], minlength=c.weights.size) * 7.0 for c in codes]
    norms = np.linalg.norm(vectors(asked(codes, 1.0), rows.bins), axis=1)
    assert typical_norm(codes, counts) == pytest.approx(math.sqrt(np.mean(norms**2)))


@pytest.mark.parametrize("rows", [1e4, 1e6, 1e8, 1e10])
@pytest.mark.parametrize("features", [1, 10])
def test_a_bin_that_hardly_any_of_many_rows_lie_in_can_be_asked_about(rows, features):
    """Such as that of a category that no row has, by exact counts of very many rows."""
    counts = np.array([0.6 * rows, 0.4 * rows, 1.0])
    learner = booster(np.zeros((features, 1), int), np.zeros(1), LOGISTIC, counts=counts)
    learner.functions[0].values[:] = [1.0, -1.0, 0.0]
    query = learner.coded_residuals()
    here = random_rows(np.random.default_rng(0), query.codes, 20)
    assert sums_of(here, query).numbers.any()
