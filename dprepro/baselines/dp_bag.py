"""DP-Bag: teachers on parts of several partitions vote on the labels of a student's rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.data.drawing import draw_features
from dprepro.data.encode import UnitNormEncoder
from dprepro.estimators.inputs import read_frame, read_labels, resolve_domain
from dprepro.estimators.validation import check_choice, check_integer, check_number
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.privacy.voting import affordable_votes

INPUTS = ("rows", "domain")

_UNKNOWN = ("bounds and categories of all features", "which features have missing values")
"""What a fit without a domain will read, in words, before its rows are there."""


class DPBagClassifier(ClassifierMixin, BaseEstimator):
    """Differentially private bagging (Jordon, Yoon, van der Schaar 2019).

    Each of `partitions` random partitions cuts the rows into `teachers` equal parts, and a logistic
    regression learns from each part. All teachers vote on rows without a label; a count is the
    number of votes over `partitions`, so a row, which taught one teacher of each partition, moves
    it by at most 1. Laplace noise on the counts of both classes decides each label, and a student,
    another logistic regression, learns from these alone.

    Formal guarantee: (epsilon, delta)-DP under replace-one, for a public number of rows, where the
    student's rows come from the ``domain``. With ``inputs="rows"``, as published, the features of
    half of the rows are taken as public: the ledger lists them as unpaid.

    Every vote is charged in full (see `privacy.voting`). The published accountant charges less
    where the teachers of a row disagree; it depends on the private rows, and so does when it stops.

    Parameters
    ----------
    teachers, partitions : int
        Teachers in each partition, and partitions.
    rate : float or None
        Inverse scale of the noise on a count; None: 2 / teachers, as in the authors' code.
    inputs : {"rows", "domain"}
        Where the student's rows come from: half of the given rows, which then teach nobody, or
        rows drawn uniformly from the domain.
    limit : int
        The most labels to ask for, whatever the budget; with "rows" there are no more than these.
    epsilon, delta : float
        The budget; it decides how many labels are asked for.
    domain : Domain or None
        Bounds and categories; None reads them from the rows (unpaid).
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    student_ : LogisticRegression or DummyClassifier
        The model; constant where all noisy labels agree.
    figures_ : dict
        ``labels``, how many the budget paid for.
    ledger_ : Ledger
        Two Laplace releases a label.

    Raises
    ------
    ValueError
        On parameters out of range, more teachers than rows, a budget below one label, or values and
        labels that the domain rules out; without a public domain on other than two classes.
    """

    classes_: np.ndarray
    domain_: Domain | None
    ledger_: Ledger

    def __init__(
        self,
        *,
        teachers: int = 100,
        partitions: int = 50,
        rate: float | None = None,
        inputs: str = "rows",
        limit: int = 10_000,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        self.teachers = teachers
        self.partitions = partitions
        self.rate = rate
        self.inputs = inputs
        self.limit = limit
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DPBagClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes.

        Without a public domain both labels have to occur.
        """
        frame = read_frame(self, X, reset=True)
        self.classes_, codes = read_labels(self, frame, y, self.domain)
        self.check_parameters()
        domain = resolve_domain(self, frame, self.classes_[codes.astype(int)], "binary")
        self.domain_, self._encoder = domain, UnitNormEncoder(domain)
        source, noise = self._draw_noise(len(frame))
        order = source.generator.permutation(len(frame))
        aside, taught = np.split(order, [self._aside(len(frame))])
        asked = self._encode(
            frame.iloc[aside[: len(noise)]]
            if self.inputs == "rows"
            else draw_features(domain, len(noise), source.public_generator)
        )
        shares = self._votes(self._encode(frame.iloc[taught]), codes[taught], asked, source)
        counts = np.column_stack([self.teachers - shares, shares])
        self.student_ = _learn(asked, (counts + noise).argmax(axis=1))
        self.figures_ = {"labels": float(len(noise))}
        return self

    def planned_ledger(self, rows: int) -> Ledger:
        """Return the ledger that a fit to so many rows would leave, without fitting.

        Without a domain it says what the fit will read, but not of which features.
        """
        self.check_parameters()
        planned = clone(self)
        planned.domain_ = self.domain
        planned._draw_noise(rows)
        return planned.ledger_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the student's probabilities of both classes, float64 (n, 2)."""
        check_is_fitted(self)
        frame = read_frame(self, X, reset=False)
        probabilities = np.zeros((len(frame), 2))
        probabilities[:, self.student_.classes_] = self.student_.predict_proba(self._encode(frame))
        return probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable class of each row, (n,)."""
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    def _draw_noise(self, rows: int) -> tuple[NoiseSource, np.ndarray]:
        """Open the ledger and draw the noise on the counts of every label, float64 (labels, 2)."""
        rate = 2 / self.teachers if self.rate is None else self.rate
        labels = min(affordable_votes(rate, self.epsilon, self.delta), self.limit)
        if self.inputs == "rows":
            labels = min(labels, self._aside(rows))
        if labels < 1:
            raise ValueError(
                f"epsilon {self.epsilon:g} pays for no vote at a rate of {rate:g}, which costs "
                f"{2 * rate:g}; take more teachers or a smaller rate"
            )
        self.ledger_ = self._open_ledger()
        source = NoiseSource(self.ledger_, self.random_state)
        noise = source.laplace(
            (labels, 2),
            releases="votes of all teachers for each class, for each label",
            epsilon=rate,
            sensitivity=1.0,
            uses=2 * labels,
        )
        return source, noise

    def _open_ledger(self) -> Ledger:
        observed = _UNKNOWN if self.domain_ is None else self.domain_.observed
        unpaid = list(observed)
        if self.inputs == "rows":
            unpaid.append("features of the rows set aside for the student")
        return Ledger(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=REPLACE_ONE,
            unpaid=unpaid,
            assumed_public=[
                "number of rows", "labels", *([] if observed else ["bounds and categories"]),
            ],
        )  # fmt: skip

    def _aside(self, rows: int) -> int:
        """Return how many rows teach nobody."""
        return rows // 2 if self.inputs == "rows" else 0

    def _encode(self, frame: pd.DataFrame) -> np.ndarray:
        # Indicators, and numbers scaled to [0, 1] by their bounds, as published.
        norm = math.sqrt(len(self._encoder.domain.features) + 1)
        return norm * self._encoder.transform(frame)

    def _votes(
        self, X: np.ndarray, codes: np.ndarray, asked: np.ndarray, source: NoiseSource
    ) -> np.ndarray:
        """Return the votes for class 1 on each row asked, over partitions, float64 (labels,)."""
        if len(X) < self.teachers:
            raise ValueError(f"too few rows for {self.teachers} teachers; take fewer teachers")
        votes = np.zeros(len(asked))
        for _ in range(self.partitions):
            # Which part a row is in must not depend on the rows, only on their number.
            order = source.generator.permutation(len(X))
            for part in np.array_split(order, self.teachers):
                votes += _learn(X[part], codes[part].astype(int)).predict(asked)
        return votes / self.partitions

    def check_parameters(self) -> None:
        """Raise ValueError on parameters out of range."""
        check_integer("teachers", self.teachers, 1)
        check_integer("partitions", self.partitions, 1)
        check_choice("inputs", self.inputs, INPUTS)
        check_integer("limit", self.limit, 1)
        if self.rate is not None:
            check_number("rate", self.rate, 0)


def _learn(X: np.ndarray, codes: np.ndarray) -> LogisticRegression | DummyClassifier:
    """Return a logistic regression, or the constant class where there is only one.

    The solver was the library's default when the paper appeared, and is the fastest on small parts.
    """
    if len(np.unique(codes)) < 2:
        return DummyClassifier(strategy="most_frequent").fit(X, codes)
    return LogisticRegression(solver="liblinear").fit(X, codes)
