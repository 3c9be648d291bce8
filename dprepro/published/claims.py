"""Claims, the sentences of a document with numbers: its file ``claims.yaml``."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache
from pathlib import Path

from pydantic import Field, model_validator

from dprepro.errors import DpreproError
from dprepro.published.claim import CellClaim, Claim, FactClaim, half_unit
from dprepro.published.facts import Computed, Repeats, Settings
from dprepro.published.published import FOLDER, PublishedCell, load_published
from dprepro.published.schema import Names, Numbers, Selector, Strict
from dprepro.yaml_model import read_model

__all__ = ["CellClaim", "Claim", "Claims", "FactClaim", "half_unit", "load_claims"]


class Mean(Strict):
    """An average as the sentence prints it, over the cells of these methods."""

    methods: Names
    value: Decimal


class Average(CellClaim):
    """The mean over the datasets of `table` at one epsilon, one for each group of methods."""

    table: str
    epsilon: float
    figures: dict[str, Mean]

    def selectors(self) -> list[Selector]:
        """Return the cells of each figure."""
        return [
            Selector(tables=[self.table], methods=figure.methods, epsilons=[self.epsilon])
            for figure in self.figures.values()
        ]


class LossAtMost(CellClaim):
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


class BestInAll(CellClaim):
    """In each of `settings` settings (a dataset and an epsilon) the best of all is one of these.

    Only those of `tables`, if given.
    """

    methods: Names
    rivals: Names
    settings: int
    tables: Names | None = None

    def selectors(self) -> list[Selector]:
        """Return the cells of all the methods."""
        return [Selector(tables=self.tables, methods=[*self.methods, *self.rivals])]


class NoticeableUpTo(CellClaim):
    """Two methods typically differ noticeably only at epsilons up to `epsilon`."""

    methods: Names = Field(min_length=2, max_length=2)
    epsilon: float

    def selectors(self) -> list[Selector]:
        """Return the cells of both methods."""
        return [Selector(methods=self.methods)]


class AheadInMost(CellClaim):
    """Without privacy, `method` is ahead of `rival` on over half of the datasets."""

    method: str
    rival: str

    def selectors(self) -> list[Selector]:
        """Return the non-private cells of both methods."""
        return [Selector(methods=[self.method, self.rival], epsilons=[math.inf])]


class Within(CellClaim):
    """Measured means of a method at these epsilons lie between two numbers; one may be left out.

    The document prints no cells for them. `table` is the layout whose protocol the results follow.
    """

    table: str
    dataset: str
    methods: Names
    epsilons: Numbers
    metric: str
    low: Decimal | None = None
    high: Decimal | None = None

    @model_validator(mode="after")
    def _check(self) -> Within:
        if self.low is None and self.high is None:
            raise ValueError("give `low`, `high`, or both")
        return self

    def unprinted(self, paper: str) -> list[PublishedCell]:
        """Return one cell for each method and epsilon, with a bound in place of a printed mean."""
        bound = float(next(b for b in (self.low, self.high) if b is not None))
        return [
            PublishedCell(paper, self.table, self.dataset, name, level, self.metric, bound, None)
            for name in self.methods
            for level in self.epsilons
        ]

    @property
    def range(self) -> str:
        """The stated range in words."""
        if self.high is None:
            return f"at least {self.low}"
        return f"at most {self.high}" if self.low is None else f"{self.low} to {self.high}"


class BestInMost(CellClaim):
    """In most settings (a dataset and an epsilon) the best measured mean is that of one of these.

    The document prints no cells for them. `table` is the layout whose protocol the results follow.
    """

    table: str
    datasets: Names
    methods: Names
    rivals: Names
    epsilons: Numbers
    metric: str

    def unprinted(self, paper: str) -> list[PublishedCell]:
        """Return one cell for each dataset, method and epsilon, with 0 for a printed mean."""
        return [
            PublishedCell(paper, self.table, dataset, name, level, self.metric, 0.0, None)
            for dataset in self.datasets
            for name in (*self.methods, *self.rivals)
            for level in self.epsilons
        ]

    @property
    def range(self) -> str:
        """What is stated, in words."""
        return f"in most of {len(self.datasets) * len(self.epsilons)} settings"


class Claims(Strict):
    """The claims of one document, by kind."""

    paper: str
    averages: list[Average] = Field(default_factory=list)
    losses: list[LossAtMost] = Field(default_factory=list)
    best: list[BestInAll] = Field(default_factory=list)
    noticeable: list[NoticeableUpTo] = Field(default_factory=list)
    ahead: list[AheadInMost] = Field(default_factory=list)
    within: list[Within] = Field(default_factory=list)
    most: list[BestInMost] = Field(default_factory=list)
    computed: list[Computed] = Field(default_factory=list)
    settings: list[Settings] = Field(default_factory=list)
    repeats: list[Repeats] = Field(default_factory=list)

    def all(self) -> list[Claim]:
        """Return the claims of all kinds."""
        return [claim for kind, claims in dict(self).items() if kind != "paper" for claim in claims]


@cache
def load_claims(folder: Path = FOLDER) -> dict[str, list[Claim]]:
    """Return the claims of each document that has a file of them.

    Raises
    ------
    DpreproError
        If a file is malformed, gives a name twice, or names cells that are not printed.
    """
    claims = {}
    for path in sorted(folder.glob("*/claims.yaml")):
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
