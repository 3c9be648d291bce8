"""Rates under a budget: what the noise of all rounds spends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dprepro.methods.lazybb.calibration import (
    ZETA_TWICE,
    Rates,
    check_calibration,
    is_private,
    one_rule_rates,
    rates_of,
    topdown_rates,
)
from dprepro.privacy.ledger import Ledger, LedgerEntry
from tests.methods.lazybb.lab import budget, curator


def entries_of(rates: Rates, rows: int, **settings: Any) -> list[LedgerEntry]:
    made = curator(np.zeros((rows, 2)), np.ones(rows), **settings)
    made.enter(rates)
    return made._source.ledger.entries


def test_the_rate_follows_one_over_zeta() -> None:
    """Twice the rows, or twice the density, allow twice the rate for the same epsilon."""
    rates = [
        one_rule_rates(budget(density=density), rows).choice.eta
        for rows, density in ((1000, 0.25), (2000, 0.25), (1000, 0.5))
    ]
    assert rates == pytest.approx([rates[0], 2 * rates[0], 2 * rates[0]])


@pytest.mark.parametrize("label_share", [0.1, 0.5, 0.8])
def test_labels_and_splits_share_a_trees_budget(label_share: float) -> None:
    splits, labels = entries_of(topdown_rates(budget(), 6, label_share, 1000), 1000)
    assert splits.budget[0] == pytest.approx(1 - label_share)
    assert labels.budget[0] == pytest.approx(label_share)
    assert (splits.uses, labels.uses) == (20 * 6, 20)


def test_noise_as_in_the_authors_code_spends_2544_on_adult() -> None:
    """2.54 a split of 200, 102 for the labels of each of 20 trees, where 1 is stated."""
    rates = topdown_rates(budget(calibration="code"), 10, 0.5, 32_561)
    assert rates.gap == ZETA_TWICE
    splits, labels = entries_of(rates, 32_561, gaps=(ZETA_TWICE,))
    assert splits.budget[0] / splits.uses == pytest.approx(2.544, abs=1e-3)
    assert (splits.uses, labels.uses) == (200, 20)
    ledger = Ledger(1.0, 0.0, "replace-one", [splits, labels])
    assert ledger.spent_epsilon() == pytest.approx(2544, abs=0.5)


@pytest.mark.parametrize(("base", "composition"), [("1r", "pure"), ("topdown", "zcdp")])
def test_the_authors_noise_is_for_pure_trees_alone(base: str, composition: str) -> None:
    with pytest.raises(ValueError, match="'code' is that of trees with pure composition, got base"):
        check_calibration("code", base, composition)


@pytest.mark.parametrize("splits", [0, 3])
def test_an_infinite_epsilon_has_infinite_rates(splits: int) -> None:
    assert not is_private(math.inf)
    rates = rates_of(budget(epsilon=math.inf, composition="zcdp"), splits, 0.5, 10)
    assert math.isinf(rates.choice.eta)
    assert (rates.labels is None) == (splits == 0)
