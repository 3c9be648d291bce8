"""Curators, who answer queries about private rows with noise.

A curator is the only object of a fit that holds private codes, targets and scores. Everything else
sends it a `Query` and gets a `NoisyAnswer`, which is in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import delta_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import (
    BudgetError,
    Instruction,
    NoisyAnswer,
    Query,
    ScaledInteger,
    SensitivityError,
    Unit,
)
from dprepro.privacy.sensitivity import Adjacency, Sensitivity

ROUNDING = 1e-6
"""By how much, relative, a sum of shares may exceed its uses, or a delta its budget: rounding."""


class Listener(Protocol):
    """Hears what a curator is asked and told, and what it releases: no exact value."""

    def asked(self, query: Query, answer: NoisyAnswer) -> None:
        """Take in a query and its answer."""

    def told(self, instruction: Instruction) -> None:
        """Take in an instruction."""


_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear every curator that is made in this context: the audit does."""
    token = _LISTENERS.set((*_LISTENERS.get(), listener))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


class Answers(Protocol):
    """Answers that a fit has had already, in the order of its queries."""

    @property
    def public_entropy(self) -> int:
        """What seeds the choices that show in what is released."""

    def next(self, question: Query) -> tuple[np.ndarray, Unit] | None:
        """Return the answer to this query and its unit, or None if it has had none."""

    def keep(self, question: Query, answer: np.ndarray, unit: Unit) -> None:
        """Keep an answer before it is used."""


class GaussianMechanism:
    """The uses of one Gaussian mechanism: one entry of the ledger, answered query by query.

    Every answer draws its own noise, of every number in it. A use is spent by queries whose shares
    add up to 1; `uses` of them can be spent and no more.
    """

    def __init__(self, source: NoiseSource, scale: float, sensitivity: float, uses: int) -> None:
        self._source = source
        self._scale = scale
        self._sensitivity = sensitivity
        self._uses = uses
        self._spent = 0.0

    def answer(self, exact: np.ndarray, query: Query, unit: Unit = 1.0) -> NoisyAnswer:
        """Return `exact`, int64 in units of `unit`, with noise of what is charged and of its share.

        Raises BudgetError if the share is not positive, or the uses are spent.
        """
        self._spend(query.share)
        scale = self._scale_of(query)
        return NoisyAnswer(self._source.add_gaussian(exact, scale, unit), scale)

    def hand_to_kernel(self, query: Query, shape: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """Return the noise of ``shape[0]`` answers to a query, and its standard deviation.

        The noise is of standard normal numbers, uint64 (*shape, 2 + WORDS): see
        `ExactSampler.normals`. A curator hands it to a kernel that adds it, scaled, to the exact
        answers one after the other, and to nothing else.

        Raises BudgetError as `answer`.
        """
        self._spend(query.share * shape[0])
        return self._scale_of(query), self._source.sampler.normals(shape)

    def _spend(self, share: float) -> None:
        spent = self._spent + share
        if not (share > 0 and spent <= self._uses * (1 + ROUNDING)):
            raise BudgetError(
                f"a query with the share {share!r} would make {spent:.6g} uses where "
                f"the ledger has {self._uses}"
            )
        self._spent = spent

    def _scale_of(self, query: Query) -> float:
        """Return the noise that a query needs: more for what it charges, and for a small share."""
        return query.charged / self._sensitivity / math.sqrt(query.share) * self._scale


class Curator:
    """The holder of a fit's private rows. Every method has a subclass, in a module ``curator``.

    Parameters
    ----------
    ledger
        Receives an entry for every mechanism, before its first answer.
    seed
        See `NoiseSource`.
    observed
        What was read of the domain from the rows, in words. The ledger gets it as not covered by
        epsilon. Empty if the domain is public.

    Attributes
    ----------
    relations : frozenset of Adjacency
        Under which the sensitivities hold. A subclass that does not state them raises TypeError.

    Raises
    ------
    SensitivityError
        If the ledger states its guarantee under another relation.
    """

    relations: ClassVar[frozenset[Adjacency]] = None  # type: ignore[assignment]

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if not isinstance(cls.relations, frozenset):
            raise TypeError(
                f"{cls.__name__} does not state under which relations its sensitivities hold: give "
                "it relations = frozenset({...}), members of Adjacency"
            )

    def __init__(
        self, ledger: Ledger, seed: int | np.random.SeedSequence | None, observed: Sequence[str]
    ) -> None:
        if ledger.adjacency not in self.relations:
            allowed = " or ".join(sorted(self.relations)) or "no relation"
            raise SensitivityError(
                f"the sensitivities of {type(self).__name__} hold under {allowed}, but the ledger "
                f"states its guarantee under {ledger.adjacency}: state {allowed}"
            )
        ledger.note_observed(observed)
        self._source = NoiseSource(ledger, seed)
        self._listeners = _LISTENERS.get()
        self._answers: Answers | None = None

    def _go_on_with(self, answers: Answers) -> None:
        """Repeat the answers that a fit has had before it was interrupted, and keep new ones."""
        self._answers = answers
        self._source.choose_publicly_by(answers.public_entropy)

    def _answer(
        self, uses: GaussianMechanism, query: Query, exactly: Callable[[Any], ScaledInteger]
    ) -> NoisyAnswer:
        """Answer a query with the noise of `uses`, or as it was answered before.

        `exactly` is asked for the exact answer where none was released.
        """
        kept = None if self._answers is None else self._answers.next(query)
        if kept is not None:
            value, unit = kept
            # The same noise is drawn again, for nothing: after it a seed goes on where it was.
            answer = uses.answer(np.zeros(value.shape, np.int64), query, unit)
            return self._announce(query, replace(answer, value=value))
        exact = exactly(query)
        answer = uses.answer(exact.numbers, query, exact.unit)
        if self._answers is not None:
            self._answers.keep(query, answer.value, exact.unit)
        return self._announce(query, answer)

    @property
    def public_generator(self) -> np.random.Generator:
        """Draws choices that show in what is released; see `NoiseSource`."""
        return self._source.public_generator

    def _gaussian(
        self,
        *,
        releases: str,
        noise_multiplier: float,
        sensitivity: Sensitivity,
        uses: int,
        budget: PrivacyBudget,
    ) -> GaussianMechanism:
        """Enter a Gaussian mechanism in the ledger and return its uses; see `LedgerEntry`.

        Raises
        ------
        BudgetError
            If that many uses with that noise spend more than the budget: they are mu-GDP with
            mu^2 = uses / noise_multiplier^2, and Theorem 5 of Nori et al. 2021 gives its delta.
        """
        epsilon, delta = budget
        if delta_of(epsilon, math.sqrt(uses) / noise_multiplier) > delta * (1 + ROUNDING):
            raise BudgetError(
                f"{uses} uses with the noise multiplier {noise_multiplier:.6g} spend more than "
                f"{budget}: multiply the noise by the root of the uses"
            )
        scale = self._source.enter_gaussian(
            releases=releases, noise_multiplier=noise_multiplier, sensitivity=sensitivity,
            uses=uses, budget=budget,
        )  # fmt: skip
        return GaussianMechanism(self._source, scale, sensitivity.stated, uses)

    def _announce(self, query: Query, answer: NoisyAnswer) -> NoisyAnswer:
        """Return the answer to a query and let listeners hear both.

        Raises
        ------
        SensitivityError
            If the query is of a class that does not come with this curator, so that its bound need
            not be what is enforced here; if it does not pass `Query.check` any more; or if it names
            a gap that the ledger does not list.
        """
        query.check()
        if type(query).__module__ not in self._query_modules():
            raise SensitivityError(
                f"{type(query).__module__}.{type(query).__name__} is no query of this curator: "
                "queries are classes of its own module, or of `queries` in its package"
            )
        if query.gap is not None:
            self._require_gap(query.gap)
        for listener in self._listeners:
            listener.asked(query, answer)
        return answer

    @classmethod
    @lru_cache
    def _query_modules(cls) -> frozenset[str]:
        modules = frozenset(base.__module__ for base in cls.__mro__)
        return modules | {f"{name.rpartition('.')[0]}.queries" for name in modules}

    def _require_gap(self, text: str) -> None:
        """Refuse what only a known gap allows, unless the ledger lists that gap.

        Raises
        ------
        SensitivityError
            If it does not.
        """
        if text not in self._source.ledger.gaps:
            raise SensitivityError(f"the ledger has to list the gap {text!r}: add it to its gaps")

    def _require_budget(self, gap: str | None = None) -> None:
        """Refuse mechanisms that together spend more than the ledger states, unless by a gap.

        To be called when all are entered, before the first answer.

        Raises
        ------
        BudgetError
            If they do, and no gap is named.
        SensitivityError
            If the ledger does not list the gap.
        """
        if gap is not None:
            self._require_gap(gap)
        elif not self._source.ledger.is_calibrated:
            raise BudgetError(
                "the mechanisms in the ledger spend more than it states: divide the budget among "
                "all uses"
            )

    def _read_exactly(self, what: str) -> None:
        """List, unless it is listed, an exact value that leaves the curator without noise."""
        if what not in self._source.ledger.unaccounted:
            self._source.ledger.unaccounted.append(what)

    def tell(self, instruction: Instruction) -> None:
        """Do with the rows what an instruction says; it is made of noisy answers alone."""
        for listener in self._listeners:
            listener.told(instruction)
        self._follow(instruction)

    def __enter__(self) -> Curator:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(finished=kind is None)

    def _end(self, finished: bool) -> None:
        """Delete what was kept of the rows outside of memory; the fit has `finished`, or failed."""

    def _follow(self, instruction: Any) -> None:
        """Do it. A curator that takes instructions says here how."""
        raise TypeError(f"{type(self).__name__} answers queries only: it takes no instructions")
