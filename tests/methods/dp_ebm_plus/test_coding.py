"""Codes: what one query about all features sums."""

import math

import numpy as np
import pytest
from scipy.special import expit

from dprepro.methods.dp_ebm_plus.kernel import LABELS, NUMBERS, from_units, to_units
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, Code, CodedResiduals
from dprepro.methods.dp_ebm_plus.sums import _BLOCK, coded_sums
from tests.methods.dp_ebm_plus.coded_rows import asked, random_codes, random_rows, sums_of, vectors

# --- sums ---------------------------------------------------------------------------------------


def by_numpy(rows, query, changes, kind=LABELS):
    """Return what is said of the sums, in floating point, and of the scores that moved."""
    scores = rows.scores.astype(np.int64)
    for feature, change in changes.items():
        scores = np.clip(scores + change[rows.bins[feature]], 1 - 2**30, 2**30 - 1)
    u = vectors(query, rows.bins)
    limits = np.minimum(query.bound / np.linalg.norm(u, axis=1), 1.0)
    scored = from_units(scores)
    guesses = expit(scored) if kind == LABELS else scored.clip(-0.5, 0.5)
    residuals = from_units(rows.targets) - guesses
    return np.clip(residuals, -limits, limits) @ u, scores


@pytest.mark.parametrize("rows", [1, 3, 500, _BLOCK, 2 * _BLOCK + 77])
@pytest.mark.parametrize("bound", [0.1, 0.8, 100.0])
@pytest.mark.parametrize("kind", [LABELS, NUMBERS])
def test_sums_are_what_numpy_says(rows, bound, kind):
    rng = np.random.default_rng(rows)
    codes = random_codes(rng, features=3)
    found = random_rows(rng, codes, rows)
    changes = {
        code.feature: to_units(rng.normal(size=code.n_bins)).astype(np.int32) for code in codes
    }
    query = asked(codes, bound)
    expected, scores = by_numpy(found, query, changes, kind)
    answer = sums_of(found, query, changes, kind)
    # Nearly every number is limited. Each code's squared norm is rounded up by 2^-19 at most.
    lengths = np.linalg.norm(vectors(query, found.bins), axis=1)
    rounded = (
        0 if kind == LABELS else np.minimum(bound, lengths) * len(codes) * 2.0**-20 / lengths**2
    )
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
    coded_sums(rows.scores, rows.targets, bins, asked(codes, 1.0), change, LABELS)
    assert sorted(asked_for) == sorted([*(c.feature for c in codes), 7])


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
