"""Lazy-Bregman boosting (Algorithm 1): ask the learner, vote, and let the curator reweigh."""

from __future__ import annotations

from typing import Protocol

from dprepro.lazybb.curator import Hypothesis, LazyBBCurator, Vote


class Learner(Protocol):
    """Makes the hypothesis of a round from a curator's choices."""

    def fit(self, curator: LazyBBCurator) -> Hypothesis:
        """Return the hypothesis of the curator's round."""
        ...


def boost(curator: LazyBBCurator, learner: Learner, rounds: int) -> list[Hypothesis]:
    """Return the hypotheses of all rounds. They are made of releases alone."""
    hypotheses = []
    for _ in range(rounds):
        hypotheses.append(learner.fit(curator))
        curator.tell(Vote(hypotheses[-1]))
    return hypotheses
