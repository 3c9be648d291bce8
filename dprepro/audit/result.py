"""What audits find: bounds, verdicts, and what they rest on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprepro.audit.case import Case, OneRunCase
from dprepro.audit.distinguishers import Ceiling, Claim, claim_of, spent_under
from dprepro.methods import registry
from dprepro.privacy.guarantee_status import AuditVerdict
from dprepro.privacy.ledger import Ledger, slack
from dprepro.privacy.lower_bounds import Guesses
from dprepro.privacy.sensitivity import Adjacency
from dprepro.runtime.errors import DpreproError

_TELLING = 0.25
"""An audit that would not even show this share of its ceiling has too few runs."""


class UnverifiedError(DpreproError):
    """The method keeps no ledger."""


@dataclass(frozen=True)
class Evidence:
    """The runs that were judged: scores, float64 (N,), worlds, bool (N,), and the threshold."""

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
        What the ledger's entries add up to, see `spent_under`.
    gaps
        What the ledger lists as not covered by epsilon, or as a gap: why an excess may be expected.
    code
        Of a method of one's own, its `Method.code`; else empty.
    """

    subject: str
    task: str | None
    neighbours: str
    adjacency: Adjacency
    epsilon: float
    delta: float
    spent_epsilon: float
    gaps: tuple[str, ...]
    code: str = field(default="", kw_only=True)

    def judged(self, shown: float, refuting: float) -> AuditVerdict:
        """Compare two lower bounds with the stated epsilon and with the ledger's sum.

        Parameters
        ----------
        shown, refuting
            With the confidence `CONFIDENCE`, and with `REFUTING`.
        """
        stated, spent = (given + slack(given) for given in (self.epsilon, self.spent_epsilon))
        if refuting > stated:
            return AuditVerdict.EXCEEDED
        if refuting > spent:
            return AuditVerdict.ABOVE_LEDGER
        if shown > min(stated, spent):
            return AuditVerdict.UNDECIDED
        return AuditVerdict.WITHIN

    @property
    @abstractmethod
    def verdict(self) -> AuditVerdict:
        """See `AuditVerdict`."""

    @property
    def unexplained(self) -> bool:
        """Whether a bound is exceeded and the ledger names no reason."""
        return self.verdict.is_refuted and not self.gaps

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
            **({"code": self.code} if self.code else {}),
        }


@dataclass(frozen=True)
class AuditResult(Audited):
    """What an audit found.

    Attributes
    ----------
    bound
        What the ledger claims: the bound is on mu or rho, converted at `delta`, or on epsilon.
    lower_bound
        On epsilon, holding with probability `confidence`; 0 if the runs prove nothing.
    refuting_bound
        The same, holding with probability `REFUTING`: what it exceeds is refuted.
    trials
        Runs in all, those that trained the distinguisher included.
    ceiling
        The most that a distinguisher could show on this pair; None where it is not known.
    """

    bound: Claim
    lower_bound: float
    refuting_bound: float
    confidence: float
    trials: int
    seconds: float
    ceiling: Ceiling | None
    evidence: Evidence = field(repr=False, compare=False)

    @property
    def share_of_ceiling(self) -> float | None:
        """The bound in units of the ceiling; None where there is none, or nothing can be shown."""
        if self.ceiling is None or self.ceiling.epsilon == 0:
            return None
        return self.lower_bound / self.ceiling.epsilon

    @property
    def verdict(self) -> AuditVerdict:
        """See `AuditVerdict`."""
        found = self.judged(self.lower_bound, self.refuting_bound)
        if found is AuditVerdict.WITHIN and self.says_little:
            return AuditVerdict.FEW_RUNS
        return found

    @property
    def says_little(self) -> bool:
        """Whether so many runs would hardly show a difference as large as the ceiling.

        That is: if worlds differed by the ceiling, and the best distinguisher made as many mistakes
        as are expected of it, the bound would be below `_TELLING` of the ceiling. Nor is the bound
        that was found above that. False where no ceiling is known, or nothing can be shown.
        """
        share = self.share_of_ceiling
        if self.ceiling is None or share is None or share >= _TELLING:
            return False
        return self._expected_bound(self.ceiling.epsilon) < _TELLING * self.ceiling.epsilon

    def _expected_bound(self, epsilon: float) -> float:
        """Return the bound that is expected of worlds that differ by `epsilon`."""
        try:
            error = self.bound.least_error(epsilon, self.delta)
        except ValueError:  # too small an epsilon for any noise
            return 0.0
        runs = len(self.evidence.present)
        half = Guesses(error * runs / 2, runs / 2, error * runs / 2, runs / 2)
        found = float(self.bound.bound(self.delta, self.confidence)(half, "accuracy"))
        return self.bound.epsilon(found, self.delta)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the evidence, JSON-able."""
        return self.stated() | {
            "bound": self.bound.value,
            "lower_bound": rounded(self.lower_bound),
            "refuting_bound": rounded(self.refuting_bound),
            "confidence": self.confidence,
            "trials": self.trials,
            "seconds": round(self.seconds, 1),
            "ceiling": None if self.ceiling is None else rounded(self.ceiling.epsilon),
            "ceiling_basis": None if self.ceiling is None else self.ceiling.basis,
            "verdict": self.verdict.value,
        }


def audited_by(case: Case | OneRunCase, ledger: Ledger) -> dict[str, Any]:
    """Return the fields of `Audited`, by name."""
    return {
        "subject": case.subject,
        "task": case.task,
        "neighbours": case.neighbours,
        "adjacency": ledger.adjacency,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "spent_epsilon": spent_under(claim_of(ledger), ledger),
        "gaps": reasons(ledger),
    } | code_of(case)


def code_of(case: Case | OneRunCase) -> dict[str, str]:
    """Return the ``code`` of a method of one's own; nothing for our methods and mechanisms."""
    method = registry.all_methods().get(case.subject.partition("/")[0]) if case.task else None
    return {"code": method.code} if method and method.code else {}


def reasons(ledger: Ledger) -> tuple[str, ...]:
    """Return the gaps and the reads not covered by epsilon, but for the audit's fixed seeds."""
    return tuple(
        text for text in (*ledger.unaccounted, *ledger.gaps) if not text.startswith("fixed seed")
    )


def rounded(epsilon: float) -> float | None:
    """Return epsilon to four places, None for infinity, which strict JSON lacks."""
    return round(epsilon, 4) if np.isfinite(epsilon) else None
