"""The rounds under one budget: how much noise each kind of choice needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprepro.methods.lazybb.sensitivity import (
    LEAF_WEIGHTS,
    ONE_RULE_ERROR,
    PUBLISHED_ONE_RULE_ERROR,
    SPLIT_GAIN,
    dropped_bits,
    error_sensitivity,
    gain_sensitivity,
    leaf_sensitivity,
    smooth_distance,
    unit_of,
)
from dprepro.privacy.composition import choice_epsilon, tree_epsilons

CALIBRATIONS = ("tight", "paper", "code")

ZETA_TWICE = "noise divided by zeta twice, as in the authors' code: beyond the budget"
"""The gap of the calibration "code"."""


@dataclass(frozen=True)
class Budget:
    """What all rounds may spend together, and how it is shared; see `LazyBBClassifier`."""

    epsilon: float
    delta: float
    composition: str
    calibration: str
    rounds: int
    density: float


@dataclass(frozen=True)
class Rate:
    """The rate eta of P(candidate) ~ exp(eta utility), or of Laplace(1 / eta), and what it is for.

    `sensitivity` is the robust one that is charged, for an answer that drops so many bits.
    """

    releases: str
    eta: float
    sensitivity: float
    dropped: int = 0


@dataclass(frozen=True)
class Rates:
    """What a curator needs to enter the noise of all rounds.

    `splits` is 0 and `labels` None for 1-Rules. `gap` is the name under which the budget is
    exceeded, None where it is kept.
    """

    rounds: int
    splits: int
    choice: Rate
    labels: Rate | None = None
    gap: str | None = None


def rates_of(budget: Budget, splits: int, label_share: float, rows: int) -> Rates:
    """Return the rates of trees with so many splits, or of 1-Rules for 0 splits.

    Those of an infinite epsilon are infinite: the best is chosen.
    """
    if not is_private(budget.epsilon):
        best = Rate("the best candidate", math.inf, math.inf)
        return Rates(budget.rounds, splits, best, best if splits else None)
    if splits:
        return topdown_rates(budget, splits, label_share, rows)
    return one_rule_rates(budget, rows)


def one_rule_rates(budget: Budget, rows: int) -> Rates:
    """Return the rate of a 1-Rule.

    Each choice may spend eps0 and the error moves by Delta zeta: eta = eps0 / (2 Delta zeta). With
    Delta = 2 and pure composition that is the paper's eta = epsilon kappa n / (4 rounds) (Theorem
    7), with the true Delta = 1 it is twice as much. The ledger gets the true one either way.
    Rounding is charged on top, see `lazybb.sensitivity`: a millionth for a million rows.
    """
    zeta = smooth_distance(budget.density, rows)
    published = budget.calibration == "paper"
    moves = PUBLISHED_ONE_RULE_ERROR if published else ONE_RULE_ERROR
    each = choice_epsilon(budget.composition, budget.rounds, budget.epsilon, budget.delta)
    dropped = dropped_bits(2 * moves * zeta / each)
    sensitivity = error_sensitivity(zeta, unit_of(dropped))
    choice = Rate(
        "1-Rule of each round, by its weighted error",
        eta=each / (2 * moves / ONE_RULE_ERROR * sensitivity),
        sensitivity=sensitivity,
        dropped=dropped,
    )
    return Rates(budget.rounds, 0, choice)


def topdown_rates(budget: Budget, splits: int, label_share: float, rows: int) -> Rates:
    """Return the rates of the splits and the labels of trees.

    A choice costs 8 eta zeta and a tree's labels 2 eta' zeta. With half the budget for labels and
    pure composition, eta = epsilon kappa n / (16 rounds splits) (Theorem 10) and
    eta' = 4 splits eta, for "paper" and "tight" alike. "code" divides by zeta once more.
    """
    zeta = smooth_distance(budget.density, rows)
    if budget.calibration == "code":
        for_split, for_labels = _authors_epsilons(budget, splits, zeta)
    else:
        for_split, for_labels = tree_epsilons(
            budget.composition, budget.rounds, splits, label_share, budget.epsilon, budget.delta
        )
    dropped = dropped_bits(2 * SPLIT_GAIN * zeta / for_split)
    sensitivity = gain_sensitivity(zeta, unit_of(dropped))
    choice = Rate(
        "leaf and column of each split, by its gain",
        eta=for_split / (2 * sensitivity),
        sensitivity=sensitivity,
        dropped=dropped,
    )
    dropped = dropped_bits(LEAF_WEIGHTS * zeta / for_labels)
    sensitivity = leaf_sensitivity(zeta, unit_of(dropped), splits + 1)
    labels = Rate(
        "label of each leaf, by the weights of both",
        eta=for_labels / sensitivity,
        sensitivity=sensitivity,
        dropped=dropped,
    )
    gap = ZETA_TWICE if budget.calibration == "code" else None
    return Rates(budget.rounds, splits, choice, labels, gap)


def _authors_epsilons(budget: Budget, splits: int, zeta: float) -> tuple[float, float]:
    """Return the epsilons of a split and of a tree's labels in the authors' code.

    It takes the rate eta of Theorem 10, which has 1 / zeta in it, for a choice's epsilon, and has
    the mechanism divide that by 4 zeta. The labels of a tree get 4 splits eta in the same way.
    """
    eta = budget.epsilon / budget.rounds / (16 * splits * zeta)
    return eta, 4 * splits * eta


def check_calibration(calibration: str, base: str, composition: str) -> None:
    """Raise ValueError on the calibration "code" for anything but pure trees."""
    if calibration == "code" and (base, composition) != ("topdown", "pure"):
        raise ValueError(
            f"calibration 'code' is that of trees with pure composition, got base {base!r} and "
            f"composition {composition!r}; take 'tight'"
        )


def is_private(epsilon: float) -> bool:
    """Whether there is a budget at all: an infinite epsilon asks for the exact learner."""
    return math.isfinite(epsilon)
