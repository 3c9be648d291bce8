"""Render the verdicts on claims for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dprepro.report.judge.claims import ClaimVerdict, Outcome
from dprepro.report.layout.claim_words import claim_notes, said
from dprepro.terminal import Renderable, prose_table

_COLUMNS = (
    ("Claim", 3),
    ("Published", 2),
    ("Measured", 2),
    ("Verdict", None),
    ("Note", 2),
)
_STYLES = {
    Outcome.HOLDS: "green",
    Outcome.FAILS: "red",
    Outcome.NOT_RUN: "dim",
    Outcome.IMPOSSIBLE: "dim",
}


def render_claims(claims: Sequence[ClaimVerdict]) -> Renderable:
    """Return a table of the claims, with what the printed cells that answer to ours say."""
    table = prose_table("Claims", _COLUMNS)
    for found in claims:
        claim = found.claim
        sentence = Text(f"{found.paper}, {claim.section}: ", style="bold")
        sentence.append(claim.states, style="not bold")
        verdict = Text(found.outcome.value, style=_STYLES[found.outcome])
        figures = (said(found.published), said(found.measured))
        table.add_row(sentence, *figures, verdict, " ".join(claim_notes(found)))
    return table
