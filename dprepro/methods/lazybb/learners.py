"""Lazy-Bregman boosting (Algorithm 1): ask the learner, vote, and let the curator reweigh.

A learner says what is asked in a round, and which hypothesis is made of the answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dprepro.methods.lazybb.calibration import Budget, rates_of
from dprepro.methods.lazybb.curator import Hypothesis, LazyBBCurator, Split, Vote
from dprepro.methods.lazybb.hypotheses import Rule, Tree
from dprepro.methods.lazybb.queries import LabelQuery, RuleQuery, SplitQuery


@dataclass(frozen=True)
class OneRuleLearner:
    """Picks the 1-Rule of little weighted error (Algorithm 3), as `query` says."""

    query: RuleQuery

    def fit(self, curator: LazyBBCurator) -> Rule:
        """Return the rule of one round.

        Candidates are columns, negations and constants: 2 d + 2, whatever the rows.
        """
        chosen, d = int(curator.choose_rule(self.query).value), curator.columns
        if chosen < 2 * d:
            return Rule(chosen % d, 1 if chosen < d else -1)
        return Rule(None, 1 if chosen == 2 * d else -1)


@dataclass(frozen=True)
class TopDownLearner:
    """Grows trees of `splits` inner nodes (Algorithm 2), as the queries say.

    The curator picks leaf and column of each split by the Gini gain, and the label of each leaf by
    its weight.
    """

    splits: int
    split_query: SplitQuery
    label_query: LabelQuery

    def fit(self, curator: LazyBBCurator) -> Tree:
        """Return the tree of one round."""
        leaves, columns = np.empty((2, self.splits), dtype=np.int64)
        for k in range(self.splits):
            chosen = int(curator.choose_split(self.split_query).value)
            leaves[k], columns[k] = divmod(chosen, curator.columns)
            curator.tell(Split(int(leaves[k]), int(columns[k])))
        return Tree(leaves, columns, curator.label_leaves(self.label_query).value)


def make_learner(
    curator: LazyBBCurator, budget: Budget, splits: int, label_share: float
) -> OneRuleLearner | TopDownLearner:
    """Enter the noise of all rounds and return what asks for them: for 1-Rules with 0 splits.

    Raises
    ------
    BudgetError, SensitivityError
        As `LazyBBCurator.enter` and `SmoothQuery`.
    """
    rates = rates_of(budget, splits, label_share, curator.rows)
    curator.enter(rates)
    choice, labels = rates.choice, rates.labels
    smooth: Any = {"density": budget.density, "rows": curator.rows, "dropped": choice.dropped}
    if labels is None:
        return OneRuleLearner(RuleQuery(choice.sensitivity, 1.0, **smooth))
    of_labels: Any = {**smooth, "dropped": labels.dropped, "leaves": splits + 1}
    return TopDownLearner(
        splits,
        SplitQuery(choice.sensitivity, 1.0, **smooth),
        LabelQuery(labels.sensitivity, 1.0, **of_labels),
    )


class Learner(Protocol):
    """Makes the hypothesis of a round from a curator's choices."""

    def fit(self, curator: LazyBBCurator) -> Hypothesis:
        """Return the hypothesis of the curator's round."""
        ...


def boost(curator: LazyBBCurator, learner: Learner, rounds: int) -> list[Hypothesis]:
    """Return the hypotheses of all rounds. They are made of noisy answers alone."""
    hypotheses = []
    for _ in range(rounds):
        hypotheses.append(learner.fit(curator))
        curator.tell(Vote(hypotheses[-1]))
    return hypotheses
