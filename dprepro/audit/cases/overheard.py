"""A case whose adversary is given all that leaves a fit, or all of one entry of its ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from dprepro.audit.adversary.evidence import Evidence, observed
from dprepro.audit.adversary.transcript import Event, overhear
from dprepro.audit.case import AuditSetting, Case, MethodPair
from dprepro.privacy.ledger import Ledger

WHOLE = "transcript"
JOINT = 0
"""Of choices and Laplace noise the joint evidence alone is learnt from: a sum of single answers is
not what tells most there."""

_TRIALS = 4000

Weigh = Callable[[Any, list[Event]], Sequence[Evidence]]


@dataclass(frozen=True)
class Overheard:
    """Fits one of some pairs, and gives an adversary all that leaves the fit.

    Attributes
    ----------
    pairs
        Each with what weighs its transcript.
    part
        Which answers count: those of this name, or all.
    entry
        Of the part in the ledger.
    """

    pairs: tuple[tuple[MethodPair, Weigh], ...]
    part: str | None = None
    entry: int = 0

    def __call__(self, present: bool, seed: int | None) -> Any:
        """Return ``ledger_``, of the part alone if there is one, ``evidence``, and which pair."""
        drawn = np.random.default_rng(None if seed is None else (seed, 1))
        which = int(drawn.integers(len(self.pairs)))
        pair, weigh = self.pairs[which]
        model, events = overhear(partial(pair.fit, present, seed))
        evidence, ledger = list(weigh(model, events)), model.ledger_
        if self.part is not None:
            evidence = [each for each in evidence if each.name == self.part]
            ledger = part_of(ledger, self.entry)
        return SimpleNamespace(ledger_=ledger, evidence=evidence, which=which)


def part_of(ledger: Ledger, entry: int) -> Ledger:
    """Return the ledger of one of its entries alone, which states what that entry spends."""
    part = replace(ledger, entries=[ledger.entries[entry]])
    return replace(part, epsilon=part.spent_epsilon())


@dataclass(frozen=True)
class _Observe:
    """Observes the evidence, and which canary was drawn: what is wrong may depend on it."""

    size: int
    pairs: int

    def __call__(self, outcome: Any) -> np.ndarray:
        drawn = np.arange(self.pairs if self.pairs > 1 else 0) == outcome.which
        return np.concatenate([observed(outcome.evidence, self.size), drawn])


def transcript_case(
    setting: AuditSetting, fit: Overheard, size: int, neighbours: str, trials: int = _TRIALS
) -> Case:
    """Return a case of a transcript, of which so many answers are also seen by themselves."""
    return Case(
        subject=f"{setting.method}/{fit.part or WHOLE}",
        task=setting.task,
        neighbours=neighbours,
        fit=fit,
        observe=_Observe(size, len(fit.pairs)),
        trials=trials,
    )
