"""A case whose adversary is given all that leaves a fit, or all of one entry of its ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from dprepro.audit.adversary.evidence import JOINT_EVIDENCE, Evidence, observed
from dprepro.audit.adversary.transcript import Event, overhear
from dprepro.audit.case import AuditSetting, Case, MethodPair

WHOLE = "transcript"
JOINT = 0
"""Of choices and Laplace noise the joint evidence alone is learnt from: a sum of single answers is
not what tells most there."""

_TRIALS = 3000

Weigh = Callable[[Any, list[Event]], Sequence[Evidence]]


@dataclass(frozen=True)
class Overheard:
    """Fits one of some pairs, and gives an adversary all that leaves the fit.

    Attributes
    ----------
    pairs
        Each with what weighs its transcript.
    """

    pairs: tuple[tuple[MethodPair, Weigh], ...]

    def __call__(self, present: bool, seed: int | None) -> Any:
        """Return ``ledger_``, ``evidence``, and which pair."""
        drawn = np.random.default_rng(None if seed is None else (seed, 1))
        which = int(drawn.integers(len(self.pairs)))
        pair, weigh = self.pairs[which]
        model, events = overhear(partial(pair.fit, present, seed))
        evidence = list(weigh(model, events))
        return SimpleNamespace(ledger_=model.ledger_, evidence=evidence, which=which)


class Part(NamedTuple):
    """Answers of one entry of the ledger.

    Attributes
    ----------
    name
        What the adversary calls them.
    size
        How many of them are also seen by themselves.
    """

    name: str
    size: int

    def of(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """Return its evidence."""
        return [each for each in evidence if each.name == self.name]


@dataclass(frozen=True)
class _Observe:
    """Observes all evidence, that of each part, and which canary was drawn.

    What is wrong may depend on the canary.
    """

    size: int
    parts: Sequence[Part]
    pairs: int

    def __call__(self, outcome: Any) -> np.ndarray:
        found = [observed(outcome.evidence, self.size)]
        found += [observed(part.of(outcome.evidence), part.size) for part in self.parts]
        drawn = np.arange(self._canaries) == outcome.which
        return np.concatenate([*found, drawn])

    def columns(self, entry: int | None) -> tuple[int, ...] | None:
        """Return the places of what is seen of an entry's answers; None for all places."""
        if entry is None:
            return None
        sizes = [JOINT_EVIDENCE + size for size in (self.size, *(p.size for p in self.parts))]
        ends = np.cumsum(sizes)
        own = range(ends[entry], ends[entry] + sizes[1 + entry])
        return (*map(int, own), *range(int(ends[-1]), int(ends[-1]) + self._canaries))

    @property
    def _canaries(self) -> int:
        return self.pairs if self.pairs > 1 else 0


def transcript_case(
    setting: AuditSetting,
    fit: Overheard,
    size: int,
    neighbours: str,
    parts: Sequence[Part] = (),
    entry: int | None = None,
) -> Case:
    """Return a case of a transcript, of which so many answers are also seen by themselves.

    Parameters
    ----------
    parts
        One for each entry of the ledger, in order. What is wrong with one would be drowned by the
        others where all is added up, so the evidence of each is also seen by itself.
    entry
        The one whose answers alone the case looks at, and whose spending it audits; None for all.
        All cases of a transcript look at the same runs.
    """
    observe = _Observe(size, parts, len(fit.pairs))
    whole = f"{setting.method}/{WHOLE}"
    return Case(
        subject=whole if entry is None else f"{setting.method}/{parts[entry].name}",
        task=setting.task,
        neighbours=neighbours,
        fit=fit,
        observe=observe,
        trials=_TRIALS,
        runs="" if entry is None else whole,
        columns=observe.columns(entry),
        entry=entry,
    )
