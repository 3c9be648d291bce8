"""How an audit spends its runs and its risk: settled before the first run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dprepro.errors import DpreproError

MIN_TRIALS = 40

_LOOKS = ((0.1, 0.01), (1 / 3, 0.04), (1.0, 0.95))
"""Shares of the held-out runs after which the bound is looked at, each with its share of the risk.

A bound holds at one look but with the risk that is spent there. The shares add up to 1, so that all
looks hold together with the confidence that is asked for, whichever the audit ends at (Bonferroni;
nothing is assumed of how looks depend on each other).
"""
_FEWEST_FOR_LOOKS = 1000
"""With fewer held-out runs there is one look: it would be a waste to spend risk on earlier ones."""

_TRAINING, _LEAST_TRAINING = 8, 1000
"""An eighth of the runs train, of few runs more, of very few a half."""


class Look(NamedTuple):
    """When the bound is looked at: after so many held-out runs, with this share of the risk."""

    runs: int
    share: float

    def confidence(self, of_all: float) -> float:
        """Return that of this look's bound, where all looks together have `of_all`."""
        return 1 - self.share * (1 - of_all)


@dataclass(frozen=True)
class Schedule:
    """The runs that train, in pairs, and the looks at those held out."""

    training: int
    looks: Sequence[Look]

    @property
    def runs(self) -> int:
        """All runs, if the audit does not end early."""
        return self.training + self.looks[-1].runs


def check_trials(trials: int) -> None:
    """Raise DpreproError on fewer than `MIN_TRIALS` trials."""
    if trials < MIN_TRIALS:
        raise DpreproError(f"an audit needs at least {MIN_TRIALS} trials, got {trials}")


def schedule(trials: int, learns: bool) -> Schedule:
    """Divide the runs of an audit; `learns` says whether a distinguisher must be learnt.

    Raises
    ------
    DpreproError
        As `check_trials`.
    """
    check_trials(trials)
    training = min(trials // 2, max(trials // _TRAINING, _LEAST_TRAINING)) if learns else 0
    training -= training % 2
    held_out = trials - training
    if held_out < _FEWEST_FOR_LOOKS:
        return Schedule(training, [Look(held_out, 1.0)])
    return Schedule(training, [Look(round(part * held_out), share) for part, share in _LOOKS])
