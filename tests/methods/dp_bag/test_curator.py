"""The curator of DP-Bag: an exchange of a row moves a count of votes by at most one."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_bag.curator import STUDENT_ROWS, BagCurator, ExactVotes, Votes, plan_votes
from dprepro.privacy.curator_base import listening
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sampling import Bits, ExactSampler
from dprepro.privacy.sensitivity import REPLACE_ONE

DOMAIN = Domain((NumericFeature("x", 0, 1),), ("0", "1"))
ASKED = np.ones((4, 2))
"""The feature, and the constant that the encoding adds."""


def votes(teachers=10, partitions=3, divisor=None, charged=1.0):
    return Votes(charged, 1.0, teachers, partitions, divisor or partitions)


def ledger(epsilon=1.0):
    return Ledger(epsilon, 1e-5, REPLACE_ONE)


def curator(n=40, labels=4, rate=0.01, aside=0, budget=1.0, seed=0):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.random(n)})
    codes = (frame["x"] > 0.5).to_numpy().astype(np.float32)
    made = BagCurator(Private(Rows(frame, codes)), DOMAIN, ledger(budget), seed)
    made.enter(rate, labels)
    made.divide(aside)
    return made


@pytest.mark.parametrize("partitions", [1, 3])
def test_another_row_moves_a_count_by_at_most_one_and_may_move_it_so_far(partitions):
    """One teacher in each partition, whatever it then says: exact counts of neighbours."""
    X = np.ones((10, 2))  # ten teachers of one row each: every teacher says its row's label
    codes = np.array([0, 1] * 5)
    query = votes(partitions=partitions)

    def counts(codes):
        whole = ExactVotes(X, codes).counts(query, ASKED, ExactSampler(Bits(0)))
        assert whole.dtype == np.int64
        return whole / query.divisor

    for k in range(10):
        other = np.where(np.arange(10) == k, 1 - codes, codes)
        np.testing.assert_allclose(np.abs(counts(codes) - counts(other)), query.enforced)
    assert query.enforced == 1.0


def test_no_exchange_of_a_row_of_larger_parts_moves_a_count_further():
    rng = np.random.default_rng(2)
    X, codes = rng.random((24, 1)), rng.integers(0, 2, 24)
    query, asked = votes(teachers=4), np.linspace(0, 1, 5)[:, None]

    def counts(X, codes):
        return ExactVotes(X, codes).counts(query, asked, ExactSampler(Bits(0))) / query.divisor

    before, largest = counts(X, codes), 0.0
    for row in range(24):
        for x, code in ((0.0, 1), (1.0, 0), (X[row, 0], 1 - codes[row])):
            X_other, other = X.copy(), codes.copy()
            X_other[row], other[row] = x, code
            largest = max(largest, np.abs(counts(X_other, other) - before).max())
    assert 0 < largest <= query.enforced + 1e-12


def test_a_query_that_charges_less_than_it_enforces_cannot_be_built():
    for changes in ({"charged": 0.99}, {"divisor": 2}):
        with pytest.raises(SensitivityError, match="charge at least"):
            votes(**changes)


FAINT = 1e-9
"""A rate at which noise is far larger than any count: no two values are alike by chance."""


def check_noise(made, query, labels):
    """Raise unless both counts of every label have noise of their own; return the release."""
    release = made.votes(query, np.ones((labels, 2)))
    assert np.unique(release.value).size == 2 * labels
    assert np.abs(release.value).min() > 1e3 * query.teachers
    return release


def test_every_count_has_noise_of_its_own_that_follows_what_is_charged():
    for charged in (1.0, 2.0):
        made = curator(labels=300, rate=FAINT)
        release = check_noise(made, votes(charged=charged), 300)
        assert release.scale == charged / FAINT
        assert np.abs(release.value).mean() == pytest.approx(release.scale, rel=0.15)


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_noisy_counts_are_whole_numbers_of_votes_over_the_divisor(partitions):
    release = curator().votes(votes(partitions=partitions), ASKED)
    whole = np.round(release.value * partitions)
    np.testing.assert_array_equal(release.value, whole * (1 / partitions))


def test_partitions_are_secret_orders_and_not_numpys(monkeypatch):
    """Whoever knows the state of NumPy's generator of the noise knows no partition."""
    drawn = []

    class Spy(ExactSampler):
        def permutation(self, size):
            drawn.append(super().permutation(size))
            return drawn[-1]

    ExactVotes(np.ones((10, 2)), np.array([0, 1] * 5)).counts(votes(), ASKED, Spy(Bits(0)))
    assert len(drawn) == 3
    made = curator()
    monkeypatch.setattr(made._source, "generator", None)
    made.divide(10)
    made.votes(votes(), ASKED)


def test_votes_are_answered_once_and_on_no_more_rows_than_were_entered():
    made = curator()
    made.votes(votes(), ASKED)
    with pytest.raises(BudgetError, match="answered before"):
        made.votes(votes(), ASKED)
    with pytest.raises(BudgetError):
        curator(labels=3).votes(votes(), ASKED)


def test_more_votes_than_the_budget_pays_for_are_not_entered():
    curator(labels=1, rate=0.5)
    with pytest.raises(BudgetError, match="divide the budget"):
        curator(labels=2, rate=0.5)


def test_rows_set_aside_are_listed_and_teach_nobody():
    made = curator(aside=30)
    unpaid = made._source.ledger.unaccounted
    assert STUDENT_ROWS not in unpaid
    assert made.student_rows(7).shape == (7, 2)
    assert STUDENT_ROWS in unpaid
    with pytest.raises(ValueError, match="too few rows for 11 teachers"):
        made.votes(votes(teachers=11), ASKED)


def test_a_plan_enters_what_a_fit_enters():
    planned = ledger()
    plan_votes(0.01, 4, planned, 0, ())
    assert planned == curator()._source.ledger


def test_a_count_without_noise_is_caught(monkeypatch):
    add = NoiseSource.add_laplace

    def faulty(self, exact, scale, unit):
        noisy = add(self, exact, scale, unit)
        noisy[1] = exact[1] * unit
        return noisy

    check_noise(curator(rate=FAINT), votes(), 4)
    monkeypatch.setattr(NoiseSource, "add_laplace", faulty)
    with pytest.raises(AssertionError):
        check_noise(curator(rate=FAINT), votes(), 4)


def test_listeners_hear_the_votes():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append((query, release))

    with listening(Listener()):
        made = curator()
    release = made.votes(votes(), ASKED)
    assert heard == [(votes(), release)]
    with pytest.raises(TypeError, match="queries only"):
        made._follow(None)
