"""Every row trains at most one tree of an ensemble, whichever way the rows are dealt out."""

import numpy as np
import pytest
from scipy import stats

from dprepro.methods.dpboost.subsets import FixedSizes, IndependentRows, expected_shares
from dprepro.privacy.sampling import Bits, ExactSampler

DEALERS = [FixedSizes, IndependentRows]
SHARES = expected_shares(0.1, 50)


def deal(dealer, n=2000, shares=SHARES, seed=0, fits=None):
    """Return the rows of each tree; `fits` maps a tree's position to which rows fit."""
    subsets = dealer(ExactSampler(Bits(seed)), n, shares)
    everyone = np.ones(n, dtype=bool)
    given = [everyone if fits is None else fits(k) for k in range(len(shares))]
    return [subsets.draw(lambda rows, fit=fit: fit[rows]) for fit in given]


def test_shares_shrink_geometrically_and_sum_to_one():
    assert SHARES.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(SHARES[1:] / SHARES[:-1], 0.9)
    assert SHARES[0] == pytest.approx(0.1 / (1 - 0.9**50))
    assert expected_shares(0.3, 1) == pytest.approx([1.0])


@pytest.mark.parametrize("n_trees", [1, 3, 49, 50, 93])
def test_equal_parts_are_the_rows_over_the_trees_rounded_down(n_trees):
    shares = expected_shares(0.1, n_trees, equal=True)
    for n in (n_trees - 1, n_trees, 60 * n_trees, 60 * n_trees + n_trees - 1, 26_049):
        sizes = {rows.size for rows in deal(FixedSizes, n=n, shares=shares)}
        assert sizes == {n // n_trees}


@pytest.mark.parametrize("dealer", DEALERS)
@pytest.mark.parametrize("filtering", [False, True])
def test_no_row_trains_two_trees_of_an_ensemble(dealer, filtering):
    rng = np.random.default_rng(1)
    rows = np.concatenate(
        deal(dealer, fits=(lambda k: rng.random(2000) < 0.6) if filtering else None)
    )
    assert len(np.unique(rows)) == rows.size > 1000


def test_independent_rows_are_drawn_by_comparing_secret_words_with_whole_numbers():
    shares = np.array([0.25, 0.3, 0.45])
    first, second, _ = deal(IndependentRows, n=100, shares=shares, seed=3)
    bits = Bits(3)
    np.testing.assert_array_equal(first, np.flatnonzero(bits.words(100) >> 11 < 2**51))
    rest = np.setdiff1d(np.arange(100), first)
    np.testing.assert_array_equal(second, rest[bits.words(rest.size) >> 11 < round(0.4 * 2**53)])


def test_trees_whose_share_rounds_to_nothing_get_no_row():
    shares = expected_shares(0.6, 1000)
    assert shares[-1] == 0
    sizes = [rows.size for rows in deal(IndependentRows, shares=shares)]
    assert sum(sizes) == 2000
    assert not any(sizes[100:])


def test_fixed_numbers_of_rows_come_first_in_a_secret_order():
    first, _ = deal(FixedSizes, n=50, shares=np.array([0.4, 0.6]), seed=3)
    order = ExactSampler(Bits(3)).permutation(50)
    np.testing.assert_array_equal(first, np.sort(order[:20]))


def test_independent_rows_are_all_used_if_they_fit():
    np.testing.assert_array_equal(np.sort(np.concatenate(deal(IndependentRows))), np.arange(2000))


def test_fixed_sizes_are_rounded_down():
    sizes = [rows.size for rows in deal(FixedSizes)]
    np.testing.assert_array_equal(sizes, np.floor(SHARES * 2000))


def test_fixed_sizes_stop_when_no_row_is_left():
    assert [rows.size for rows in deal(FixedSizes, n=10, shares=np.array([0.8, 0.5, 0.5]))] == [
        8,
        2,
        0,
    ]


@pytest.mark.parametrize("dealer", DEALERS)
def test_rows_that_do_not_fit_wait_for_a_later_tree(dealer):
    odd = np.arange(2000) % 2 == 1
    dealt = deal(dealer, fits=lambda k: odd if k < 20 else np.ones(2000, dtype=bool))
    assert all((rows % 2 == 1).all() for rows in dealt[:20])
    assert any((rows % 2 == 0).any() for rows in dealt[20:])
    # None of the drawn rows that fit is replaced: the subset is smaller.
    assert sum(rows.size for rows in dealt[:20]) < 0.7 * SHARES[:20].sum() * 2000


@pytest.mark.parametrize("dealer", DEALERS)
def test_every_row_is_as_likely_as_any_other(dealer):
    counts = np.zeros(50)
    for seed in range(400):
        counts[deal(dealer, n=50, shares=np.array([0.3, 0.7]), seed=seed)[0]] += 1
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("n", [1, 7, 5000])
def test_the_tree_of_an_independent_row_does_not_depend_on_how_many_there_are(n):
    shares = np.array([0.5, 0.3, 0.2])
    repeats = 5000 // n
    drawn = np.zeros(3)
    for seed in range(repeats):
        drawn += [rows.size for rows in deal(IndependentRows, n=n, shares=shares, seed=seed)]
    assert stats.chisquare(drawn, drawn.sum() * shares).pvalue > 1e-4
    # Sizes vary as those of independent draws do: with fixed sizes this could not be.
    sizes = [deal(IndependentRows, n=20, shares=shares, seed=s)[0].size for s in range(500)]
    assert 0.7 < np.var(sizes) / (20 * 0.5 * 0.5) < 1.4
