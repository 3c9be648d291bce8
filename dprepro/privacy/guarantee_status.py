"""What is known of the privacy of a fit, in one word each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprepro.privacy.ledger import Ledger

NO_LEDGER = "keeps no ledger of its releases"
UNVERIFIED = (
    f"unverified: it {NO_LEDGER}, so nothing says what it spends. Give its fitted estimator a "
    "`ledger_` (dprepro.privacy.ledger.Ledger) with an entry for each release"
)
"""What is said of a method that was fitted at a finite epsilon and left no such ledger."""
UNTIL_RUN = (
    "unverified until a run shows its ledger: its entry in METHODS does not say `keeps_ledger=True`"
)
"""What is said of a method that nobody has fitted yet."""


def is_unverified(epsilon: float, ledger: Mapping[str, Any] | None) -> bool:
    """Whether a fit at this stated epsilon left nothing that says what it spent.

    `ledger` is what a journal keeps of the fitted estimator's ledger (`Ledger.summary`), None where
    it has none. A ledger without an answer is as good as none: it adds up to 0 whatever was read.
    """
    return math.isfinite(epsilon) and (ledger is None or ledger.get("releases") == [])


class GuaranteeStatus(str, Enum):
    """What is known of a stated privacy guarantee. Members equal their wording."""

    HOLDS = "holds"
    """The ledger backs it."""

    FAILS = "does not hold"
    """The ledger says so: it was overspent, something is not covered by epsilon, or the proof has a
    gap."""

    UNVERIFIED = "unverified"
    """An epsilon is stated, and no ledger names what was spent."""

    NON_PRIVATE = "non-private"
    """Nothing is stated."""

    def __str__(self) -> str:
        return self.value


class Noise(str, Enum):
    """How noise is drawn. Members equal their wording."""

    EXACT = "exact"
    """On whole numbers, with exactly the stated probabilities; see `dprepro.privacy.sampling`."""

    FLOATING_POINT = "floating point"
    """The guarantee takes real arithmetic as given; see `Ledger.floating_point`."""

    def __str__(self) -> str:
        return self.value


class AuditVerdict(str, Enum):
    """How an audit's lower bound on epsilon compares with what is stated."""

    WITHIN = "within"
    ABOVE_LEDGER = "above ledger"
    """Below the stated epsilon, but above what the ledger adds up to: the ledger is wrong."""
    EXCEEDED = "EXCEEDED"
    UNDECIDED = "undecided"
    """Above one of the two, but not as surely as `dprepro.privacy.lower_bounds.REFUTING` asks."""
    FEW_RUNS = "too few runs"
    """Nothing is refuted, and hardly anything could have been; see `dprepro.audit`."""

    @property
    def is_refuted(self) -> bool:
        """Whether the outputs refute what is stated, or what the ledger adds up to."""
        return self in (AuditVerdict.ABOVE_LEDGER, AuditVerdict.EXCEEDED)


class AuthorsWord(str, Enum):
    """What audits of its very code say of a method of one's own. Members equal their wording.

    Its ledger is its author's word; see `dprepro.privacy.ledger.Ledger.code`. They go from what
    weighs least to what weighs most.
    """

    AUDITED = "audited"
    """An audit could have refuted the guarantee, and did not; that does not prove it."""

    NOT_AUDITED = "not audited"

    REFUTED = "refuted"
    """An audit contradicts what the method states, or what its ledger adds up to."""

    def __str__(self) -> str:
        return self.value

    @classmethod
    def after(cls, verdicts: Iterable[AuditVerdict]) -> AuthorsWord:
        """Return what is said after audits of the code with these verdicts, if any.

        Examples
        --------
        >>> print(AuthorsWord.after([AuditVerdict.WITHIN, AuditVerdict.EXCEEDED]))
        refuted
        """
        found = set(verdicts)
        if any(verdict.is_refuted for verdict in found):
            return cls.REFUTED
        return cls.AUDITED if AuditVerdict.WITHIN in found else cls.NOT_AUDITED

    @classmethod
    def worst(cls, words: Iterable[AuthorsWord | None]) -> AuthorsWord | None:
        """Return what weighs most; None where there is none."""
        found = [word for word in words if word]
        return max(found, key=list(cls).index) if found else None


def status_of(epsilon: float, ledger: Ledger | None) -> GuaranteeStatus:
    """Return the standing of a fit at a stated epsilon, infinite for none, by its ledger, if any.

    Examples
    --------
    >>> print(status_of(1.0, None))
    unverified
    """
    named = None if ledger is None else {"releases": ledger.entries}
    if is_unverified(epsilon, named):
        return GuaranteeStatus.UNVERIFIED
    if ledger is None:
        return GuaranteeStatus.NON_PRIVATE
    return GuaranteeStatus.HOLDS if ledger.holds else GuaranteeStatus.FAILS
