"""Learners under a budget: all that the rounds release is drawn and entered once."""

from __future__ import annotations

import math

import pytest

from dprepro.lazybb.learners import (
    Budget,
    check_calibration,
    is_private,
    one_rule_learner,
    topdown_learner,
)
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import REPLACE_ONE


def budget(**changed: object) -> Budget:
    fields = {"epsilon": 1.0, "delta": 1e-5, "composition": "pure", "calibration": "tight"}
    return Budget(**{**fields, "rounds": 20, "density": 0.25, **changed})  # type: ignore[arg-type]


def source() -> NoiseSource:
    return NoiseSource(Ledger(1.0, 1e-5, REPLACE_ONE), None)


def test_the_rate_follows_one_over_zeta() -> None:
    """Twice the rows, or twice the density, allow twice the rate for the same epsilon."""
    rates = [
        one_rule_learner(budget(density=density), rows, source()).choice.eta
        for rows, density in ((1000, 0.25), (2000, 0.25), (1000, 0.5))
    ]
    assert rates == pytest.approx([rates[0], 2 * rates[0], 2 * rates[0]])


@pytest.mark.parametrize("label_share", [0.1, 0.5, 0.8])
def test_labels_and_splits_share_a_trees_budget(label_share: float) -> None:
    noise = source()
    learner = topdown_learner(budget(), 6, label_share, 1000, noise)
    splits, labels = noise.ledger.entries
    assert splits.budget[0] == pytest.approx(1 - label_share)
    assert labels.budget[0] == pytest.approx(label_share)
    assert learner.choice.uniforms is not None
    assert learner.label.noise is not None
    assert learner.choice.uniforms.shape == (20, 6)
    assert learner.label.noise.shape == (20, 7, 2)


def test_noise_as_in_the_authors_code_spends_2544_on_adult() -> None:
    """2.54 a split of 200, 102 for the labels of each of 20 trees, where 1 is stated."""
    noise = source()
    topdown_learner(budget(calibration="code"), 10, 0.5, 32_561, noise)
    splits, labels = noise.ledger.entries
    assert splits.budget[0] / splits.uses == pytest.approx(2.544, abs=1e-3)
    assert (splits.uses, labels.uses) == (200, 20)
    ledger = Ledger(1.0, 0.0, REPLACE_ONE, [splits, labels])
    assert ledger.spent_epsilon() == pytest.approx(2544, abs=0.5)


@pytest.mark.parametrize(("base", "composition"), [("1r", "pure"), ("topdown", "zcdp")])
def test_the_authors_noise_is_for_pure_trees_alone(base: str, composition: str) -> None:
    with pytest.raises(ValueError, match="'code' is that of trees with pure composition, got base"):
        check_calibration("code", base, composition)


def test_no_budget_no_noise() -> None:
    assert not is_private(math.inf)
    assert one_rule_learner(budget(), 10, None).choice.uniforms is None
    exact = topdown_learner(budget(), 3, 0.5, 10, None)
    assert exact.choice.uniforms is None
    assert exact.label.noise is None
