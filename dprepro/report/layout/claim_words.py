"""How the verdict on a claim reads in words."""

from __future__ import annotations

from collections import Counter

from dprepro.report.judge.claims import ClaimVerdict
from dprepro.report.judge.finding import Finding


def claim_notes(found: ClaimVerdict) -> list[str]:
    """Return sentences on what is missing, left out, or not as the document has it."""
    lines = []
    if found.missing:
        places = Counter(cell.dataset for cell in found.missing)
        datasets = ", ".join(f"{dataset} {count}" for dataset, count in places.items())
        lines.append(f"Cells missing: {datasets}.")
    for reason, count in Counter(cell.note for cell in found.impossible).items():
        lines.append(f"{count} cells left out: {reason}.")
    if found.whole is not None and not found.whole.holds:
        lines.append(f"The printed cells themselves contradict it: {found.whole.text}.")
    if found.claim.note:
        lines.append(found.claim.note)
    if found.explanation:
        what = "Reviewed, cause unknown" if found.is_unknown else "Explained"
        lines.append(f"{what}: {found.explanation}")
    return lines


def said(finding: Finding | None) -> str:
    """Return what some means say about a claim; empty where there are none."""
    return "" if finding is None else finding.text
