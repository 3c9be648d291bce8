"""How many splits decide a cell: against a plain search, and against the formula by hand."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dprepro.judge.power import LimitedBy, Undecided, splits_needed
from dprepro.judge.statistics import Sample, compare

LEVEL = 0.05 / 161


def ours(mean=0.88, sd=0.01, splits=25, **fields):
    return Sample(mean, sd, splits, **fields)


def printed(mean=0.88, sd=0.01, splits=25, **fields):
    return Sample(mean, sd, splits, **fields)


def decides(first, second, margin, level=LEVEL):
    found = compare(first, second, margin)
    return found.is_equivalent or found.p_difference < level


def test_of_equal_means_it_is_the_least_n_of_the_formula_by_hand():
    """t(n + 23) sd sqrt(1/n + 1/25) < 0.004: about 1.66 * 0.01 * sqrt(...), so n is near 54."""
    n = np.arange(2, 1000)
    reach = stats.t.ppf(0.95, n + 23) * 0.01 * np.sqrt(1 / n + 1 / 25)
    least = int(n[np.argmax(reach < 0.004)])
    assert 50 < least < 60
    assert splits_needed(ours(), printed(), 0.004, LEVEL) == Undecided(LimitedBy.OUR_SPLITS, least)


def test_a_difference_counts_against_the_margin_and_may_be_shown_itself():
    near = splits_needed(ours(0.8807), printed(), 0.0045, LEVEL)
    assert near.splits > splits_needed(ours(), printed(), 0.0045, LEVEL).splits
    # 0.0085 is far above the margin: z grows to 0.0085 / 0.002 = 4.25, and 3.6 rejects.
    shown = splits_needed(ours(0.8885), printed(), 0.004, LEVEL)
    n = np.arange(25, 1000)
    p = 2 * stats.t.sf(0.0085 / (0.01 * np.sqrt(1 / n + 1 / 25)), n + 23)
    assert shown == Undecided(LimitedBy.OUR_SPLITS, int(n[np.argmax(p < LEVEL)]))


def test_what_limits_a_cell_that_no_number_decides():
    """1.645 * 0.02 / sqrt(25) = 0.0066: the printed mean alone is not known to 0.005."""
    wide = printed(sd=0.02)
    assert splits_needed(ours(sd=0.02), wide, 0.005, LEVEL) == Undecided(LimitedBy.PRINTED_SPREAD)
    assert splits_needed(ours(sd=0.02), wide, 0.0067, LEVEL).limited_by is LimitedBy.OUR_SPLITS
    single = printed(sd=None, splits=1)
    assert splits_needed(ours(), single, 0.005, LEVEL) == Undecided(LimitedBy.NO_PRINTED_SD)
    one_draw = replace(single, least_sd=0.01)
    assert splits_needed(ours(), one_draw, 0.005, LEVEL) == Undecided(LimitedBy.PRINTED_SPREAD)
    # A reach of 0.0033 fits into the margin, but not behind a difference of 0.003.
    near = splits_needed(ours(0.883), printed(), 0.005, LEVEL)
    assert near == Undecided(LimitedBy.DIFFERENCE)


def test_rounding_of_print_is_no_less_with_more_splits():
    coarse = printed(sd=0.001, half_unit=0.005)
    assert splits_needed(ours(sd=0.001), coarse, 0.0045, LEVEL) == Undecided(
        LimitedBy.PRINTED_SPREAD  # 1.645 * 0.01 / sqrt(12) = 0.0047
    )
    assert splits_needed(ours(sd=0.02), coarse, 0.0095, LEVEL).splits > 25


def test_a_single_printed_run_can_be_decided_where_the_margin_is_wide():
    single = printed(sd=None, splits=1)
    found = splits_needed(ours(splits=3), single, 0.02, LEVEL)
    assert found.limited_by is LimitedBy.OUR_SPLITS
    assert 3 < found.splits < 20


def test_one_split_of_ours_has_the_printed_spread():
    found = splits_needed(ours(sd=None, splits=1), printed(), 0.005, LEVEL)
    n = np.arange(2, 100)
    reach = stats.t.ppf(0.95, 24) * 0.01 * np.sqrt(1 / n + 1 / 25)
    assert found.splits == int(n[np.argmax(reach < 0.005)])


@given(
    st.floats(0.0, 0.02), st.floats(0.001, 0.03), st.floats(0.001, 0.03), st.integers(2, 30),
    st.integers(2, 30), st.floats(0.002, 0.02),
)  # fmt: skip
def test_the_number_decides_and_one_less_does_not(shift, sd, other, splits, theirs, margin):
    first, second = ours(0.88 + shift, sd, splits), printed(sd=other, splits=theirs)
    assume(not decides(first, second, margin))
    found = splits_needed(first, second, margin, LEVEL)
    if found.splits is None:
        assert not decides(replace(first, splits=10**8), second, margin)
        could = decides(replace(first, splits=10**8, mean=0.88), second, margin)
        assert (found.limited_by is LimitedBy.DIFFERENCE) == could
    else:
        assert found.splits > splits
        assert decides(replace(first, splits=found.splits), second, margin)
        assert not decides(replace(first, splits=found.splits - 1), second, margin)


def test_it_is_put_into_words():
    assert str(Undecided(LimitedBy.OUR_SPLITS, 1279)) == "1,279 splits of ours would decide it"
    said = [str(Undecided(limit)) for limit in list(LimitedBy)[1:]]
    assert len(set(said)) == 3
    assert all("more splits of ours" in words for words in said)
