"""A budget is a pair of floats with one wording."""

import json
import math

import pytest

from dprepro.privacy.budget import PrivacyBudget


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (PrivacyBudget(0.5, 0.0), "epsilon 0.5"),
        (PrivacyBudget(1.0, 1e-6), "(epsilon 1, delta 1e-06)"),
        (PrivacyBudget(math.inf, 1e-6), "non-private"),
    ],
)
def test_the_wording(budget, text):
    assert str(budget) == f"{budget}" == text


def test_it_cannot_change_and_equals_its_pair():
    budget = PrivacyBudget(1.0, 1e-6)
    with pytest.raises(AttributeError):
        budget.epsilon = 2.0
    assert budget == (1.0, 1e-6)
    assert json.dumps(budget) == "[1.0, 1e-06]"


def test_titles_name_the_level_of_a_private_method_alone():
    assert PrivacyBudget(4.0, 1e-6).name("ours") == "ours, ε=4"
    assert PrivacyBudget(math.inf, 0.0).name("ebm") == "ebm"
    assert [PrivacyBudget(e, 0.0).is_finite for e in (0.5, math.inf)] == [True, False]
