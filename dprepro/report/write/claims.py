"""Render the verdicts on claims for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from dprepro.report.judge.claims import ClaimVerdict, Outcome
from dprepro.report.layout.claim_words import claim_notes, said
from dprepro.terminal import Renderable, below, indented

_STYLES = {
    Outcome.HOLDS: "green",
    Outcome.FAILS: "red",
    Outcome.NOT_RUN: "dim",
    Outcome.IMPOSSIBLE: "dim",
}


def render_claims(claims: Sequence[ClaimVerdict]) -> Renderable:
    """Return a block for each claim: its verdict, its words, and what both sides' cells say."""
    return below(
        Text("\nClaims", style="italic"), *(part for one in claims for part in _block(one))
    )


def _block(found: ClaimVerdict) -> Iterator[Renderable]:
    claim = found.claim
    head = Text(f"{found.words}: ", style=_STYLES[found.outcome])
    head.append(f"{found.paper}, {claim.section}: ", style="not dim bold")
    yield head.append(claim.states, style="not dim not bold")
    lines = [
        *(f"Published: {text}" for text in [said(found.published)] if text),
        *(f"Measured: {text}" for text in [said(found.measured)] if text),
        *claim_notes(found),
    ]
    if lines:
        yield indented(Text("\n".join(lines)))
