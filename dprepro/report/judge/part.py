"""The part of a check that some results touch, or that somebody asks about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dprepro.errors import DpreproError, nearest
from dprepro.published.document import Document
from dprepro.published.published import PublishedCell
from dprepro.published.schema import Selector
from dprepro.report.judge.cell_claims import CellClaim
from dprepro.report.judge.check import CheckReport
from dprepro.report.judge.claims import ClaimVerdict
from dprepro.report.judge.omnibus import ColumnVerdict


@dataclass(frozen=True)
class LeftOut:
    """How many cells, claims and notes of a check a part of it leaves out."""

    cells: int
    claims: int
    notes: int


def touched(
    report: CheckReport, documents: Iterable[Document]
) -> tuple[CheckReport, LeftOut | None]:
    """Return the part of a check that its results touch, and what this leaves out.

    These are the datasets of printed tables of which one cell at least was measured, the claims
    about measured cells, and the notes on what is left.
    """
    places = {
        (cell.published.paper, cell.published.table, cell.published.dataset)
        for cell in report.verdicts
        if cell.result is not None
    }
    return _part(
        report,
        documents,
        lambda cell: (cell.paper, cell.table, cell.dataset) in places,
        lambda claim: isinstance(claim.claim, CellClaim) and claim.measured is not None,
    )


def selected(
    report: CheckReport, documents: Iterable[Document], wanted: Selector
) -> tuple[CheckReport, LeftOut | None]:
    """Return the part of a check on some cells, and what this leaves out.

    Of the claims those are left that rest on these cells alone.

    Raises
    ------
    DpreproError
        If a name is not printed in the documents that were judged.
    """
    printed = [cell.published for cell in report.verdicts]
    _require_printed(wanted, printed)

    def rests_on_them(found: ClaimVerdict) -> bool:
        if not isinstance(found.claim, CellClaim):
            return False
        own = [cell for cell in printed if cell.paper == found.paper]
        cells = [*found.claim.cells(own), *found.claim.unprinted(found.paper)]
        return all(map(wanted.matches, cells))

    return _part(report, documents, wanted.matches, rests_on_them)


def _require_printed(wanted: Selector, printed: Sequence[PublishedCell]) -> None:
    datasets, methods = ({c.dataset for c in printed}, {c.method for c in printed})
    asked = (("dataset", wanted.datasets, datasets), ("method", wanted.methods, methods))
    for option, names, known in asked:
        for name in names or []:
            if name not in known:
                raise DpreproError(
                    f"--{option}: no printed cell has {name!r}{nearest(name, sorted(known)) or '.'}"
                    f" Allowed: {', '.join(sorted(known))}"
                )
    if not any(map(wanted.matches, printed)):
        own = sorted({c.method for c in printed if c.dataset in (wanted.datasets or ())})
        raise DpreproError(
            f"no cell is printed of dataset {' or '.join(wanted.datasets or ())} and method "
            f"{' or '.join(wanted.methods or ())}. Methods that are: {', '.join(own)}"
        )


def _part(
    report: CheckReport,
    documents: Iterable[Document],
    is_wanted: Callable[[PublishedCell], bool],
    is_wanted_claim: Callable[[ClaimVerdict], bool],
) -> tuple[CheckReport, LeftOut | None]:
    verdicts = [cell for cell in report.verdicts if is_wanted(cell.published)]
    kept = [cell.published for cell in verdicts]
    claims = [claim for claim in report.claims if is_wanted_claim(claim)]
    notes = [note for document in documents for note in document.notes_on(kept)]

    def of_columns(columns: Iterable[ColumnVerdict]) -> list[ColumnVerdict]:
        return [column for column in columns if any(column.holds(cell) for cell in verdicts)]

    left_out = LeftOut(
        len(report.verdicts) - len(verdicts),
        len(report.claims) - len(claims),
        len(report.notes) - len(notes),
    )
    metrics = {cell.metric for cell in kept}
    part = replace(
        report,
        verdicts=verdicts,
        margins={name: width for name, width in report.margins.items() if name in metrics},
        columns=of_columns(report.columns),
        asked=of_columns(report.asked),
        untested=of_columns(report.untested),
        stale=[stale for stale in report.stale if is_wanted(stale.cell.published)],
        claims=claims,
        stale_claims=[claim for claim in report.stale_claims if is_wanted_claim(claim)],
        notes=notes,
    )
    return part, left_out if left_out != LeftOut(0, 0, 0) else None
