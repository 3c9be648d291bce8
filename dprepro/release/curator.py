"""The curator of rows that were held out from a fit: it answers how good a released model is.

Every row of a unit is on one side, and which side follows from chance and the unit alone. So of two
neighbouring tables one side is the same. A row adds to one cell of every answer here, by an amount
that follows from this row and the released model, and from no other row.

The fit and this measurement are composed one after the other, as if every row took part in both.
That is sound for every relation of neighbours. Parallel composition would cost less where a unit
comes or goes, but not where it is exchanged for a unit on the other side; it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.special import expit

from dprepro.additive.measurement import (
    ABOUT,
    POWER,
    GroupSums,
    Measurement,
    ScoreCounts,
    residual_bound,
    score_edges,
)
from dprepro.additive.model import (
    LARGEST_LOGARITHM,
    AdditiveClassifier,
    AdditiveModel,
    AdditiveRegressor,
)
from dprepro.data.domain import CategoricalFeature, Feature
from dprepro.privacy.budget import Division, PrivacyBudget, row_budget
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import NoisyAnswer, Query
from dprepro.privacy.sensitivity import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZERO_OUT,
    Adjacency,
    histogram_sensitivity,
)

_UNIT = 2.0**POWER
_HALF, _ROW = 2 ** (-POWER - 1), 2**-POWER
"""Half a row and a row, in whole numbers of the unit."""

_FINE, _FURTHEST = 2**8, 16
"""Predicted probabilities are those of log odds in steps of 1/256, from -16 to 16."""

_LACKING = "(missing)"
"""The group of rows that lack the value."""


@dataclass(frozen=True)
class Grouping:
    """Public groups of rows: all rows, or rows by the value of a feature, or by their class.

    Attributes
    ----------
    feature
        None for all rows.
    names
        Of the groups.
    cuts
        Where the groups of a numeric feature change, ascending; a value on a cut is above it.
    by_class
        Whether `names` are all classes in their order, and `feature` is the target.
    """

    feature: str | None = None
    names: tuple[str, ...] = ("all rows",)
    cuts: tuple[float, ...] = ()
    by_class: bool = False

    @classmethod
    def of(cls, feature: Feature, cuts: Sequence[float] | None = None) -> Grouping:
        """Return the groups of a feature: its categories, or the intervals between `cuts`.

        Without cuts a numeric feature has four intervals of equal width between its bounds. Rows
        that lack a value are a group, where the card allows that.
        """
        lacks = (_LACKING,) if feature.missing else ()
        if isinstance(feature, CategoricalFeature):
            return cls(feature.name, (*feature.categories, *lacks))
        step = (feature.upper - feature.lower) / 4
        ends = tuple(feature.lower + step * k for k in (1, 2, 3)) if cuts is None else tuple(cuts)
        between = (f"{a:g} to {b:g}" for a, b in pairwise(ends))
        names = (f"below {ends[0]:g}", *between, f"{ends[-1]:g} and above", *lacks)
        return cls(feature.name, names, ends)

    def cells(self, rows: HeldOut) -> np.ndarray:
        """Return the group of each row, int64 (n,); -1 for a value that belongs to none."""
        if self.feature is None:
            return np.zeros(len(rows.targets), dtype=np.int64)
        if self.by_class:
            return _codes(rows, len(self.names))
        column = rows.frame[self.feature]
        lacking = len(self.names) - 1 if self.names[-1] == _LACKING else -1
        if self.cuts:
            values = column.to_numpy(dtype=float)
            found: np.ndarray = np.searchsorted(np.array(self.cuts), values, side="right")
        else:
            places = {name: k for k, name in enumerate(self.names)}
            found = column.astype(object).map(places).fillna(-1).to_numpy()
        return np.where(column.isna(), lacking, found).astype(np.int64)


@dataclass(frozen=True)
class Scores(Query):
    """The number of rows of each class in each bin of scores, int64 (2, edges + 1).

    A row lies in one cell.
    """

    edges: tuple[float, ...]

    @property
    def enforced(self) -> float:
        """See the class."""
        return 1.0


@dataclass(frozen=True)
class Sums(Query):
    """Of each group the number of rows, and sums of so many numbers, each from -1/2 to 1/2.

    They are int64 (groups, 1 + numbers) in units of 2^-16. A row adds (1, x_1, ..., x_m) to one
    group, whose norm is at most sqrt(1 + m / 4).
    """

    grouping: Grouping
    numbers: int

    @property
    def enforced(self) -> float:
        """See the class."""
        return math.sqrt(1 + self.numbers / 4)


@dataclass(frozen=True, repr=False)
class HeldOut:
    """Rows that did not train.

    Attributes
    ----------
    frame : (n, K)
        Features, with the names of the card.
    targets : (n,)
        Codes of classes, from 0 on, or float64.
    """

    frame: pd.DataFrame
    targets: np.ndarray


class HeldOutCurator(Curator):
    """Answers how good a model is on rows that were held out.

    Under add/remove-one and zero-out a row that comes or goes moves one cell by its part. An
    exchange moves two cells, by the parts of both rows, or one by their difference, whose squared
    norm is at most m for numbers that lie within 1 of each other: at most sqrt(2) times a part's
    norm while m <= 4.

    Parameters
    ----------
    rows
        Held out, and of each unit as many as the ledger says at most.
    ledger
        That of the fit; it gets an entry here, and states what both spend from then on.
    budget
        The (epsilon, delta) of a unit that the measurement keeps by itself; delta is above 0.
    seed
        See `Curator`; a release has none.
    """

    relations = frozenset({ADD_REMOVE, ZERO_OUT, REPLACE_ONE})

    def __init__(
        self,
        rows: Private[HeldOut],
        ledger: Ledger,
        budget: PrivacyBudget,
        seed: int | None = None,
    ) -> None:
        super().__init__(ledger, seed, ())
        self._rows = rows
        of_row = row_budget(budget, ledger.rows_per_unit, Division.GAUSSIAN)
        self._relation = Adjacency(ledger.adjacency)
        self._uses = self._gaussian(
            releases="of rows that did not train the model, how good it is: numbers of rows by "
            "class and predicted probability (two classes), and for each named group the number of "
            "rows and sums of targets, predictions and errors. All of them are scaled so that one "
            "row moves them by at most 1 together",
            noise_multiplier=1 / mu_of(*of_row),
            sensitivity=histogram_sensitivity(self._relation),
            uses=1,
            budget=of_row,
        )

    def charge(self, norm: float) -> float:
        """Return the sensitivity of an answer to which a row adds a part of so large a norm."""
        return norm * histogram_sensitivity(self._relation).stated

    def scores(self, model: AdditiveClassifier, query: Scores) -> NoisyAnswer:
        """Return noisy numbers of rows, float64 (2, edges + 1)."""
        return self._announce(query, self._uses.answer(self._score_counts(model, query), query))

    def sums(self, model: AdditiveModel, query: Sums, bound: float | None) -> NoisyAnswer:
        """Return noisy sums in rows, float64 (groups, 1 + numbers); `bound` is for regression."""
        exact = self._sums(model, query, bound)
        return self._announce(query, self._uses.answer(exact, query, _UNIT))

    def _score_counts(self, model: AdditiveClassifier, query: Scores) -> np.ndarray:
        rows = self._rows.open()
        counts = np.zeros((2, len(query.edges) + 1), dtype=np.int64)
        if len(rows.targets):
            found = np.searchsorted(np.array(query.edges), _scores(model, rows), side="right")
            np.add.at(counts, (_codes(rows), found), 1)
        return counts

    def _sums(self, model: AdditiveModel, query: Sums, bound: float | None) -> np.ndarray:
        rows = self._rows.open()
        sums = np.zeros((len(query.grouping.names), 1 + query.numbers), dtype=np.int64)
        if len(rows.targets):
            parts = _parts(model, rows, bound)[:, : query.numbers]
            parts = np.clip(parts, -_HALF, _HALF)
            cells = query.grouping.cells(rows)
            known = (cells >= 0) & (cells < len(sums))
            ones = np.full((len(parts), 1), _ROW)
            np.add.at(sums, cells[known], np.hstack([ones, parts])[known])
        return sums


def _codes(rows: HeldOut, classes: int = 2) -> np.ndarray:
    return np.clip(rows.targets.astype(np.int64), 0, classes - 1)


def _scores(model: AdditiveClassifier, rows: HeldOut) -> np.ndarray:
    return np.asarray(model.decision_function(rows.frame))


def _predicted(model: AdditiveRegressor, rows: HeldOut) -> np.ndarray:
    """Return predictions, float64 (n,), each of its row alone.

    Of counts they are exponentials of single numbers: those of an array may differ in the last bit
    with the place of a row in it.
    """
    if not model.has_log_link:
        return model.predict(rows.frame)
    scores = model.scores_of(model.contributions(rows.frame))
    each = map(math.exp, np.minimum(scores, LARGEST_LOGARITHM).tolist())
    return model.limited(np.fromiter(each, dtype=float, count=scores.size))


def _parts(model: AdditiveModel, rows: HeldOut, bound: float | None) -> np.ndarray:
    """Return what each row adds beside 1, int64 (n, m), in whole numbers of the unit.

    Each follows from its row alone, to the last bit: scores are sums of whole numbers, and
    probabilities come from one table, as a row's exponential may differ with its place in memory;
    see `_predicted` for counts.
    """
    if isinstance(model, AdditiveClassifier) and model.several_classes:
        wrong = _scores(model, rows).argmax(axis=1) != _codes(rows, model.intercept_.size)
        return np.where(wrong, _HALF, -_HALF)[:, None]
    if isinstance(model, AdditiveClassifier):
        scores, codes = _scores(model, rows), _codes(rows)
        table = expit(np.arange(-_FURTHEST * _FINE, _FURTHEST * _FINE + 1) / _FINE)
        whole = np.trunc((table - 0.5) / _UNIT).astype(np.int64)
        places = np.rint(np.clip(scores, -_FURTHEST, _FURTHEST) * _FINE).astype(np.int64)
        wrong = (scores > 0) != (codes == 1)
        halves = [np.where(each, _HALF, -_HALF) for each in (codes == 1, wrong)]
        return np.column_stack([halves[0], whole[places + _FURTHEST * _FINE], halves[1]])
    if not isinstance(model, AdditiveRegressor) or bound is None:
        raise TypeError("a measurement is of a classifier, or of a regressor with a bound")
    residuals = np.clip((rows.targets - _predicted(model, rows)) / bound, -1.0, 1.0)
    parts = np.column_stack([residuals / 2, residuals * residuals - 0.5])
    return np.trunc(parts / _UNIT).astype(np.int64)


def measure(
    model: AdditiveModel,
    rows: HeldOut,
    ledger: Ledger,
    budget: PrivacyBudget,
    groupings: Sequence[Grouping],
    held_out: float,
    target: tuple[float, float] | None = None,
    seed: int | None = None,
) -> Measurement:
    """Return noisy counts of how good a model is on rows that were held out; the ledger has them.

    Half of what is spent is for the scores of two classes, the rest for sums over all rows and over
    the rows of each grouping, alike.

    Parameters
    ----------
    ledger, budget
        See `HeldOutCurator`.
    groupings
        Beside all rows.
    held_out
        The share of units that was held out.
    target
        For regression the range of the target.
    seed
        See `HeldOutCurator`.
    """
    curator = HeldOutCurator(Private(rows), ledger, budget, seed)
    whole, counts, bound = 1.0, None, None
    if isinstance(model, AdditiveClassifier) and model.several_classes:
        numbers = 1
    elif isinstance(model, AdditiveClassifier):
        whole, numbers, edges = 0.5, 3, score_edges(model)
        answer = curator.scores(model, Scores(curator.charge(1.0), 0.5, tuple(edges)))
        noisy = np.rint(answer.value).astype(np.int64)
        counts = ScoreCounts(edges=edges, counts=noisy.tolist(), noise=answer.scale)
    else:
        numbers, bound = 2, residual_bound(model, target or (0.0, 1.0))
    every = [Grouping(), *groupings]
    charged = curator.charge(math.sqrt(1 + numbers / 4))
    sums = []
    for grouping in every:
        query = Sums(charged, whole / len(every), grouping, numbers)
        answer = curator.sums(model, query, bound)
        noisy = np.rint(answer.value / _UNIT).astype(np.int64)
        sums.append(
            GroupSums(
                feature=grouping.feature, groups=list(grouping.names), sums=noisy.tolist(),
                noise=answer.scale,
            )
        )  # fmt: skip
    return Measurement(
        about=ABOUT, held_out=held_out, scores=counts, bound=bound, power=POWER, sums=sums
    )
