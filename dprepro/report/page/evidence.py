"""Sheets of what stands behind the figures: claims, ledgers and audits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dprepro.privacy.standing import AuditVerdict, Noise, Standing
from dprepro.privacy.unverified import NO_LEDGER
from dprepro.report.judge.claims import ClaimVerdict, Outcome
from dprepro.report.page.sheets import Cell, Head, Kind, Row, Sheet, tone
from dprepro.report.read.audits import Audit
from dprepro.report.read.runs import Spending

_CLAIM_HEADS = (
    Head("Document"),
    Head("Place"),
    Head("Statement", Kind.PROSE),
    Head("Published", Kind.PROSE, "what the printed numbers of the same cells give, or as stated"),
    Head("Measured", Kind.PROSE, "from our results, cards, configs or formulas"),
    Head("Verdict"),
    Head("Note", Kind.PROSE),
)
_LEDGER_HEADS = (
    Head("Dataset"),
    Head("Method"),
    Head("Neighbours"),
    Head("δ", Kind.NUMBER),
    Head("Stated ε → spent ε", Kind.PROSE, "by the ledger; the largest over splits"),
    Head("Largest share", Kind.NUMBER, "of the stated epsilon that is spent"),
    Head("Under replace-one", Kind.NUMBER, "the same when one row is exchanged for any other"),
    Head("Guarantee"),
    Head("Why not", Kind.PROSE),
    Head(
        "Noise", Kind.PROSE, "exact, or in floating point, where real arithmetic is taken as given"
    ),
)
_AUDIT_HEADS = (
    Head("Audited"),
    Head("Task"),
    Head("Neighbours"),
    Head("ε at least", Kind.NUMBER, "what the outputs prove"),
    Head("Ledger", Kind.NUMBER, "what the ledger's entries add up to"),
    Head("Stated", Kind.NUMBER),
    Head("Verdict"),
    Head("By", Kind.PROSE, "the pair of tables and the number of runs"),
    Head("Named in the ledger", Kind.PROSE),
)


def claim_sheet(claims: Iterable[ClaimVerdict]) -> Sheet:
    """Return the verdict on each statement with numbers, those that do not hold first."""
    ordered = sorted(claims, key=lambda found: found.outcome is not Outcome.FAILS)
    rows = tuple(map(_claim, ordered))
    return Sheet("claim-verdicts", "Statements with numbers", _CLAIM_HEADS, rows)


def _claim(found: ClaimVerdict) -> Row:
    claim = found.claim
    fields = (
        *(Cell(text) for text in (found.paper, claim.section, claim.states)),
        *(Cell(side.text if side else "") for side in (found.published, found.measured)),
        Cell(found.words, tone=tone(found.outcome.value)),
        Cell(" ".join(found.notes)),
    )
    return Row(fields, found.paper)


def ledger_sheet(spendings: Iterable[Spending]) -> Sheet:
    """Return the spent epsilon of each private method on each dataset."""
    rows = tuple(_spent(spending) for spending in spendings)
    return Sheet("spent", "Spent epsilon", _LEDGER_HEADS, rows)


def _spent(spending: Spending) -> Row:
    # Spaces that do not break keep each pair in one line.
    levels = ", ".join(
        f"{s.stated:g}\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}{_number(s.spent)}"
        for s in spending.levels
    )
    levels = levels or ", ".join(f"{stated:g}" for stated in spending.unverified)
    state = Standing.HOLDS if spending.stands else Standing.FAILS
    if spending.unverified:
        state = Standing.UNVERIFIED
    fields = (
        *(Cell(text) for text in (spending.dataset, spending.method, spending.adjacency)),
        Cell(f"{spending.delta:g}"),
        Cell(levels),
        *(
            Cell("" if spending.unverified else _share(share))
            for share in (spending.largest_share, spending.replace_one_share)
        ),
        Cell(state, tone=tone(state)),
        _why_not(spending),
        _noise(spending),
    )
    return Row(fields, None, spending.dataset, spending.method)


def _why_not(spending: Spending) -> Cell:
    reasons = {
        "more spent than stated": spending.is_overspent,
        "reads not covered by epsilon": spending.unpaid,
        "gaps in the proof": spending.gaps,
        "its author's word: a method of one's own": spending.is_authors_word,
        f"{NO_LEDGER}, so nothing says what it spends": spending.unverified,
    }
    said = [name for name, found in reasons.items() if found]
    lines = [f"Read, but not covered by epsilon: {text}" for text in spending.unpaid]
    lines += [f"Gap: {text}" for text in spending.gaps]
    return Cell(", ".join(said), more=tuple(lines))


def _noise(spending: Spending) -> Cell:
    """Return how noise is drawn; empty where no record says it."""
    if spending.floating_point is None:
        return Cell("")
    noise = Noise.FLOATING_POINT if spending.floating_point else Noise.EXACT
    return Cell(noise.value, more=spending.floating_point)


def _share(ratio: float) -> str:
    return f"{100 * ratio:.1f} %" if math.isfinite(ratio) else "no bound"


def _number(epsilon: float) -> str:
    return f"{epsilon:.4g}" if math.isfinite(epsilon) else "no bound"


def audit_sheet(audits: Sequence[Audit]) -> Sheet:
    """Return what outputs prove about the epsilon that each method spends."""
    rows = tuple(_audit(audit) for audit in audits)
    return Sheet("audited", "Lower bounds on epsilon from outputs", _AUDIT_HEADS, rows)


def _audit(audit: Audit) -> Row:
    fields = (
        *(Cell(text or "") for text in (audit.subject, audit.task, audit.adjacency)),
        Cell(_bound(audit.lower_bound)),
        Cell(_bound(audit.spent_epsilon)),
        Cell(f"{audit.epsilon:g}"),
        Cell(audit.verdict.value, tone=_audit_tone(audit.verdict)),
        Cell(_basis(audit)),
        Cell(f"{len(audit.gaps)}" if audit.gaps else "", more=audit.gaps),
    )
    return Row(fields, None, None, audit.subject)


def _audit_tone(verdict: AuditVerdict) -> str:
    """Return the colour; none where nothing follows."""
    if verdict.is_refuted:
        return "exceeded"
    return "within" if verdict is AuditVerdict.WITHIN else ""


def _basis(audit: Audit) -> str:
    if audit.guesses is not None:
        curve, sharper = audit.curve_bound, audit.independent_bound
        extra = "" if curve is None else f"; at least {curve:.3f} under a Gaussian trade-off curve"
        extra += "" if sharper is None else f"; at least {sharper:.3f} if the noise is independent"
        right = f"{audit.correct} of {audit.guesses} guesses right in one run"
        return f"{audit.neighbours}; {right}{extra}"
    runs = "" if audit.trials is None else f"; {audit.trials:,} runs"
    most = "" if audit.ceiling is None else f"; at most {audit.ceiling:.3f} can be shown here"
    return f"{audit.neighbours}{runs}, bound by {audit.bound}{most}"


def _bound(epsilon: float | None) -> str:
    return "infinite" if epsilon is None else f"{epsilon:.3f}"
