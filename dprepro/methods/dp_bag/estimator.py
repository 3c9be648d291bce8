"""DP-Bag: teachers on parts of several partitions vote on the labels of a student's rows."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from dprepro.data.domain import Domain, sample_features
from dprepro.estimators.base import DPEstimator, FrameModel, tagged
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    fitting,
    plain_parameters,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.methods.dp_bag import ADJACENCY
from dprepro.methods.dp_bag.curator import (
    STUDENT_ROWS,
    BagCurator,
    Votes,
    encode,
    learn,
    plan_votes,
)
from dprepro.privacy.composition import affordable_votes
from dprepro.privacy.ledger import Ledger
from dprepro.runtime.arguments import DELTA, EPSILON, MODERATE, Integer, OneOf, OrNone

INPUTS = ("rows", "domain")

_UNKNOWN = ("bounds and categories of all features", "which features have missing values")
"""What a fit without a domain will read, in words, before its rows are there."""


@tagged(multi_class=False, poor_score=True)
@dataclass(eq=False, repr=False, kw_only=True)
class DPBagClassifier(ClassifierMixin, DPEstimator, FrameModel):
    """Differentially private bagging (Jordon, Yoon, van der Schaar 2019).

    Each of `partitions` random partitions cuts the rows into `teachers` equal parts, and a logistic
    regression learns from each part. All teachers vote on rows without a label; a count is the
    number of votes over `partitions`, so a row, which taught one teacher of each partition, moves
    it by at most 1. Laplace noise on the counts of both classes decides each label, and a student,
    another logistic regression, learns from these alone.

    Formal guarantee: (epsilon, delta)-DP under replace-one, for a public number of rows, where the
    student's rows come from the ``domain``. With ``inputs="rows"``, as published, the features of
    half of the rows are taken as public: the ledger lists them as not covered by epsilon.

    Every vote is charged in full (see `privacy.composition`). The published accountant charges less
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
        Bounds and categories; None reads them from the rows, which epsilon does not cover.
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    student_ : LogisticRegression or DummyClassifier
        The model; constant where all noisy labels agree.
    figures_ : dict
        ``labels``, how many the budget covers.
    ledger_ : Ledger
        Two Laplace answers a label.

    Raises
    ------
    ValueError
        On parameters out of range, more teachers than rows, a budget below one label, or values and
        labels that the domain rules out; without a public domain on other than two classes.
    """

    kinds = MappingProxyType({
        "teachers": Integer(1), "partitions": Integer(1), "rate": OrNone(MODERATE),
        "inputs": OneOf(INPUTS), "limit": Integer(1), "epsilon": EPSILON, "delta": DELTA,
        "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    teachers: int = 100
    partitions: int = 50
    rate: float | None = None
    inputs: str = "rows"
    limit: int = 10_000
    epsilon: float = 1.0
    delta: float = 1e-6
    domain: Domain | None = None
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> DPBagClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes.

        Without a public domain both labels have to occur.
        """
        rows = read_training_rows(self, X, y, self.domain, "binary")
        self.domain_ = domain = resolve_domain_of(self, rows, "binary")
        ledger = self._open_ledger(domain)
        curator = BagCurator(rows, domain, ledger, self.random_state)
        labels = self._labels(curator.number_of_rows)
        curator.enter(self._rate, labels)
        curator.divide(self._aside(curator.number_of_rows))
        asked = self._rows_to_label(curator, domain, labels)
        answer = curator.votes(
            Votes(1.0, 1.0, self.teachers, self.partitions, self.partitions), asked
        )
        self.student_ = learn(asked, answer.value.argmax(axis=1))
        self.figures_ = {"labels": float(labels)}
        self.ledger_ = ledger
        return self

    def planned_ledger(self, rows: int) -> Ledger:
        """Return the ledger that a fit to so many rows would leave, without fitting.

        Without a domain it says what the fit will read, but not of which features.
        """
        rows = Integer(1)("rows", rows)
        with plain_parameters(self):
            ledger = self._open_ledger(self.domain)
            plan_votes(
                self._rate, self._labels(rows), ledger, self.random_state, _observed(self.domain)
            )
        return ledger

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the student's probabilities of both classes, float64 (n, 2)."""
        frame = self._frame(X)
        probabilities = np.zeros((len(frame), 2))
        probabilities[:, self.student_.classes_] = self.student_.predict_proba(
            encode(frame, self.domain_)
        )
        return probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable class of each row, (n,)."""
        positive = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[positive.astype(int)]

    @property
    def _rate(self) -> float:
        return 2 / self.teachers if self.rate is None else self.rate

    def _labels(self, rows: int) -> int:
        """Return how many labels the budget pays for, where there are so many rows."""
        rate = self._rate
        labels = min(affordable_votes(rate, self.epsilon, self.delta), self.limit)
        if self.inputs == "rows":
            labels = min(labels, self._aside(rows))
        if labels < 1:
            raise ValueError(
                f"epsilon {self.epsilon:g} pays for no vote at a rate of {rate:g}, which costs "
                f"{2 * rate:g}; take more teachers or a smaller rate"
            )
        return labels

    def _rows_to_label(self, curator: BagCurator, domain: Domain, labels: int) -> np.ndarray:
        """Return the student's rows, encoded, float64 (labels, columns)."""
        if self.inputs == "rows":
            return curator.student_rows(labels)
        return encode(sample_features(domain, labels, curator.public_generator), domain)

    def _open_ledger(self, domain: Domain | None) -> Ledger:
        return self._new_ledger(
            ADJACENCY,
            ["number of rows", "labels", not _observed(domain) and "bounds and categories"],
            unaccounted=[STUDENT_ROWS] if self.inputs == "rows" else [],
        )

    def _aside(self, rows: int) -> int:
        """Return how many rows teach nobody."""
        return rows // 2 if self.inputs == "rows" else 0


def _observed(domain: Domain | None) -> tuple[str, ...]:
    """Return what a fit reads of the domain from the rows, in words."""
    return _UNKNOWN if domain is None else domain.observed
