"""All that leaves a fit, and cases whose adversary is given all of it, or one entry of the ledger.

"METHOD/transcript" takes all answers together. "METHOD/PART" takes those of one entry of the
ledger, and what that entry alone spends for the guarantee: noise that is missing there would be a
small part of the whole. Of several canaries another one is drawn in every run, which the adversary
knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, categories
from dprepro.audit.likelihood_ratio import JOINT_EVIDENCE, Evidence, Known, observed
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.privacy.curator_base import listening
from dprepro.privacy.query import Instruction, NoisyAnswer, Query, ScaledInteger

WHOLE = "transcript"
JOINT = 0
"""Of choices and Laplace noise the joint evidence alone is learnt from: a sum of single answers is
not what tells most there."""

_TRIALS = 3000

Event = tuple[Query, NoisyAnswer] | Instruction
"""An answer, float64, with what was asked; or an instruction."""

Weigh = Callable[[Any, list[Event]], Sequence[Evidence]]
"""(model, events) -> what an adversary makes of them."""


class Recorder:
    """Hears a fit, and keeps nothing but what leaves it.

    Attributes
    ----------
    events : list of Event
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def asked(self, query: Query, answer: NoisyAnswer) -> None:
        """Keep a query and its answer."""
        value = np.array(answer.value, dtype=np.float64)
        self.events.append((query, replace(answer, value=value)))

    def told(self, instruction: Instruction) -> None:
        """Keep an instruction."""
        self.events.append(instruction)


def overhear(fit: Callable[[], Any]) -> tuple[Any, list[Event]]:
    """Return what a fit returns, and what left it."""
    recorder = Recorder()
    with listening(recorder):
        model = fit()
    return model, recorder.events


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
    size: int = JOINT

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
    pairs: Sequence[tuple[MethodPair, Weigh]],
    neighbours: str,
    size: int = JOINT,
    parts: Sequence[Part] = (),
    entry: int | None = None,
    name: str = WHOLE,
) -> Case:
    """Return a case of a transcript, of which so many answers are also seen by themselves.

    Parameters
    ----------
    pairs
        See `Overheard`.
    parts
        One for each entry of the ledger, in order. What is wrong with one would be drowned by the
        others where all is added up, so the evidence of each is also seen by itself.
    entry
        The one whose answers alone the case looks at, and whose spending it audits; None for all.
        All cases of a transcript look at the same runs.
    name
        What the case of all answers is called.
    """
    observe = _Observe(size, parts, len(pairs))
    whole = f"{setting.method}/{name}"
    return Case(
        subject=whole if entry is None else f"{setting.method}/{parts[entry].name}",
        task=setting.task,
        neighbours=neighbours,
        fit=Overheard(tuple(pairs)),
        observe=observe,
        trials=_TRIALS,
        runs="" if entry is None else whole,
        columns=observe.columns(entry),
        entry=entry,
    )


# --- an adversary who computes exact answers as the method does -----------------------------------

_NOTHING = 1e-5
"""Noise of no more than this, in units of its stated deviation, is taken as missing."""


class Knows(Protocol):
    """What somebody knows who has some rows, during a fit."""

    def answer(self, query: Query, /) -> ScaledInteger:
        """Return the exact answer on these rows."""

    def follow(self, instruction: Instruction, /) -> None:
        """Do what an instruction says."""


@dataclass(frozen=True)
class ExactlyOverheard:
    """Fits a pair, and weighs all Gaussian answers by what they would be without noise.

    The adversary knows all rows but the canary, and what the canary would add to each answer. Given
    what was released before, the logarithm of the likelihood ratio is N(-m^2/2, m^2) without the
    canary and N(m^2/2, m^2) with it, where m is the norm of the canary's parts in units of the
    noise that the ledger states: m-GDP, and no distinguisher does better.

    Attributes
    ----------
    pair
        The canary is what the table with it has beyond the other one.
    knows
        Makes, of the pair and some of its rows, what makes a `Knows` for each fit.
    entry_of
        The entry of the ledger that a query belongs to.
    """

    pair: MethodPair
    knows: Callable[[MethodPair, Table], Callable[[], Knows]]
    entry_of: Callable[[Query], int]

    def __call__(self, present: bool, seed: int | None) -> Any:
        """Return ``ledger_``, ``model``, and three numbers.

        ``evidence`` is the log likelihood ratio, and ``mu_squared`` the squared norm of the
        canary's parts in units of the noise. ``bare`` is how many of the numbers that the canary
        moves would have no noise with it, less how many would have none without it.
        """
        model, events = overhear(partial(self.pair.fit, present, seed))
        others, canary = (make() for make in self._makers)
        evidence = mu_squared = bare = 0.0
        for event in events:
            if isinstance(event, Instruction):
                others.follow(event)
                canary.follow(event)
                continue
            query, answer = event
            without, part = others.answer(query).value, canary.answer(query).value
            entry = model.ledger_.entries[self.entry_of(query)]
            deviation = query.charged * entry.noise_multiplier / math.sqrt(query.share)
            alone = (answer.value - without) / deviation
            with_row = (answer.value - without - part) / deviation
            evidence += float(np.sum(alone**2 - with_row**2)) / 2
            bare += float(np.sum(np.abs(with_row) < _NOTHING) - np.sum(np.abs(alone) < _NOTHING))
            mu_squared += float(np.sum((part / deviation) ** 2))
        return SimpleNamespace(
            ledger_=model.ledger_, model=model, evidence=evidence, mu_squared=mu_squared, bare=bare
        )

    @cached_property
    def _makers(self) -> tuple[Callable[[], Knows], Callable[[], Knows]]:
        """Of the other rows and of the canary, once for all runs: sorting rows takes longest."""
        (frame, y), others = self.pair.present, len(self.pair.absent[1])
        return (
            self.knows(self.pair, (frame.iloc[:others], y[:others])),
            self.knows(self.pair, (frame.iloc[others:], y[others:])),
        )


RANGE = (100.0, 101.0)
_A = CategoricalFeature("a", ("many", "some", "rare"))
_B = NumericFeature("b", 0.0, 1000.0, missing=True)
LOWER, UPPER, MISSING = 0, -2, -1
"""Cells of the number, from its first and from its last."""
_NUMBERS = {LOWER: 0.0, UPPER: 1000.0, MISSING: np.nan}

_LABELS = {"binary": ("0", "1"), "multiclass": ("0", "1", "2")}
_GROUPS = (
    (0, LOWER, 1, 200), (1, UPPER, 0, 100), (0, UPPER, 0, 50), (1, MISSING, 1, 50),
)  # fmt: skip
"""Category, cell of the number, label, rows."""

_CANARIES = (
    # Contradicts a full bin; is alone in its category; misses its number; has an extreme one.
    (0, LOWER, 0, 0.0), (2, UPPER, 1, 1000.0), (1, MISSING, 0, np.nan), (0, UPPER, 1, 1e15),
)  # fmt: skip
"""Category, cell of the number, label, the number itself."""


def additive_pairs(
    setting: AuditSetting, params: dict[str, Any], weigh: Callable[..., Any], cells: tuple[int, int]
) -> tuple[tuple[MethodPair, Weigh], ...]:
    """Return a pair for each canary; `cells` number the last cell of a number and its missing."""
    has_labels = setting.task != "regression"
    domain = Domain((_A, _B), _LABELS.get(setting.task, RANGE))
    groups = np.array([(a, b, _label(setting, b, y), n) for a, b, y, n in _GROUPS])
    cell = {LOWER: 0, UPPER: cells[0], MISSING: cells[1]}
    found = []
    for category, place, label, number in _CANARIES:
        known = Known(
            cells=np.column_stack([groups[:, 0], [cell[c] for c in groups[:, 1]]]),
            targets=groups[:, 2] - (0.0 if has_labels else 0.5),
            counts=groups[:, 3],
            canary=np.array([category, cell[place]]),
            target=label - (0.0 if has_labels else 0.5),
        )
        tables = [_table(setting, (category, number, label) if there else None) for there in (1, 0)]
        pair = MethodPair(setting, domain, present=tables[0], absent=tables[1], params=params)
        found.append((pair, partial(weigh, known=known, is_logistic=has_labels)))
    return tuple(found)


def _table(setting: AuditSetting, canary: tuple[int, float, int] | None) -> Table:
    rows = [(a, _NUMBERS[b], _label(setting, b, y)) for a, b, y, n in _GROUPS for _ in range(n)]
    a, b, y = zip(*rows, *([] if canary is None else [canary]), strict=True)
    frame = pd.DataFrame({"a": categories(a, _A.categories), "b": np.array(b, float)})
    labels = np.array(y)
    return frame, labels if setting.task != "regression" else RANGE[0] + labels


def _label(setting: AuditSetting, cell: int, label: int) -> int:
    """Return the label of a group's rows: of three, the last is of those that miss the number."""
    return 2 if setting.task == "multiclass" and cell == MISSING else label


WORDS = (
    f"{sum(group[-1] for group in _GROUPS)} rows, and one row more or none: one that contradicts "
    "a full bin, is alone in its category, misses a number or has an extreme one; all answers seen"
)
