"""Render the verdicts on claims for terminals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dprepro.report.judge.claims import ClaimVerdict, Finding, Outcome

_STYLES = {
    Outcome.HOLDS: "green",
    Outcome.FAILS: "red",
    Outcome.NOT_RUN: "dim",
    Outcome.IMPOSSIBLE: "dim",
}


def render_claims(claims: Sequence[ClaimVerdict]) -> RenderableType:
    """Return a table of the claims, with what the printed cells that answer to ours say."""
    table = Table(title="Claims", box=box.SIMPLE_HEAD, title_justify="left", show_lines=True)
    for heading, ratio in (("Claim", 3), ("Published, same cells", 2), ("Measured", 2)):
        table.add_column(heading, ratio=ratio, overflow="fold")
    table.add_column("Verdict", no_wrap=True, overflow="fold")
    table.add_column("Note", ratio=2, overflow="fold")
    for found in claims:
        claim = found.claim
        sentence = Text(f"{found.paper}, section {claim.section}: ", style="bold")
        sentence.append(f"“{claim.quote}”", style="not bold")
        verdict = Text(found.outcome.value, style=_STYLES[found.outcome])
        figures = (_words(found.published), _words(found.measured))
        table.add_row(sentence, *figures, verdict, " ".join(notes(found)))
    return table


def notes(found: ClaimVerdict) -> list[str]:
    """Return sentences on what is missing, left out, or not as the document has it."""
    lines = []
    if found.missing:
        places = Counter(cell.dataset for cell in found.missing)
        datasets = ", ".join(f"{dataset} {count}" for dataset, count in places.items())
        lines.append(f"Cells missing: {datasets}.")
    for reason, count in Counter(cell.note for cell in found.impossible).items():
        lines.append(f"{count} cells left out: {reason}.")
    if found.whole is not None and not found.whole.holds:
        lines.append(f"Its own printed cells do not bear it out: {found.whole.text}.")
    if found.claim.note:
        lines.append(found.claim.note)
    if found.explanation:
        lines.append(f"Explained: {found.explanation}")
    return lines


def _words(finding: Finding | None) -> str:
    return "" if finding is None else finding.text
