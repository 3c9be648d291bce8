"""Renyi accounting agrees with dp_accounting, and with what the authors of S-BDT print."""

import csv
import math

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant

from dprepro.papers.published_cell import FOLDER
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.subsampling import LARGEST_ORDER, pld_epsilon, renyi_epsilon, renyi_multiplier

DELTA = 5e-8


def of_library(multiplier, rate, steps, delta, orders):
    accountant = RdpAccountant(orders)
    event = GaussianDpEvent(multiplier)
    accountant.compose(event if rate == 1 else PoissonSampledDpEvent(rate, event), steps)
    return accountant.get_epsilon(delta)


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps"), [(20.0, 0.01, 400), (12.0, 0.1, 150), (140.0, 1.0, 200)]
)
def test_it_is_that_of_the_library(multiplier, rate, steps):
    found = renyi_epsilon(multiplier, rate, steps, DELTA)
    best = of_library(multiplier, rate, steps, DELTA, range(12, 700, 1 if rate == 1 else 12))
    assert found == pytest.approx(best, rel=2e-3)
    assert found <= best + 1e-12


def printed():
    with (FOLDER / "sbdt-2024" / "hyperparameters.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    numbers = ("epsilon", "Q", "nb_trees", "init_ratio", "sigma", "real_eps", "delta")
    return [[row["dataset"], *(float(row[name]) for name in numbers)] for row in rows]


@pytest.mark.parametrize(
    ("dataset", "epsilon", "rate", "trees", "share", "sigma", "real", "delta"), printed()
)
def test_the_printed_noise_is_that_of_both_sums_with_nothing_left_out(
    dataset, epsilon, rate, trees, share, sigma, real, delta
):
    """With whole noise a row's part has norm 1 where the noise multiplier is sigma / sqrt(2).

    The first score takes its share of epsilon. All but a few millionths of the rest are spent.
    """
    multiplier = sigma / math.sqrt(2)
    found = renyi_epsilon(multiplier, rate, int(trees), delta) + share * epsilon
    assert found == pytest.approx(real, rel=2e-5)
    ours = renyi_multiplier(epsilon * (1 - share), delta, rate=rate, steps=int(trees))
    assert ours <= multiplier * (1 + 1e-6)
    assert ours == pytest.approx(multiplier, rel=3e-3)


@pytest.mark.parametrize(("dataset", "epsilon", "rate", "trees", "_", "sigma", "__", "delta"),
                         printed())  # fmt: skip
def test_halved_noise_is_within_the_budget_as_renyi_accounting_is_loose(
    dataset, epsilon, rate, trees, _, sigma, __, delta
):
    """On Adult the share of curvatures is 0.04; with a share of 1/2 halving would overspend."""
    if dataset != "adult":
        return

    def spent(share):
        multiplier = sigma / math.sqrt(2) / math.sqrt(1 + 3 * share)
        if rate == 1:
            return epsilon_of(math.sqrt(trees) / multiplier, delta)
        return pld_epsilon(multiplier, rate, int(trees), delta)

    assert 0.97 * epsilon < spent(0.04) < epsilon
    assert spent(0.5) > 1.4 * epsilon


def test_the_multiplier_is_the_least():
    found = renyi_multiplier(0.1, DELTA, rate=0.1, steps=50)
    assert renyi_epsilon(found, 0.1, 50, DELTA) <= 0.1
    assert renyi_epsilon(found * (1 - 1e-6), 0.1, 50, DELTA) > 0.1


def test_orders_end_where_the_authors_end_them():
    assert LARGEST_ORDER == 2000
    assert renyi_epsilon(1e5, 1.0, 1, DELTA) == pytest.approx(
        2000 / (2e10) + math.log1p(-1 / 2000) - (math.log(DELTA) + math.log(2000)) / 1999
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps", "message"),
    [
        (1e-4, DELTA, 1.0, 1, "up to 100000 .* ask for a larger epsilon"),
        (1.0, DELTA, 0.0, 1, "rate must lie in"),
        (1.0, DELTA, 0.1, 0, "steps be 1 or more, got 0.1 and 0"),
        (1.0, 0.0, 0.1, 1, "delta must lie"),
        (0.0, DELTA, 0.1, 1, "epsilon must be positive"),
    ],
)
def test_what_cannot_be_met_is_refused(epsilon, delta, rate, steps, message):
    with pytest.raises(ValueError, match=message):
        renyi_multiplier(epsilon, delta, rate=rate, steps=steps)


def test_little_noise_is_enough_for_a_huge_epsilon():
    spent = renyi_epsilon(0.2, 0.1, 1, DELTA)
    for epsilon in (spent + 0.5, 1e6):
        assert renyi_multiplier(epsilon, DELTA, rate=0.1, steps=1) == pytest.approx(0.2)
