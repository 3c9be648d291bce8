"""What leaves a fit beside its noisy values: their low bits, and the bytes of the model file.

NumPy's noise is a double times the scale, rounded. The products are sparse among the doubles. So a
released value tells whether it can be a given exact value plus such noise (Mironov 2012). Of files,
words are looked for that many fits to one table have, and none to the other.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from dprepro.additive.file import file_text, model_to_json
from dprepro.audit.case import Case, MethodPair
from dprepro.audit.likelihood_ratio import Known
from dprepro.audit.transcript import overhear
from dprepro.privacy.query import Query

BITS, FILE = "bits", "file"

_TRIALS = 1000
_FILES = 16
"""Fits to either table whose files are compared before the audit."""

# --- low bits -------------------------------------------------------------------------------------

STEPS = 3
"""How many doubles on either side of a quotient are tried; rounding moves it by one or two."""

_DRAWS = 16
"""The same for the whole numbers m of NumPy's uniform draws m 2^-53."""


def around(value: float, steps: int = STEPS) -> Iterator[float]:
    """Yield a double and its neighbours."""
    yield value
    for end in (-math.inf, math.inf):
        near = value
        for _ in range(steps):
            near = math.nextafter(near, end)
            yield near


def can_be_normal(value: float, exact: float, scale: float) -> bool:
    """Say whether a value can be `exact` plus normal noise: fl(exact + fl(scale z)) for a z."""
    return any(
        exact + scale * z == value for noise in around(value - exact) for z in around(noise / scale)
    )


def can_be_laplace(value: float, exact: float, scale: float, factor: float = 1.0) -> bool:
    """Say whether a value can be `factor` times `exact` plus NumPy's Laplace noise."""
    noise = value / factor - exact
    tail = math.exp(-abs(noise) / scale) / 2
    middle = round((tail if noise < 0 else 1 - tail) * 2**53)
    draws = range(max(1, middle - _DRAWS), min(2**53, middle + _DRAWS + 1))
    return any(factor * (exact + _laplace(scale, m * 2.0**-53)) == value for m in draws)


def _laplace(scale: float, uniform: float) -> float:
    """Return what NumPy makes of a uniform draw above 0."""
    if uniform >= 0.5:
        return 0.0 - scale * math.log(2.0 - uniform - uniform)
    return 0.0 + scale * math.log(uniform + uniform)


def bits_of_counts(whole: Case, count: Callable[[Query, Known], tuple[int, float] | None]) -> Case:
    """Return whole counts that the canary is in, and whether floating-point noise can make them.

    With exact noise a count is a whole number, and rules out either world as often as the other.

    Parameters
    ----------
    whole
        The case of the transcript, whose second canary is alone in its category.
    count
        The place in a query's answer that counts the canary, and how many other rows it counts.
    """
    fit: Any = whole.fit
    pair, weigh = fit.pairs[1]
    return bits_case(
        whole, partial(_fit_counts, pair, weigh.keywords["known"], count),
        whole.neighbours.replace("all answers seen", "the low bits of counts seen"),
    )  # fmt: skip


def bits_case(whole: Case, fit: Callable[[bool, int | None], Any], neighbours: str) -> Case:
    """Return a case of a fit that counts what either table rules out; see `bits_outcome`."""
    return Case(
        subject=f"{whole.subject.partition('/')[0]}/{BITS}",
        task=whole.task,
        neighbours=neighbours,
        fit=fit,
        observe=_impossible,
        trials=_TRIALS,
    )


def bits_outcome(model: Any, ruled_out: Sequence[Sequence[bool]]) -> Any:
    """Return an outcome: of each value, whether it is ruled out with the canary, and without."""
    return SimpleNamespace(ledger_=model.ledger_, ruled_out=np.array(ruled_out, float))


def _fit_counts(pair: MethodPair, known: Known, count: Any, present: bool, seed: int | None) -> Any:
    model, events = overhear(partial(pair.fit, present, seed))
    ruled_out = []
    for query, answer in (event for event in events if isinstance(event, tuple)):
        found = count(query, known)
        if found is not None:
            value, exact = float(answer.value.ravel()[found[0]]), found[1]
            worlds = [exact + row for row in (1, 0)]
            ruled_out.append([not can_be_normal(value, one, answer.scale) for one in worlds])
    return bits_outcome(model, ruled_out)


def _impossible(outcome: Any) -> np.ndarray:
    """Return how many values the table with the canary rules out, and how many the other one."""
    return np.asarray(outcome.ruled_out.sum(axis=0))


# --- files ----------------------------------------------------------------------------------------

_WORD = re.compile(r"[0-9A-Za-z_.+-]{2,}")


def words(content: bytes) -> frozenset[str]:
    """Return the words and numbers of a file, and of JSON also what stands at which place.

    Noise makes an exact number elsewhere now and then, but rarely at the same place.
    """
    text = content.decode("utf-8", "replace")
    try:
        placed = [*_placed("", json.loads(text))]
    except ValueError:
        placed = []
    return frozenset([*_WORD.findall(text), *placed])


def _placed(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in pairs:
            yield from _placed(f"{path}/{key}", entry)
    else:
        yield f"{path}: {value!r}"


@dataclass(frozen=True)
class Telling:
    """Words that tell two tables apart.

    Attributes
    ----------
    present, absent
        Those that are in all files of fits with the row, and in none without it; and the reverse.
        A hash of the rows is such a word, and so is an exact number of rows. Where there is none,
        those that are in a third of the files or more, and in none of the others: an exact count
        of a bin is written in one of several units, which depend on noise.
    """

    present: frozenset[str]
    absent: frozenset[str]

    @classmethod
    def of(cls, present: Iterable[bytes], absent: Iterable[bytes]) -> Telling:
        """Return those of some files of either kind, each of another fit."""
        with_row, without = [words(file) for file in present], [words(file) for file in absent]
        return cls(_telling(with_row, without), _telling(without, with_row))

    def found(self, content: bytes) -> tuple[int, int]:
        """Return how many words of either kind are in a file."""
        there = words(content)
        return len(there & self.present), len(there & self.absent)


def _telling(files: Sequence[frozenset[str]], others: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the words of all files that no other has, or those of at least a third."""
    elsewhere = frozenset.union(*others)
    found = Counter(word for file in files for word in file - elsewhere)
    in_all = frozenset(word for word, count in found.items() if count == len(files))
    return in_all or frozenset(word for word, count in found.items() if 3 * count >= len(files))


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


def model_file(whole: Case) -> Case:
    """Return the bytes of a model file, without what was told of its origin.

    `whole` is the case of the transcript, whose first canary is taken.
    """
    fit: Any = whole.fit
    return Case(
        subject=f"{whole.subject.partition('/')[0]}/{FILE}",
        task=whole.task,
        neighbours=whole.neighbours.replace("all answers seen", "the model file seen"),
        fit=_Written(fit.pairs[0][0]),
        observe=_words_found,
        trials=_TRIALS,
    )


def _words_found(outcome: Any) -> np.ndarray:
    return np.array(outcome.found, float)
