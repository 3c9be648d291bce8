"""What tests of privacy found, in words: audits, attacks, and what these cannot show."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dprepro.privacy.guarantee_status import AuditVerdict
from dprepro.release.guarantee_words import number
from dprepro.release.statement import AttackRecord, AuditRecord, Privacy, Publisher
from dprepro.runtime.terminal import counted

HEADS = ("Audit", "Stated", "Reached at least", "Confidence", "Runs", "Result", "Recorded")
"""Of the table of audits."""

_NO_PROOF = (
    "An audit tries to refute a guarantee: it fits a method many times to two neighbouring tables, "
    "and tells them apart by what is released. One above the stated epsilon would refute it. None "
    "can prove it, and none was made of this file itself."
)


def audits_in_words(of: Publisher) -> list[str]:
    """Return what is on record of the method of a release: the audit that showed most first."""
    method = f"{of.method}, version {of.method_version}"
    if not of.audits:
        return [f"No audit of {method} is on record. {_NO_PROOF}"]
    known = [a for a in of.audits if a.method_version is not None]
    whose = "" if known else " It is not on record which version was audited."
    most = max(known or of.audits, key=_share)
    said = (
        f"Of {counted(len(of.audits), 'audit')} on record for {method}, {most.subject} showed most "
        f"of what is stated: epsilon {number(most.lower_bound)} at least, of {most.epsilon:.4g}, "
        f"with a confidence of {most.confidence:.0%}, by {_fits(most)}.{whose}"
    )
    few = sum(a.verdict == AuditVerdict.FEW_RUNS.value for a in of.audits)
    if few:
        said += f" {few} of them had too few runs to show anything."
    return [said, _NO_PROOF]


def audit_rows(audits: Sequence[AuditRecord]) -> list[tuple[str, ...]]:
    """Return the table of audits, below `HEADS`."""
    return [
        (
            a.subject,
            f"{a.epsilon:.4g}",
            number(a.lower_bound),
            f"{a.confidence:.4g}",
            f"{a.trials or 'one'}",
            a.verdict,
            f"{a.date or 'date unknown'}, "
            f"{f'dprepro {a.dprepro}' if a.dprepro else 'version unknown'}",
        )
        for a in audits
    ]


def _share(audit: AuditRecord) -> float:
    return math.inf if audit.lower_bound is None else audit.lower_bound / audit.epsilon


def _fits(audit: AuditRecord) -> str:
    return f"{audit.trials:,} fits" if audit.trials else "one fit with many canaries"


def attack_in_words(found: AttackRecord) -> list[str]:
    """Return what an attack did and showed, and what it cannot show."""
    canary = f"A canary of {found.canary_rows} equal row(s), at bounds and in categories where"
    source, whose = f"that were drawn from the public domain. {canary} no drawn row is", "nobody's"
    read = "No private row was read"
    if found.has_public_rows:
        source = (
            f"of which the publisher says that they are public. {canary} the fewest of them are"
        )
        whose = "public, as the publisher says"
        read = "No private row is in these models"
    said = (
        f"{found.shadow_models} shadow models were fitted like this one, by the same method and "
        f"parameters, with epsilon {found.epsilon:.4g} and delta {found.delta:.4g}, each to "
        f"{found.rows} rows {source}, was put in by chance."
    )
    shown = (
        f"By what the other models had taught, the attack guessed of {found.judged} whether it was "
        f"in. The area under the ROC curve of its guesses is {found.auc:.3g} (0.5 is chance). It "
        f"recognised {found.true_positive_rate:.1%} of the canaries while it took "
        f"{found.false_positive_rate:.1%} of the models without one for models with it. With a "
        f"confidence of {found.confidence:.0%}, epsilon is at least "
        f"{number(found.epsilon_lower_bound)}."
    )
    if found.verdict == AuditVerdict.FEW_RUNS.value:
        shown += " So few models could hardly have shown more."
    return [
        said,
        shown,
        f"{read}, and nothing was spent. So this says nothing of the people in the "
        f"table: it tests code and settings on rows that are {whose}. Other canaries, more models "
        "or a stronger attack may show more. That an attack shows little proves nothing; the "
        "guarantee does not rest on it.",
    ]


def anonymity_in_words(privacy: Privacy, whose: str) -> list[tuple[str, str]]:
    """Return what the release offers an assessment of anonymity, risk by risk.

    The three risks are those of Opinion 05/2014 of the Article 29 Working Party (WP216).
    """
    if not privacy.holds:
        return [("", "The guarantee does not hold, so nothing follows from it for anonymity.")]
    limit = f"epsilon {privacy.epsilon:.4g} and delta {privacy.delta:.4g}"
    return [
        (
            "Singling out:",
            f"can one {whose} be told from all others by the release? Bins and categories come "
            f"from the card, and each number has noise that covers one {whose}. That one is in "
            f"the table changes what anybody concludes by {limit} at most.",
        ),
        (
            "Linkability:",
            f"can records of one {whose} be linked, in the table or with other data? The release "
            "has no records and no names. The limit holds whatever else somebody has; it is about "
            f"this release, and further releases of the same {whose} add to it.",
        ),
        (
            "Inference:",
            f"can a value of one {whose} be inferred? What follows from their own rows is limited "
            "in the same way. What the model says of people like them can be inferred of everybody "
            "whose features are known, in the table or not: no epsilon limits that.",
        ),
        (
            "No legal conclusion:",
            "whether the release is anonymous information is for its publisher to decide, by the "
            "means that somebody is reasonably likely to use, the size of epsilon, the context and "
            "the law that applies. This page is evidence for that, and no answer.",
        ),
    ]
