"""The learners of all rounds under one budget: how much noise each kind of choice needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprepro.estimators.validation import check_choice
from dprepro.lazybb.one_rule import OneRuleLearner
from dprepro.lazybb.topdown import TopDownLearner
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.robust import (
    LEAF_WEIGHTS,
    ONE_RULE_ERROR,
    PUBLISHED_ONE_RULE_ERROR,
    SPLIT_GAIN,
    smooth_distance,
)
from dprepro.privacy.rounds import choice_epsilon, tree_epsilons
from dprepro.privacy.weighted import (
    WeightedExponential,
    WeightedNoisyMax,
    weighted_exponential,
    weighted_noisy_max,
)

CALIBRATIONS = ("tight", "paper", "code")


@dataclass(frozen=True)
class Budget:
    """What all rounds may spend together, and how it is shared; see `LazyBBClassifier`."""

    epsilon: float
    delta: float
    composition: str
    calibration: str
    rounds: int
    density: float


def one_rule_learner(budget: Budget, rows: int, source: NoiseSource | None) -> OneRuleLearner:
    """Return the learner, with the noise of all rounds; `source` None for none.

    Each choice may spend eps0 and the error moves by Delta zeta: eta = eps0 / (2 Delta zeta). With
    Delta = 2 and pure composition that is the paper's eta = epsilon kappa n / (4 rounds) (Theorem
    7), with the true Delta = 1 it is twice as much. The ledger gets the true one either way.
    """
    if source is None:
        return OneRuleLearner(WeightedExponential())
    zeta = smooth_distance(budget.density, rows)
    published = budget.calibration == "paper"
    moves = PUBLISHED_ONE_RULE_ERROR if published else ONE_RULE_ERROR
    each = choice_epsilon(budget.composition, budget.rounds, budget.epsilon, budget.delta)
    choice = weighted_exponential(
        source,
        (budget.rounds,),
        releases="1-Rule of each round, by its weighted error",
        eta=each / (2 * moves * zeta),
        robust_sensitivity=ONE_RULE_ERROR * zeta,
    )
    return OneRuleLearner(choice)


def topdown_learner(
    budget: Budget, splits: int, label_share: float, rows: int, source: NoiseSource | None
) -> TopDownLearner:
    """Return the learner, with the noise of all rounds; `source` None for none.

    A choice costs 8 eta zeta and a tree's labels 2 eta' zeta. With half the budget for labels and
    pure composition, eta = epsilon kappa n / (16 rounds splits) (Theorem 10) and
    eta' = 4 splits eta, for "paper" and "tight" alike. "code" divides by zeta once more.
    """
    if source is None:
        return TopDownLearner(splits, WeightedExponential(), WeightedNoisyMax())
    zeta = smooth_distance(budget.density, rows)
    if budget.calibration == "code":
        for_split, for_labels = _authors_epsilons(budget, splits, zeta)
        source.ledger.gaps.append(
            "noise divided by zeta twice, as in the authors' code: beyond the budget"
        )
    else:
        for_split, for_labels = tree_epsilons(
            budget.composition, budget.rounds, splits, label_share, budget.epsilon, budget.delta
        )
    choice = weighted_exponential(
        source,
        (budget.rounds, splits),
        releases="leaf and column of each split, by its gain",
        eta=for_split / (2 * SPLIT_GAIN * zeta),
        robust_sensitivity=SPLIT_GAIN * zeta,
    )
    label = weighted_noisy_max(
        source,
        (budget.rounds, splits + 1, 2),
        releases="label of each leaf, by the weights of both",
        eta=for_labels / (LEAF_WEIGHTS * zeta),
        robust_sensitivity=LEAF_WEIGHTS * zeta,
    )
    return TopDownLearner(splits, choice, label)


def _authors_epsilons(budget: Budget, splits: int, zeta: float) -> tuple[float, float]:
    """Return the epsilons of a split and of a tree's labels in the authors' code.

    It takes the rate eta of Theorem 10, which has 1 / zeta in it, for a choice's epsilon, and has
    the mechanism divide that by 4 zeta. The labels of a tree get 4 splits eta in the same way.
    """
    eta = budget.epsilon / budget.rounds / (16 * splits * zeta)
    return eta, 4 * splits * eta


def check_calibration(calibration: str, base: str, composition: str) -> None:
    """Raise ValueError on an unknown calibration, or "code" for anything but pure trees."""
    check_choice("calibration", calibration, CALIBRATIONS)
    if calibration == "code" and (base, composition) != ("topdown", "pure"):
        raise ValueError(
            f"calibration 'code' is that of trees with pure composition, got base {base!r} and "
            f"composition {composition!r}; take 'tight'"
        )


def is_private(epsilon: float) -> bool:
    """Whether there is a budget at all: an infinite epsilon asks for the exact learner."""
    return math.isfinite(epsilon)
