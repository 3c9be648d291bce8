"""Audit a case: learn to tell its two worlds apart, then count how well that works."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from dprepro.audit.case import Case, OneRunCase
from dprepro.audit.distinguisher import Bound, learn
from dprepro.audit.trials import run_trials
from dprepro.errors import DpreproError
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.audit import (
    CONFIDENCE,
    Form,
    Guesses,
    epsilon_lower_bound,
    mu_lower_bound,
)
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import TOLERANCE, Ledger
from dprepro.privacy.sensitivity import Adjacency
from dprepro.privacy.unverified import UNVERIFIED

# Among hundreds of thresholds the best one was lucky too. Asking for more confidence than in the
# end favours thresholds that many runs speak for.
_TRAINING_CONFIDENCE = 0.999


class UnverifiedError(DpreproError):
    """The method keeps no ledger."""


class AuditVerdict(str, Enum):
    """How the lower bound compares with what is stated."""

    WITHIN = "within"
    ABOVE_LEDGER = "above ledger"
    """Below the stated epsilon, but above what the ledger adds up to: the ledger is wrong."""
    EXCEEDED = "EXCEEDED"


@dataclass(frozen=True)
class Evidence:
    """The second half of the runs: scores, float64 (N,), worlds, bool (N,), and the threshold."""

    scores: np.ndarray
    present: np.ndarray
    threshold: float


@dataclass(frozen=True)
class Audited(ABC):
    """What was audited, and what its ledger states.

    Attributes
    ----------
    subject, task, neighbours
        See `Case`.
    adjacency, epsilon, delta
        The guarantee that the ledger states.
    spent_epsilon
        What the ledger's entries add up to.
    gaps
        What the ledger lists as not covered by epsilon, or as a gap: why an excess may be expected.
    """

    subject: str
    task: str | None
    neighbours: str
    adjacency: Adjacency
    epsilon: float
    delta: float
    spent_epsilon: float
    gaps: tuple[str, ...]

    def judged(self, lower_bound: float) -> AuditVerdict:
        """Compare a lower bound with the stated epsilon and with the ledger's sum."""
        if lower_bound > self.epsilon + TOLERANCE:
            return AuditVerdict.EXCEEDED
        if lower_bound > self.spent_epsilon + TOLERANCE:
            return AuditVerdict.ABOVE_LEDGER
        return AuditVerdict.WITHIN

    @property
    @abstractmethod
    def verdict(self) -> AuditVerdict:
        """See `AuditVerdict`."""

    @property
    def unexplained(self) -> bool:
        """Whether a bound is exceeded and the ledger names no reason."""
        return self.verdict is not AuditVerdict.WITHIN and not self.gaps

    def stated(self) -> dict[str, Any]:
        """Return the fields of this class, JSON-able."""
        return {
            "subject": self.subject,
            "task": self.task,
            "neighbours": self.neighbours,
            "adjacency": self.adjacency,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "ledger_epsilon": rounded(self.spent_epsilon),
            "gaps": list(self.gaps),
        }


@dataclass(frozen=True)
class AuditResult(Audited):
    """What an audit found.

    Attributes
    ----------
    bound
        "GDP" where all releases are Gaussian: the bound is mu's, converted at `delta`. Else
        "(epsilon, delta)".
    lower_bound
        On epsilon, holding with probability `confidence`; 0 if the runs prove nothing.
    trials
        Runs in all; the first half trained the distinguisher.
    """

    bound: str
    lower_bound: float
    confidence: float
    trials: int
    seconds: float
    evidence: Evidence = field(repr=False, compare=False)

    @property
    def verdict(self) -> AuditVerdict:
        """See `AuditVerdict`."""
        return self.judged(self.lower_bound)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the evidence, JSON-able."""
        return self.stated() | {
            "bound": self.bound,
            "lower_bound": rounded(self.lower_bound),
            "confidence": self.confidence,
            "trials": self.trials,
            "seconds": round(self.seconds, 1),
            "verdict": self.verdict.value,
        }


def audit(case: Case, trials: int, *, jobs: int = 1, seed: int | None = None) -> AuditResult:
    """Run a case, learn from the first half of the runs and bound epsilon from the second.

    Parameters and errors are those of `run_trials`; `UnverifiedError` if the method keeps no
    ledger.
    """
    started = time.perf_counter()
    ledger = ledger_of(case.fit(True, seed))
    if ledger is None or ledger.is_empty:
        raise UnverifiedError(
            f"{case.subject}: {UNVERIFIED}. Until then there is no guarantee to hold its outputs "
            "against"
        )
    runs = run_trials(case, trials, jobs=jobs, seed=seed)
    training, held_out = runs.halves()
    gaussian = is_gaussian(ledger)
    cautious = bound_for(gaussian, ledger.delta, _TRAINING_CONFIDENCE)
    rule = learn(training.outputs, training.present, cautious)
    guesses = rule.judge(held_out.outputs, held_out.present)
    found = float(bound_for(gaussian, ledger.delta, CONFIDENCE)(guesses, rule.form))
    return AuditResult(
        **audited_by(case, ledger),
        bound="GDP" if gaussian else "(epsilon, delta)",
        lower_bound=epsilon_of(found, ledger.delta) if gaussian else max(0.0, found),
        confidence=CONFIDENCE,
        trials=trials,
        seconds=time.perf_counter() - started,
        evidence=Evidence(rule.scores(held_out.outputs), held_out.present, rule.threshold),
    )


def is_gaussian(ledger: Ledger) -> bool:
    """Whether every release is plain Gaussian, so that mu-GDP is what is claimed."""
    return all(entry.mechanism == "gaussian" and entry.sampling >= 1 for entry in ledger.entries)


def audited_by(case: Case | OneRunCase, ledger: Ledger) -> dict[str, Any]:
    """Return the fields of `Audited`, by name."""
    return {
        "subject": case.subject,
        "task": case.task,
        "neighbours": case.neighbours,
        "adjacency": ledger.adjacency,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "spent_epsilon": ledger.spent_epsilon(),
        "gaps": reasons(ledger),
    }


def reasons(ledger: Ledger) -> tuple[str, ...]:
    """Return the gaps and the reads not covered by epsilon, but for the audit's fixed seeds."""
    return tuple(
        text for text in (*ledger.unpaid, *ledger.gaps) if not text.startswith("fixed seed")
    )


def bound_for(gaussian: bool, delta: float, confidence: float) -> Bound:
    """Return the bound that is meant: on mu, or on epsilon at `delta`."""

    def bound(guesses: Guesses, form: Form) -> np.ndarray:
        if gaussian:
            return mu_lower_bound(guesses, form, confidence)
        return epsilon_lower_bound(guesses, delta, form, confidence)

    return bound


def rounded(epsilon: float) -> float | None:
    """Return epsilon to four places, None for infinity, which strict JSON lacks."""
    return round(epsilon, 4) if np.isfinite(epsilon) else None
