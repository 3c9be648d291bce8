"""What needs attention after a check, in words, for terminals, annotations and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dprepro.judge.check import Again, CheckReport
from dprepro.judge.claims import ClaimVerdict
from dprepro.judge.verdicts import CellVerdict
from dprepro.papers.folders import own_folder
from dprepro.report.formatting import (
    causes_in_words,
    judged_in_words,
    verdict_figures,
)
from dprepro.results.margins import level
from dprepro.results.result_cell import TUNED_NOTE

RECORD = (
    "If the change is meant, `dprepro check --record` records it, and the difference of "
    "the file shows a reviewer what changed."
)
"""What to do about a recorded cell that changed."""
_FEW_CELLS = 3


@dataclass(frozen=True)
class Finding:
    """What needs attention: `is_error` if a check fails for it."""

    is_error: bool
    title: str
    text: str


def advice(report: CheckReport) -> str:
    """Return what to do about deviations without an explanation; empty if there are none."""
    papers = [
        *(cell.published.paper for cell in report.unexplained),
        *(claim.paper for claim in report.unexplained_claims),
        *(column.paper for column in report.untested),
    ]
    if not papers:
        return ""
    folders = dict.fromkeys(own_folder(p) or "dprepro/papers/library/PAPER" for p in papers)
    files = " or ".join(f"{folder}/deviations.yaml" for folder in folders)
    return (
        "Look for a fault of ours first. If there is none, add what you found, or what you "
        f"tried, to {files}; hypotheses about a column go to hypotheses.yaml beside it."
    )


def place_in_words(cell: CellVerdict) -> str:
    """Return where a cell is printed: ``"adult, ebm, ε 1, auc (dp-ebm-2021, Table 2)"``."""
    printed = cell.published
    where = f"{printed.dataset}, {printed.method}, ε {level(printed.epsilon)}, {printed.metric}"
    return f"{where} ({printed.paper}, Table {printed.table})"


def figures_in_words(cell: CellVerdict) -> str:
    """Return the figures of a verdict in a line, and what limits it."""
    figures = [f"{name} {value}" for name, value in verdict_figures(cell).items() if value]
    return ", ".join([*figures, *filter(None, [cell.remark])])


def claim_in_words(found: ClaimVerdict) -> str:
    """Return what a claim states, what both sides' cells say, and what is missing."""
    sides = (("Published", found.published), ("Measured", found.measured))
    said = [f"{name}: {side.text}." for name, side in sides if side and side.text]
    return " ".join([found.claim.states, *said, *found.notes])


def outcome_in_words(report: CheckReport, require_all: bool = False) -> str:
    """Return how a check ended, and how much of the documents that is about."""
    judged = judged_in_words(report)
    if report.passes(require_all):
        passed = "Check passed for what was run" if report.unfinished else "Check passed"
        return f"{passed}: {judged}. {causes_in_words(report) or 'No deviation'}."
    if report.unexplained or report.unexplained_claims or report.untested:
        claims = len(report.unexplained_claims)
        false_claims = f", claims that do not hold: {claims}" if claims else ""
        return (
            f"Check failed: deviations without an explanation: {len(report.unexplained)}"
            f"{false_claims}, different columns without a tested cause: {len(report.untested)}. "
            f"{judged}."
        )
    return f"Check failed, since --require-all was given: {judged}."


def findings(report: CheckReport) -> Iterator[Finding]:
    """Yield what needs attention in a check: first what it fails for.

    Cells that were not run are left to the outcome, which names them.
    """
    for cell in report.unexplained:
        title = f"{cell.verdict.value}: {place_in_words(cell)}"
        yield Finding(True, title, f"no explanation; {figures_in_words(cell)}")
    for claim in report.unexplained_claims:
        title = f"claim that does not hold: {claim.claim.name} ({claim.paper})"
        yield Finding(True, title, claim_in_words(claim))
    for column in report.untested:
        yield Finding(True, f"different as a whole: {column}", "no cause was tested")
    for stale in report.stale:
        yield Finding(False, f"stale explanation: {stale.cell.published}", (
            f"listed as {stale.entry.expected} in the deviations file, but is "
            f"{stale.cell.verdict.value}; remove the entry"
        ))  # fmt: skip
    for claim in report.stale_claims:
        yield Finding(False, f"stale explanation: the claim {claim.claim.name} of {claim.paper}", (
            "listed in the deviations file, but holds; remove the entry"
        ))  # fmt: skip
    for what, cells, why in (
        ("unverified", report.unverified, "no ledger says what these cells spend"),
        ("tuned", report.tuned, TUNED_NOTE),
    ):
        if cells:
            more = f", and {len(cells) - _FEW_CELLS} more" if len(cells) > _FEW_CELLS else ""
            places = "; ".join(str(cell.published) for cell in cells[:_FEW_CELLS])
            yield Finding(False, what, f"{why}: {places}{more}")


def again_in_words(found: Again) -> str:
    """Return what `--fast` ran again and compared, in a line."""
    rerun = found.rerun
    said = f"Run again: {rerun.matched - _differing(found)} of {rerun.matched} tasks as committed"
    said += f", {len(rerun.missing)} without a committed record" if rerun.missing else ""
    if found.changed is None:
        said += "; no cells are recorded (`dprepro check --record`)"
    else:
        said += f"; recorded cells that differ: {len(found.changed)}"
    return f"{said}{f'; explanations that no longer apply: {found.stale}' if found.stale else ''}."


def findings_again(found: Again) -> Iterator[Finding]:
    """Yield what differs from committed records and recorded cells: `--fast` fails for each."""
    for mismatch in found.rerun.mismatches:
        yield Finding(True, "run again", f"differs: {mismatch}")
    for task in dict.fromkeys(f"{r.task.dataset}, {r.task.label}" for r in found.rerun.missing):
        yield Finding(True, "run again", f"no finished committed record: {task}")
    if not found.rerun.matched:
        yield Finding(True, "run again", "no task has a committed record")
    for line in found.changed or ():
        yield Finding(True, "recorded cell", line)
    if found.stale:
        said = f"explanations that no longer apply: {found.stale}; remove them"
        yield Finding(True, "stale explanations", said)


def _differing(found: Again) -> int:
    return len({mismatch.record.task.key for mismatch in found.rerun.mismatches})
