"""The curator of synthetic rows: the cells of rows stay here; noisy counts and pairs come out.

Under add/remove-one a row is in one cell of each column, and of each table of two columns. So it
moves d histograms that are asked for together by (1, ..., 1) in one cell each: an L2 norm of
sqrt(d).

The score of a pair is how far its table x is from what is expected of it without the pair, e:
sum over cells of |x - e|. e follows from released counts. A row changes x in one cell, by 1, so it
moves each score by at most 1, up or down (`PairChoice`). e is rounded to whole numbers of `UNIT`
before, so scores are exact, and rounding adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.synthetic.tree_model import Pair
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import rho_of
from dprepro.privacy.curator_base import Curator, GaussianMechanism
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import ExponentialMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, Instruction, NoisyAnswer, Query, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, Sensitivity

BITS = 20
UNIT = 2.0**-BITS
"""Of the scores of pairs."""

_MOST_ROWS = 2**31
"""Scores of so many rows, in whole numbers of `UNIT`, have room in int64, with what is expected."""

_PARTS = 3
"""Of rho: counts of columns, choices, and counts of pairs have one each, as in the paper."""


@dataclass(frozen=True)
class ColumnCounts(Query):
    """How many rows are in each cell of each column, one column after the other.

    Attributes
    ----------
    columns
        How many there are.
    """

    columns: int

    @property
    def enforced(self) -> float:
        """The root of the number of columns: a row is in one cell of each."""
        return math.sqrt(self.columns)


@dataclass(frozen=True)
class PairChoice(Query):
    """A pair of columns whose table is far from what is expected of it.

    Attributes
    ----------
    number
        Of the choice: 0, 1, ...
    candidates
        Numbers of pairs, as `combinations` of two columns has them.
    """

    number: int
    candidates: tuple[int, ...]

    @property
    def enforced(self) -> float:
        """1: a row changes one cell of a table by 1, and so the score by at most that."""
        return 1.0


@dataclass(frozen=True)
class PairCounts(Query):
    """How many rows are in each cell of the tables of some pairs, one after the other."""

    pairs: tuple[Pair, ...]

    @property
    def enforced(self) -> float:
        """The root of the number of pairs: a row is in one cell of each table."""
        return math.sqrt(len(self.pairs))


@dataclass(frozen=True, eq=False)
class Expect(Instruction):
    """What was released of columns: where their cells are from now on, and how many rows there.

    Attributes
    ----------
    places : int64 (m,) each
        Of each cell of each column; several cells may share one.
    counts : float64 (places,) each
        Of each place of each column, none below 0.
    rows
        What the counts of each column add up to.
    """

    places: tuple[np.ndarray, ...]
    counts: tuple[np.ndarray, ...]
    rows: int


class ExactCells:
    """The cells of the rows, and what is asked of them, without noise.

    Parameters
    ----------
    cells : int64 (columns, n)
    sizes
        How many cells each column has.
    """

    def __init__(self, cells: np.ndarray, sizes: Sequence[int]) -> None:
        self._cells, self._sizes = cells, list(sizes)
        self._scores: np.ndarray | None = None

    def columns(self) -> np.ndarray:
        """Return the counts of all columns, int64 (cells of all columns,)."""
        found = [
            np.bincount(own, minlength=size)
            for own, size in zip(self._cells, self._sizes, strict=True)
        ]
        return np.concatenate(found)

    def pairs(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the counts of tables, int64 (cells of all tables,), each row by row."""
        return np.concatenate([self._table(a, b) for a, b in pairs])

    def expect(self, expected: Expect) -> None:
        """Let rows go to the places of their cells, and score all pairs by what is expected."""
        self._cells = np.stack([
            places[own] for places, own in zip(expected.places, self._cells, strict=True)
        ])  # fmt: skip
        self._sizes = [len(counts) for counts in expected.counts]
        found = []
        for a, b in combinations(range(len(self._sizes)), 2):
            likely = np.outer(expected.counts[a], expected.counts[b]) / expected.rows
            whole = np.rint(likely / UNIT).astype(np.int64).ravel()
            found.append(np.abs((self._table(a, b) << BITS) - whole).sum())
        self._scores = np.array(found, np.int64)

    def scores(self, candidates: Sequence[int]) -> np.ndarray:
        """Return the scores of some pairs, int64 (candidates,), in whole numbers of `UNIT`.

        Raises
        ------
        BudgetError
            If nothing is expected yet.
        """
        if self._scores is None:
            raise BudgetError("pairs are chosen after `Expect` has said what is expected of them")
        return self._scores[list(candidates)]

    def _table(self, a: int, b: int) -> np.ndarray:
        size = self._sizes[a] * self._sizes[b]
        return np.bincount(self._cells[a] * self._sizes[b] + self._cells[b], minlength=size)


class SyntheticCurator(Curator):
    """Answers for the counts of all columns, for the pairs of a tree, and for their counts.

    The budget is that of the paper: of the rho of zero-concentrated privacy that (epsilon, delta)
    leave, a third goes to each of the three. N(0, s^2) with a sensitivity of D is D^2 / (2 s^2) of
    rho, and an exponential choice of epsilon_0 is epsilon_0^2 / 8.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    domain
        What was read of it from the rows is listed.
    columns
        The bins of each feature, and of the target.
    ledger, seed
        See `Curator`.

    Raises
    ------
    ValueError
        If rows hold what the domain rules out, or there are too many.
    BudgetError
        If all answers together would spend more than the ledger states.
    """

    relations = frozenset({ADD_REMOVE})

    def __init__(
        self,
        rows: Private[Rows],
        domain: Domain,
        columns: Sequence[Bins],
        ledger: Ledger,
        seed: int | None,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        self._size = len(columns)
        given = rows.open()
        self._exact = Private(ExactCells(_cells(given, columns), [each.count for each in columns]))
        self._enter_mechanisms(rho_of(ledger.epsilon, ledger.delta) / _PARTS, ledger.delta)

    def _enter_mechanisms(self, rho: float, delta: float) -> None:
        self._columns = self._sums("rows in each cell of each column", self._size, rho, delta)
        self._choices = ExponentialMechanism(
            self._source,
            (self._size - 1,),
            releases="pair of columns of the tree, by how far its counts are from independent ones",
            epsilon=math.sqrt(8 * rho / (self._size - 1)),
            sensitivity=1.0,
            uses=self._size - 1,
        )
        self._pairs = self._sums(
            "rows in each cell of the pairs of the tree", self._size - 1, rho, delta
        )
        self._require_budget()

    def _sums(self, releases: str, parts: int, rho: float, delta: float) -> GaussianMechanism:
        """Enter counts of so many histograms. Under replace-one a row moves two cells of each."""
        mu = math.sqrt(2 * rho)
        return self._gaussian(
            releases=releases,
            noise_multiplier=1 / mu,
            sensitivity=Sensitivity(math.sqrt(parts), math.sqrt(2 * parts)),
            uses=1,
            budget=PrivacyBudget(epsilon_of(mu, delta), delta),
        )

    def count_columns(self, query: ColumnCounts) -> NoisyAnswer:
        """Return noisy counts of all columns, float64 (cells of all columns,).

        Raises
        ------
        BudgetError
            If they were answered before.
        SensitivityError
            If the query is for another number of columns.
        """
        if query.columns != self._size:
            raise SensitivityError(
                f"the query is for {query.columns} columns, but rows have {self._size}: the "
                "sensitivity would be another"
            )
        exact = self._exact.open().columns()
        return self._announce(query, self._columns.answer(exact, query))

    def choose(self, query: PairChoice) -> NoisyAnswer:
        """Return the place of a pair among the candidates, int64 ().

        Raises
        ------
        BudgetError
            If this choice was made before, the ledger has no such choice, or nothing is expected.
        """
        scores = self._exact.open().scores(query.candidates)
        return self._announce(query, self._choices.choose((query.number,), scores, query, UNIT))

    def count_pairs(self, query: PairCounts) -> NoisyAnswer:
        """Return noisy counts of tables, float64 (cells of all tables,).

        Raises
        ------
        BudgetError
            If they were answered before.
        """
        exact = self._exact.open().pairs(query.pairs)
        return self._announce(query, self._pairs.answer(exact, query))

    def _follow(self, instruction: Expect) -> None:
        self._exact.open().expect(instruction)


def _cells(rows: Rows, columns: Sequence[Bins]) -> np.ndarray:
    """Return the cells of rows, int64 (columns, n); the target is the last."""
    if len(rows) > _MOST_ROWS:
        raise ValueError(f"a fit takes {_MOST_ROWS:,} rows at most: give a sample of yours")
    *features, target = columns
    found = [
        each.encode(rows.frame[name], refuse=True)
        for each, name in zip(features, rows.frame.columns, strict=True)
    ]
    if isinstance(target.feature, CategoricalFeature):  # targets are codes of labels
        return np.stack([*found, rows.targets.astype(np.int64)])
    return np.stack([*found, target.encode(pd.Series(rows.targets))])
