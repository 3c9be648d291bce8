"""The curator of DP-Bag: rows, labels and teachers stay here; noisy counts of votes come out.

Teachers learn and predict in floating point, but a teacher's answer is a vote, 0 or 1: however it
rounds, a row moves the votes of its own teachers only, and each of them by at most one. On another
processor a solver may stop elsewhere and a vote may differ. The student sees rows, and learns, as
the teachers do (`encode`, `learn`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from dprepro.data.domain import Domain
from dprepro.data.encode import UnitNormEncoder
from dprepro.estimators.inputs import Rows
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import LaplaceMechanism, NoiseSource
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import NoisyAnswer, Query
from dprepro.privacy.sampling import ExactSampler
from dprepro.privacy.sensitivity import REPLACE_ONE

_UNIT = 2.0**-30
"""Of coefficients: finer than the solver's tolerance, coarser than what processors differ by."""

STUDENT_ROWS = "features of the rows set aside for the student"
"""What is read without noise where the student learns from rows, in the words of the ledger."""


def encode(frame: pd.DataFrame, domain: Domain) -> np.ndarray:
    """Return the rows as float64 (n, columns).

    Indicators, and numeric features scaled to [0, 1] by their bounds, as published.
    """
    norm = math.sqrt(len(domain.features) + 1)
    named = frame.set_axis([feature.name for feature in domain.features], axis=1)
    return norm * UnitNormEncoder(domain).transform(named)


def learn(X: np.ndarray, codes: np.ndarray) -> LogisticRegression | DummyClassifier:
    """Return a logistic regression, or the constant class where there is only one.

    The solver was the library's default when the paper appeared, and is the fastest on small parts.
    It uses BLAS, whose last bits differ between processors. So coefficients are rounded.
    """
    if len(np.unique(codes)) < 2:
        return DummyClassifier(strategy="most_frequent").fit(X, codes)
    model = LogisticRegression(solver="liblinear").fit(X, codes)
    model.coef_ = _rounded(model.coef_)
    model.intercept_ = _rounded(model.intercept_)
    return model


def _rounded(coefficients: np.ndarray) -> np.ndarray:
    return np.rint(coefficients / _UNIT) * _UNIT


@dataclass(frozen=True)
class Votes(Query):
    """The votes of all teachers for each class, on each row asked: one use a row.

    Attributes
    ----------
    teachers, partitions
        Each of `partitions` random partitions cuts the rows into `teachers` equal parts.
    divisor
        What the number of votes is divided by.
    """

    teachers: int
    partitions: int
    divisor: int

    @property
    def enforced(self) -> float:
        """partitions / divisor: a row teaches one teacher of each partition, which has one vote.

        It moves the count of each class by so much; both are charged.
        """
        return self.partitions / self.divisor


class ExactVotes:
    """The rows that teach, and what their teachers say.

    Attributes
    ----------
    X, codes : float64 (n, columns), int64 (n,)
        As `learn` takes them.
    """

    def __init__(self, X: np.ndarray, codes: np.ndarray) -> None:
        self.X, self.codes = X, codes

    def counts(self, query: Votes, asked: np.ndarray, sampler: ExactSampler) -> np.ndarray:
        """Return the votes for both classes, int64 (rows asked, 2).

        Raises
        ------
        ValueError
            If there are more teachers than rows.
        """
        if len(self.X) < query.teachers:
            raise ValueError(f"too few rows for {query.teachers} teachers; take fewer teachers")
        votes = np.zeros(len(asked), np.int64)
        for _ in range(query.partitions):
            # Which part a row is in must not depend on the rows, only on their number.
            order = sampler.permutation(len(self.X))
            for part in np.array_split(order, query.teachers):
                votes += learn(self.X[part], self.codes[part]).predict(asked)
        return np.column_stack([query.partitions * query.teachers - votes, votes])


class BagCurator(Curator):
    """Answers one query: how the teachers vote on rows that are public or listed.

    To be called in the order of its methods.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them. Their number counts as public.
    domain
        How rows are encoded.
    ledger, seed
        See `Curator`.
    """

    relations = frozenset({REPLACE_ONE})

    def __init__(
        self, rows: Private[Rows], domain: Domain, ledger: Ledger, seed: int | None
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        self._rows, self._domain = rows, domain
        self.number_of_rows = len(rows.open().frame)

    def enter(self, rate: float, labels: int) -> None:
        """Enter the noise on the votes about so many rows; see `enter_votes`.

        Raises
        ------
        BudgetError
            If it would spend more than the ledger states.
        """
        self._uses = enter_votes(self._source, rate, labels)
        self._require_budget()

    def divide(self, aside: int) -> None:
        """Draw which rows, `aside` of them, teach nobody."""
        rows = self._rows.open()
        order = self._source.sampler.permutation(self.number_of_rows)
        student, taught = np.split(order, [aside])
        self._student = Private(rows.frame.iloc[student])
        X = encode(rows.frame.iloc[taught], self._domain)
        self._exact = Private(ExactVotes(X, rows.targets[taught].astype(int)))

    def student_rows(self, labels: int) -> np.ndarray:
        """Return the first rows that teach nobody, encoded, float64 (labels, columns).

        They are exact: the ledger lists them.
        """
        self._read_exactly(STUDENT_ROWS)
        return encode(self._student.open().iloc[:labels], self._domain)

    def votes(self, query: Votes, asked: np.ndarray) -> NoisyAnswer:
        """Return the noisy votes for both classes on rows (n, columns), float64 (n, 2).

        They are over the query's divisor, and whole numbers of 1 / divisor.

        Raises
        ------
        BudgetError
            If votes were answered before, or on more rows than were entered.
        ValueError
            If there are more teachers than rows.
        """
        counts = self._exact.open().counts(query, asked, self._source.sampler)
        unit = 1 / query.divisor
        answers = [self._uses.answer(k, exact, query, unit) for k, exact in enumerate(counts)]
        value = np.array([answer.value for answer in answers])
        return self._announce(query, NoisyAnswer(value, answers[0].scale))


def enter_votes(source: NoiseSource, rate: float, labels: int) -> LaplaceMechanism:
    """Enter the votes on so many rows in the ledger, with noise Laplace(1 / rate) on each count."""
    return LaplaceMechanism(
        source,
        (labels, 2),
        releases="votes of all teachers for each class, for each label",
        epsilon=rate,
        sensitivity=1.0,
        uses=2 * labels,
    )


def plan_votes(
    rate: float, labels: int, ledger: Ledger, seed: int | None, observed: Sequence[str]
) -> None:
    """Write into a ledger what the curator of a fit would write, without any rows."""
    ledger.note_observed(observed)
    enter_votes(NoiseSource(ledger, seed), rate, labels)
