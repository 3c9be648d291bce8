"""The accountant adds up releases of any size: from above, in bounded memory, without overflow.

Where the spent epsilon is huge it is asked itself: a ledger also counts the samplers' distance,
which leaves nothing of delta there.
"""

import math
from dataclasses import replace

import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld.privacy_loss_distribution import (
    from_gaussian_mechanism,
    from_privacy_parameters,
)
from scipy.stats import norm

from dprepro.privacy import accountant
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import TOLERANCE, spent_epsilon
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.subsampling import loss_grain
from tests.privacy.entries import cited, dp_ebm_ledger, exponential, gaussian, laplace, ledger


@pytest.fixture(autouse=True)
def _composed_anew():
    """Let no test find what another one has composed."""
    for kept in (spent_epsilon, accountant._composed, accountant._gaussian_loss):
        kept.cache_clear()
    yield
    accountant._composed.cache_clear()  # of cells of another width


@pytest.mark.parametrize("choices", [[], [exponential(1e6)]], ids=["losses", "and Renyi"])
def test_where_sampling_is_left_out_an_exchanged_row_moves_a_sum_twice_as_far(choices):
    """An upper bound on what sampling at 0.99 and so little noise spends, which one move is not."""
    sampled = (replace(gaussian(0.09), sampling=0.99), *choices)
    exchanged = tuple(entry.under_replace_one() for entry in sampled)
    one_move, two_moves = (epsilon_of(moves / 0.09, 1e-6) for moves in (1, 2))
    assert spent_epsilon(sampled, 1e-6) == pytest.approx(one_move, rel=1e-3)
    assert spent_epsilon(exchanged, 1e-6) == pytest.approx(two_moves, rel=1e-3)
    exact = from_gaussian_mechanism(
        0.09,
        sampling_prob=0.99,
        value_discretization_interval=loss_grain(0.09),
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    assert one_move < exact.get_epsilon_for_delta(1e-6) < two_moves


def test_the_cells_of_losses_grow_with_mu_so_that_a_huge_epsilon_fits_into_memory(monkeypatch):
    grains = []

    def spy(deviation, value_discretization_interval):
        grains.append(value_discretization_interval * deviation)
        return from_gaussian_mechanism(
            deviation, value_discretization_interval=value_discretization_interval
        )

    monkeypatch.setattr("dprepro.privacy.accountant.pld.from_gaussian_mechanism", spy)
    entries = tuple(dp_ebm_ledger("joint", 1e4).entries)
    assert spent_epsilon(entries, 1e-6) == pytest.approx(1e4, rel=1e-3)
    # In units of mu: the losses then fill some mu / 1e-4 cells.
    assert grains == [pytest.approx(1e-4)]


def test_coarser_cells_still_tell_200_from_more():
    fit = dp_ebm_ledger("joint", 200.0)
    assert fit.spent_epsilon() == pytest.approx(200.0, abs=1e-6)
    assert fit.within_budget


@pytest.mark.parametrize(
    "pure", [cited(5000.0), exponential(5 * 2 / 5000, 5)], ids=lambda entry: entry.mechanism
)
def test_a_delta_adds_nothing_to_pure_releases_of_a_huge_epsilon(pure):
    """e^epsilon is no float above 709."""
    assert 4999 < spent_epsilon((pure,), 1e-6) <= 5000 + TOLERANCE
    assert ledger(pure, epsilon=5000.0).is_calibrated


def test_cells_round_up_but_never_beyond_the_sum_of_pure_epsilons(monkeypatch):
    monkeypatch.setattr(accountant, "_LARGEST_AT_FULL_GRAIN", 1.0)
    pure = laplace(7 / 41.0, 7)
    cells = accountant.spent_by_losses((pure,), 1e-6)
    assert cells > 41 + TOLERANCE
    assert ledger(pure).spent_epsilon() == pytest.approx(41, abs=TOLERANCE)


def test_a_huge_pure_epsilon_joins_a_gaussian():
    """The Gaussian adds at most the loss that it exceeds with probability delta."""
    mu = 0.1
    largest = mu**2 / 2 - mu * norm.ppf(1e-6)
    both = spent_epsilon((cited(5000.0), gaussian(1 / mu)), 1e-6)
    assert 5000 < both <= 5000 + largest + 1e-3


def test_a_huge_approximate_guarantee_promises_nothing_about_two_changes():
    for epsilon in (20.0, 5000.0):
        spent = ledger(cited(epsilon, 1e-6), delta=1e-5)
        assert spent.spent_epsilon() == pytest.approx(epsilon)
        assert spent.spent_epsilon(REPLACE_ONE) == math.inf


def test_the_cells_of_losses_grow_with_a_huge_pure_epsilon_and_only_with_it(monkeypatch):
    grains = []

    def spy(parameters, value_discretization_interval):
        grains.append(value_discretization_interval)
        return from_privacy_parameters(parameters, value_discretization_interval)

    monkeypatch.setattr("dprepro.privacy.accountant.pld.from_privacy_parameters", spy)
    for epsilon in (40.0, 600.0):
        spent = spent_epsilon((exponential(2 / epsilon, 20),), 1e-6)
        assert spent == pytest.approx(20 * epsilon, rel=1e-3)
    assert grains == pytest.approx([1e-4, 1.2e-3])


@pytest.mark.parametrize("mu", [1e-4, 1e-3, 0.049])
def test_a_small_epsilon_is_found_as_precisely_as_a_large_one(mu):
    found = spent_epsilon((gaussian(1 / mu),), 1e-6)
    exact = epsilon_of(mu, 1e-6)
    assert exact <= found <= exact * (1 + 1e-4)


def test_a_gaussian_of_a_huge_epsilon_is_composed_in_few_cells_and_rounds_up():
    """Cells as wide as mu asks for alone would be 14 times as many; a run took a minute."""
    mu = 1400.0
    composed = accountant._composed((gaussian(1 / mu),))
    assert composed._pmf_remove.size < 2 * 10**6
    exact = epsilon_of(mu, 1e-6)
    spent = spent_epsilon((gaussian(1 / mu),), 1e-6)
    assert exact <= spent <= exact * (1 + 1e-5)
