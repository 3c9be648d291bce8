"""What leaves a fit beside its noisy values: their low bits, and the bytes of the model file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from dprepro.additive.file import file_text, model_to_json
from dprepro.audit.adversary.files import Telling
from dprepro.audit.adversary.low_bits import can_be_laplace, can_be_normal
from dprepro.audit.adversary.transcript import Event, overhear
from dprepro.audit.case import AuditSetting, Case, MethodPair
from dprepro.audit.cases.dpboost import lone_leaf
from dprepro.audit.cases.transcripts import dp_ebm, dp_ebm_plus

BITS, FILE = "bits", "file"

_TRANSCRIPTS = {"dp-ebm-joint": dp_ebm, "dp-ebm-sound": dp_ebm, "dp-ebm-plus": dp_ebm_plus}
"""The case of all answers of a method, whose pairs are used here."""

_TRIALS = 1000
_FILES = 16
"""Fits to either table whose files are compared before the audit."""

# --- low bits -------------------------------------------------------------------------------------


def bits_of_counts(setting: AuditSetting) -> Case:
    """Return whole counts that the canary is in, and whether floating-point noise can make them.

    With exact noise a count is a whole number, and rules out either world as often as the other.
    """
    whole = _TRANSCRIPTS[setting.method](setting)
    overheard: Any = whole.fit
    return Case(
        subject=f"{setting.method}/{BITS}",
        task=setting.task,
        neighbours=whole.neighbours.replace("all answers seen", "the low bits of counts seen"),
        fit=partial(_fit_counts, overheard.pairs[1]),  # alone in its category
        observe=_impossible,
        trials=_TRIALS,
    )


def _fit_counts(given: tuple[MethodPair, Any], present: bool, seed: int | None) -> Any:
    pair, weigh = given
    model, events = overhear(partial(pair.fit, present, seed))
    known = weigh.keywords["known"]
    found = []
    for event in events:
        if event.kind == "Totals":
            found.append((event, 0, float(known.counts.sum())))
        elif event.kind in ("CellCounts", "Histogram") and event.facts["feature"] == 0:
            cell = int(known.canary[0])
            found.append((event, cell, float(known.counts[known.cells[:, 0] == cell].sum())))
    ruled_out = [
        [not can_be_normal(_value(event, place), exact + row, event.scale) for row in (1, 0)]
        for event, place, exact in found
    ]
    return SimpleNamespace(ledger_=model.ledger_, ruled_out=np.array(ruled_out, float))


def bits_of_leaves(setting: AuditSetting) -> Case:
    """Return the value of a leaf that the canary is alone in, likewise."""
    case = lone_leaf(setting)
    return Case(
        subject=f"{setting.method}/{BITS}",
        task=setting.task,
        neighbours=f"{case.neighbours}; the low bits of its leaf seen",
        fit=partial(_fit_leaf, case.fit),
        observe=_impossible,
        trials=_TRIALS,
    )


_GRID = 2.0**-24


def _fit_leaf(fit: Any, present: bool, seed: int | None) -> Any:
    model, events = overhear(partial(fit, present, seed))
    (event,) = (event for event in events if event.kind == "LeafQuery")
    alone = math.floor(1 / (1 + model.reg_lambda) / _GRID) * _GRID
    ruled_out = [not can_be_laplace(_value(event, 1), exact, event.scale) for exact in (alone, 0.0)]
    return SimpleNamespace(ledger_=model.ledger_, ruled_out=np.array([ruled_out], float))


def _value(event: Event, place: int) -> float:
    assert event.value is not None
    return float(event.value.ravel()[place])


def _impossible(outcome: Any) -> np.ndarray:
    """Return how many values the table with the canary rules out, and how many the other one."""
    return np.asarray(outcome.ruled_out.sum(axis=0))


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Written:
    """Fits one of two tables, and looks into the model file for words that tell which it was.

    The words are looked for in fits of their own, whose noise is another one in every audit.
    """

    pair: MethodPair

    def __call__(self, present: bool, seed: int | None) -> Any:
        model = self.pair.fit(present, seed)
        return SimpleNamespace(ledger_=model.ledger_, found=self._telling.found(_file(model)))

    @cached_property
    def _telling(self) -> Telling:
        with_row, without = (
            [_file(self.pair.fit(present, None)) for _ in range(_FILES)]
            for present in (True, False)
        )
        return Telling.of(with_row, without)


def _file(model: Any) -> bytes:
    return file_text(model_to_json(model)).encode()


def model_file(setting: AuditSetting) -> Case:
    """Return the bytes of a model file, without what was told of its origin."""
    whole = _TRANSCRIPTS[setting.method](setting)
    pairs: Any = whole.fit
    return Case(
        subject=f"{setting.method}/{FILE}",
        task=setting.task,
        neighbours=whole.neighbours.replace("all answers seen", "the model file seen"),
        fit=_Written(pairs.pairs[0][0]),
        observe=_words,
        trials=_TRIALS,
    )


def _words(outcome: Any) -> np.ndarray:
    return np.array(outcome.found, float)


CASES = (
    {f"{name}/{BITS}": bits_of_counts for name in _TRANSCRIPTS}
    | {f"{name}/{FILE}": model_file for name in _TRANSCRIPTS}
    | {f"dpboost-sound/{BITS}": bits_of_leaves}
)
