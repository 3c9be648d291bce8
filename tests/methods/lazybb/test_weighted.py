"""Weighted choices: their frequencies are the stated ones, and those cost what the ledger says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dprepro.methods.lazybb.curator import weighted_choices, weighted_noisy_max
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import BudgetError, Query
from dprepro.privacy.sensitivity import REPLACE_ONE

DRAWS = 40_000
QUALITY = np.array([-0.3, -0.1, -0.5, -0.1, -0.9])
UNIT = 2.0**-36
WHOLE = np.rint(QUALITY / UNIT).astype(np.int64)


class Choice(Query):
    """A choice whose qualities move by what is charged."""

    @property
    def enforced(self) -> float:
        return self.charged


def source(seed: int | None = 0) -> NoiseSource:
    return NoiseSource(Ledger(1.0, 0.0, REPLACE_ONE), seed)


def probabilities(eta: float, quality: np.ndarray) -> np.ndarray:
    weights = np.exp(eta * (quality - quality.max()))
    return weights / weights.sum()


@pytest.mark.parametrize("eta", [0.0001, 2.0, 11.0])
def test_the_exponential_mechanism_has_its_probabilities(eta: float) -> None:
    choice = weighted_choices(source(), (DRAWS,), releases="x", eta=eta, robust_sensitivity=0.01)
    picked = [int(choice.choose((i,), WHOLE, Choice(0.01, 1.0), UNIT).value) for i in range(DRAWS)]
    observed = np.bincount(picked, minlength=QUALITY.size)
    expected = DRAWS * probabilities(eta, QUALITY)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_qualities_out_of_reach_of_exp_do_no_harm() -> None:
    choice = weighted_choices(source(), (50,), releases="x", eta=1e9, robust_sensitivity=1.0)
    query = Choice(1.0, 1.0)
    far = np.where(QUALITY.max() == QUALITY, 2**60, -(2**60))
    assert {int(choice.choose((i,), far, query, UNIT).value) for i in range(50)} == {1, 3}


def test_a_query_that_charges_twice_as_much_is_answered_at_half_the_rate() -> None:
    choice = weighted_choices(source(), (2,), releases="x", eta=3.0, robust_sensitivity=0.2)
    scales = [choice.choose((k,), WHOLE, Choice(0.2 * (k + 1), 1.0), UNIT).scale for k in range(2)]
    assert scales == pytest.approx([1 / 3, 2 / 3])


def test_no_choice_is_made_twice() -> None:
    choice = weighted_choices(source(), (3, 2), releases="x", eta=3.0, robust_sensitivity=0.2)
    choice.choose((2, 1), WHOLE, Choice(0.2, 1.0), UNIT)
    for use in ((2, 1), (3, 0), (-1, 0), (1,)):
        with pytest.raises(BudgetError, match="answered before"):
            choice.choose(use, WHOLE, Choice(0.2, 1.0), UNIT)


@pytest.mark.parametrize("gap", [0.0, 0.7, 3.0])
def test_noisy_max_has_its_probabilities(gap: float) -> None:
    eta = 1.5
    label = weighted_noisy_max(
        source(), (DRAWS, 1, 2), releases="x", eta=eta, robust_sensitivity=0.1
    )
    values = np.array([[round(gap / UNIT), 0]])
    query = Choice(0.1, 1.0)
    noisy = [label.answer(i, values, query, UNIT).value for i in range(DRAWS)]
    losses = int(np.argmax(noisy, axis=2).sum())
    # The difference of two Laplace draws exceeds x with probability (2 + eta x) e^(-eta x) / 4.
    p = (2 + eta * gap) * np.exp(-eta * gap) / 4
    assert stats.binomtest(losses, DRAWS, p).pvalue > 1e-4


def test_the_ledger_says_what_theorems_3_and_4_say() -> None:
    noise = source(None)
    weighted_choices(noise, (6, 5), releases="a", eta=4.0, robust_sensitivity=0.01)
    weighted_noisy_max(noise, (6, 3, 2), releases="b", eta=5.0, robust_sensitivity=0.02)
    assert [entry.uses for entry in noise.ledger.entries] == [30, 6]
    assert noise.ledger.spent_epsilon() == pytest.approx(30 * 2 * 4.0 * 0.01 + 6 * 5.0 * 0.02)


def test_no_pair_within_the_sensitivity_costs_more() -> None:
    """Exact probabilities: moves of Delta each, or of any size with a range of 2 Delta."""
    rng = np.random.default_rng(1)
    eta, sensitivity = 3.0, 0.2
    largest = 0.0
    for _ in range(500):
        quality = rng.uniform(-1, 0, 5)
        moves = rng.choice([-sensitivity, sensitivity], 5) + rng.choice([0.0, 0.7])
        ratio = probabilities(eta, quality + moves) / probabilities(eta, quality)
        largest = max(largest, np.abs(np.log(ratio)).max())
    cost = 2 * eta * sensitivity
    assert 0.8 * cost < largest <= cost + 1e-12
