"""Claims, the sentences of a document with numbers: YAML files ending in ``_claims.yaml``."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

from pydantic import Field

from dprepro.errors import DpreproError
from dprepro.published.published import FOLDER, PublishedCell, load_published
from dprepro.published.schema import Names, Selector, Strict
from dprepro.yaml_model import read_model

ENDING = "_claims.yaml"


class Claim(Strict):
    """A sentence with numbers, and its place in the document.

    `note` says how the sentence is understood if it can be read in several ways.
    """

    name: str
    section: str
    quote: str = Field(min_length=1)
    note: str = ""

    @abstractmethod
    def selectors(self) -> list[Selector]:
        """Return the selectors of the printed cells that the sentence is about; each must match."""

    def cells(self, printed: Sequence[PublishedCell]) -> list[PublishedCell]:
        """Return the cells of `printed` that the sentence is about, in printed order."""
        selectors = self.selectors()
        return [cell for cell in printed if any(s.matches(cell) for s in selectors)]


class Figure(Strict):
    """An average as the sentence prints it, over the cells of these methods."""

    methods: Names
    value: Decimal


class Average(Claim):
    """The mean over the datasets of `table` at one epsilon, one for each group of methods."""

    table: str
    epsilon: float
    figures: dict[str, Figure]

    def selectors(self) -> list[Selector]:
        """Return the cells of each figure."""
        return [
            Selector(tables=[self.table], methods=figure.methods, epsilons=[self.epsilon])
            for figure in self.figures.values()
        ]


class LossAtMost(Claim):
    """On each dataset of `table` a method at one epsilon loses at most `bound` to its twin.

    `nonprivate` is the twin; `bound` is in units of the metric.
    """

    table: str
    epsilon: float
    method: str
    nonprivate: str
    bound: Decimal

    def selectors(self) -> list[Selector]:
        """Return the private cells and their twins."""
        private = Selector(tables=[self.table], methods=[self.method], epsilons=[self.epsilon])
        twin = Selector(tables=[self.table], methods=[self.nonprivate], epsilons=[math.inf])
        return [private, twin]


class BestInAll(Claim):
    """In each of `settings` settings (a dataset and an epsilon) the best of all is one of these."""

    methods: Names
    rivals: Names
    settings: int

    def selectors(self) -> list[Selector]:
        """Return the cells of all the methods."""
        return [Selector(methods=[*self.methods, *self.rivals])]


class NoticeableUpTo(Claim):
    """Two methods typically differ noticeably only at epsilons up to `epsilon`."""

    methods: Names = Field(min_length=2, max_length=2)
    epsilon: float

    def selectors(self) -> list[Selector]:
        """Return the cells of both methods."""
        return [Selector(methods=self.methods)]


class AheadInMost(Claim):
    """Without privacy, `method` is ahead of `rival` on over half of the datasets."""

    method: str
    rival: str

    def selectors(self) -> list[Selector]:
        """Return the non-private cells of both methods."""
        return [Selector(methods=[self.method, self.rival], epsilons=[math.inf])]


class Claims(Strict):
    """The claims of one document, by kind."""

    paper: str
    averages: list[Average] = Field(default_factory=list)
    losses: list[LossAtMost] = Field(default_factory=list)
    best: list[BestInAll] = Field(default_factory=list)
    noticeable: list[NoticeableUpTo] = Field(default_factory=list)
    ahead: list[AheadInMost] = Field(default_factory=list)

    def all(self) -> list[Claim]:
        """Return the claims of all kinds."""
        return [*self.averages, *self.losses, *self.best, *self.noticeable, *self.ahead]


@cache
def load_claims(folder: Path = FOLDER) -> dict[str, list[Claim]]:
    """Return the claims of each document that has a file of them.

    Raises
    ------
    DpreproError
        If a file is malformed, gives a name twice, or names cells that are not printed.
    """
    claims = {}
    for path in sorted(folder.glob(f"*{ENDING}")):
        found = read_model(path, Claims)
        printed = load_published(found.paper)
        names = [claim.name for claim in found.all()]
        for claim in found.all():
            if names.count(claim.name) > 1:
                raise DpreproError(f"{path}: two claims are called {claim.name!r}; rename one")
            for selector in claim.selectors():
                selector.require_printed(printed, f"{path}: claim {claim.name}")
        claims[found.paper] = found.all()
    return claims


def half_unit(value: Decimal) -> float:
    """Return half a unit of the last digit of a number as printed."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent
