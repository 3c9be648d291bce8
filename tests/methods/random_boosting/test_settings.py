"""How many answers there are, how far a row moves them, and what noise they get."""

import math

import pytest

from dprepro.methods.random_boosting.candidates import (
    UPDATES,
    Size,
    noise_multiplier,
    part_of_budget,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import epsilon_of

BUDGET = PrivacyBudget(0.5, 1e-5)


def size(update="newton", separate=False, histograms=50, unpaid=0):
    return Size(100, histograms, unpaid, update, separate)


def test_answers_are_trees_once_or_twice_and_histograms_but_for_unpaid_ones():
    assert size().answers == 150
    assert size(separate=True).answers == 250
    assert size(histograms=500, unpaid=450).answers == 150


@pytest.mark.parametrize("update", UPDATES)
def test_both_parts_of_a_row_are_covered_alone_and_exchanged(update):
    """Brute force over what two rows can add, in one leaf or in two."""
    curvatures = [0.0, 0.25] if update == "newton" else [1.0]
    gradients = [0.0, 1.0] if update == "averaging" else [-1.0, 0.0, 1.0]
    parts = [(g, h) for g in gradients for h in curvatures]
    both = size(update).both
    assert max(math.hypot(*part) for part in parts) <= both.stated
    for one in parts:
        for other in parts:
            same_leaf = math.dist(one, other)
            two_leaves = math.hypot(*one, *other)
            assert max(same_leaf, two_leaves) <= both.replace_one + 1e-12


def test_gdp_spends_all_and_renyi_less():
    exact = noise_multiplier(100, BUDGET, "gdp")
    assert epsilon_of(10 / exact, BUDGET.delta) == pytest.approx(0.5, rel=1e-6)
    theirs = noise_multiplier(100, BUDGET, "rdp")
    assert exact < theirs < 1.5 * exact


def test_parts_of_the_budget_add_up_by_squares():
    part = part_of_budget(BUDGET, 100, 400)
    whole = 1 / noise_multiplier(1, BUDGET, "gdp")
    assert part.epsilon == pytest.approx(epsilon_of(whole / 2, BUDGET.delta))
