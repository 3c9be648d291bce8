"""A check: all verdicts, the deviations that are explained, and whether it passes.

Also a part of a check, and what of it is compared with records of before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dprepro.judge.claim_kinds import CellClaim
from dprepro.judge.claims import ClaimVerdict, Outcome, judge_claims, load_claims
from dprepro.judge.deviations import ClaimDeviation, Deviation, load_claim_deviations
from dprepro.judge.forensics import Judgement, Place, column_of, fitted
from dprepro.judge.omnibus import ColumnState, ColumnVerdict, Omnibus, columns, omnibus
from dprepro.judge.rerun import RerunReport
from dprepro.judge.verdicts import CellVerdict, Verdict, judge_cells
from dprepro.papers.document import Choice, Document
from dprepro.papers.hypotheses import Question, load_hypotheses
from dprepro.papers.published_cell import PublishedCell
from dprepro.papers.schema import Selector
from dprepro.results.folder import Results
from dprepro.results.margins import Margin
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import MOST_NAMED, in_short


@dataclass(frozen=True)
class Stale:
    """A cell that the deviations file lists with a verdict that it no longer has."""

    cell: CellVerdict
    entry: Deviation


@dataclass(frozen=True)
class CheckReport:
    """The outcome of a check.

    Attributes
    ----------
    verdicts, columns, claims
        One for each printed cell, each printed column as a whole, and each statement with numbers.
    margins
        By metric, those that the verdicts rest on.
    asked
        Columns that are different as a whole, and of which hypotheses were tested.
    untested
        The others that are different, unless each of their cells that differs is explained.
    stale, stale_claims
        Cells and claims that the deviations file lists, but that deviate no longer.
    notes
        What the layouts say of the printed tables, slips above all, and of the pictures.
    choices
        The columns whose settings or rows were chosen by looking at printed numbers, and how.
    held_out
        The judgements on settings that were chosen without the cells that judge them.
    """

    verdicts: Sequence[CellVerdict]
    margins: Mapping[str, Margin]
    columns: Sequence[ColumnVerdict] = ()
    asked: Sequence[ColumnVerdict] = ()
    untested: Sequence[ColumnVerdict] = ()
    stale: Sequence[Stale] = ()
    claims: Sequence[ClaimVerdict] = ()
    stale_claims: Sequence[ClaimVerdict] = ()
    notes: Sequence[str] = ()
    choices: Mapping[Place, Choice] = field(default_factory=dict)
    held_out: Sequence[Judgement] = ()

    def part(
        self,
        has_cell: Callable[[PublishedCell], bool],
        has_column: Callable[[ColumnVerdict], bool],
        has_claim: Callable[[ClaimVerdict], bool],
    ) -> CheckReport:
        """Return what there is on these cells, columns and claims; all else stays."""
        return replace(
            self,
            verdicts=[cell for cell in self.verdicts if has_cell(cell.published)],
            columns=list(filter(has_column, self.columns)),
            asked=list(filter(has_column, self.asked)),
            untested=list(filter(has_column, self.untested)),
            stale=[stale for stale in self.stale if has_cell(stale.cell.published)],
            claims=list(filter(has_claim, self.claims)),
            stale_claims=list(filter(has_claim, self.stale_claims)),
        )

    def of_paper(self, paper: str) -> CheckReport:
        """Return the part on one document."""

        def is_own(found: PublishedCell | ColumnVerdict | ClaimVerdict) -> bool:
            return found.paper == paper

        return self.part(is_own, is_own, is_own)

    @property
    def papers(self) -> list[str]:
        """The documents judged, in order."""
        return list(dict.fromkeys(cell.published.paper for cell in self.verdicts))

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of cells by verdict, every verdict named."""
        found = Counter(cell.verdict for cell in self.verdicts)
        return {verdict: found[verdict] for verdict in Verdict}

    def split_by_choice(self) -> Iterator[tuple[bool, CheckReport]]:
        """Yield the cells of columns that were chosen, and then the others, where there are any."""
        for is_chosen in (True, False):
            places = [column_of(cell.published) for cell in self.verdicts]
            found = zip(self.verdicts, places, strict=True)
            own = [cell for cell, place in found if (place in self.choices) is is_chosen]
            if own:
                yield is_chosen, replace(self, verdicts=own)

    @property
    def fitted(self) -> list[Place]:
        """The columns whose settings fail where they were not chosen, though they agree here.

        A column of which every cell is a deviation agrees nowhere.
        """
        agree = {
            column_of(cell.published)
            for cell in self.verdicts
            if cell.verdict.is_final and not cell.verdict.is_deviation
        }
        return [place for place in fitted(self.held_out) if place in agree]

    @property
    def omnibus(self) -> Omnibus | None:
        """What all judged cells say together; None where there are none."""
        return omnibus(self.verdicts)

    @property
    def omnibus_of_rest(self) -> Omnibus | None:
        """What the judged cells say together without the deviations; None where none is left.

        Its p-value means nothing, since the farthest cells are left out by what they say. Its sum
        is comparable: if nothing else differs, it is a little below the number of its cells, by
        0.4 % where 161 cells share the level of a document, by 3 % where 15 do.
        """
        return omnibus(cell for cell in self.verdicts if not cell.verdict.is_deviation)

    @property
    def different(self) -> list[ColumnVerdict]:
        """Columns that are different as a whole."""
        return [column for column in self.columns if column.state is ColumnState.DIFFERENT]

    @property
    def explained(self) -> list[CellVerdict]:
        """Deviations with a reviewed entry: `understood` and `unknown` together."""
        return [c for c in self.verdicts if c.explanation is not None and c.verdict.is_deviation]

    @property
    def known(self) -> list[CellVerdict]:
        """Cells that show no difference here, although one is known by other evidence."""
        return [
            c for c in self.verdicts if c.explanation is not None and not c.verdict.is_deviation
        ]

    @property
    def understood(self) -> list[CellVerdict]:
        """Deviations whose reviewed reason explains them."""
        return [cell for cell in self.explained if not cell.is_unknown]

    @property
    def unknown(self) -> list[CellVerdict]:
        """Deviations that were reviewed, and whose cause is still unknown."""
        return [cell for cell in self.explained if cell.is_unknown]

    @property
    def unexplained(self) -> list[CellVerdict]:
        """Deviations without one."""
        return [cell for cell in self.verdicts if cell.is_unexplained]

    @property
    def unverified(self) -> list[CellVerdict]:
        """Cells whose method keeps no ledger of its answers: nothing says what they spend."""
        return [cell for cell in self.verdicts if cell.result and cell.result.is_unverified]

    @property
    def tuned(self) -> list[CellVerdict]:
        """Cells whose parameters `dprepro tune` chose."""
        return [cell for cell in self.verdicts if cell.result and cell.result.is_tuned]

    @property
    def unexplained_claims(self) -> list[ClaimVerdict]:
        """Claims that do not hold, without a reviewed reason."""
        return [claim for claim in self.claims if claim.is_unexplained]

    def passes(self, require_all: bool = False) -> bool:
        """Whether every deviation and every claim that does not hold is explained.

        Hypotheses must have been tested about each column that is different as a whole. With
        `require_all`, also whether every cell ran.
        """
        unexplained = self.unexplained or self.unexplained_claims or self.untested
        return not unexplained and not (require_all and self.unfinished)

    @property
    def unfinished(self) -> list[CellVerdict]:
        """Cells that can be run and have no final verdict: not run, or incomplete."""
        states = (Verdict.NOT_RUN, Verdict.INCOMPLETE)
        return [cell for cell in self.verdicts if cell.verdict in states]

    @property
    def judged(self) -> int:
        """The number of cells with a final verdict."""
        return sum(cell.verdict.is_final for cell in self.verdicts)

    @property
    def measured(self) -> int:
        """The number of cells with a measurement, finished or not."""
        return len(self.verdicts) - self.counts[Verdict.NOT_RUN] - self.counts[Verdict.IMPOSSIBLE]


def check_documents(
    documents: Iterable[Document],
    results: Results,
    deviations: Sequence[Deviation],
    margins: Mapping[str, Margin],
    min_splits: int | None = None,
    claim_deviations: Sequence[ClaimDeviation] | None = None,
    questions: Sequence[Question] | None = None,
    held_out: Sequence[Judgement] = (),
) -> CheckReport:
    """Judge every printed cell and claim of `documents`; match deviations with explanations.

    Parameters are those of `dprepro.judge.verdicts.judge_cells`. `claim_deviations` and `questions`
    (the hypotheses that were tested) are by default all of the reviewed files. `held_out` are the
    judgements of `dprepro.judge.forensics.judge_held_out`.
    """
    questions = load_hypotheses() if questions is None else questions
    if claim_deviations is None:
        claim_deviations = load_claim_deviations()
    verdicts: list[CellVerdict] = []
    stale: list[Stale] = []
    whole: list[ColumnVerdict] = []
    claims: list[ClaimVerdict] = []
    notes: list[str] = []
    choices: dict[Place, Choice] = {}
    for document in documents:
        notes += document.notes
        for cell in document.cells():
            if choice := document.choice_of(cell):
                choices[column_of(cell)] = choice
        judged = judge_cells(document, results, margins, min_splits=min_splits)
        whole += columns(document, judged)
        claimed = load_claims().get(document.paper, [])
        asked = dict.fromkeys(c for claim in claimed for c in claim.unprinted(document.paper))
        unprinted = judge_cells(document, results, margins, asked, min_splits)
        claims += judge_claims(document.paper, claimed, judged, margins, unprinted)
        for verdict in judged:
            entries = [d for d in deviations if d.paper == document.paper]
            explained, idle = _explain(verdict, entries)
            verdicts.append(explained)
            stale.extend(idle)
    reasons = {(d.paper, d.claim): d for d in claim_deviations}
    metrics = dict.fromkeys(cell.published.metric for cell in verdicts)
    different = [column for column in whole if column.state is ColumnState.DIFFERENT]
    tested = [column for column in different if any(q.asks_about(*column.place) for q in questions)]
    return CheckReport(
        verdicts,
        {metric: margins[metric] for metric in metrics},
        whole,
        tested,
        [
            column
            for column in different
            if column not in tested and not _explained(column, verdicts)
        ],
        stale,
        [_explain_claim(claim, reasons) for claim in claims],
        [c for c in claims if c.outcome is Outcome.HOLDS and (c.paper, c.claim.name) in reasons],
        notes,
        choices,
        held_out,
    )


def _explained(column: ColumnVerdict, verdicts: Iterable[CellVerdict]) -> bool:
    """Whether a column has cells that differ, and each of them has a reason."""
    deviations = [cell for cell in verdicts if cell.verdict.is_deviation and column.holds(cell)]
    return bool(deviations) and not any(cell.is_unexplained for cell in deviations)


def _explain_claim(
    claim: ClaimVerdict, reasons: Mapping[tuple[str, str], ClaimDeviation]
) -> ClaimVerdict:
    entry = reasons.get((claim.paper, claim.claim.name))
    if entry is None or claim.outcome is not Outcome.FAILS:
        return claim
    return replace(claim, explanation=entry.told, is_unknown=entry.is_unknown)


def _explain(cell: CellVerdict, entries: Sequence[Deviation]) -> tuple[CellVerdict, list[Stale]]:
    stale = []
    for entry in entries:
        if not entry.matches(cell.published):
            continue
        if entry.expected == cell.verdict.value:
            cell = replace(cell, explanation=entry.told, is_unknown=entry.is_unknown)
        elif cell.verdict.is_final:
            stale.append(Stale(cell, entry))
    return cell, stale


@dataclass(frozen=True)
class Again:
    """What `dprepro check --fast` finds of a few tasks that were run again.

    `changed` is what differs from the recorded cells and verdicts, a line a cell; None where none
    are recorded. `stale` is how many entries of the deviations file no longer apply.
    """

    rerun: RerunReport
    changed: Sequence[str] | None
    stale: int

    @property
    def passes(self) -> bool:
        """Whether nothing differs and no entry is stale."""
        return self.rerun.passes and not self.changed and not self.stale


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


def answered(
    report: CheckReport, documents: Sequence[Document]
) -> tuple[CheckReport, list[Document]]:
    """Return the part of a check on documents of which a cell was measured, and these documents.

    It is what `check_documents` returns of them alone.
    """
    papers = {cell.published.paper for cell in report.verdicts if cell.result is not None}
    kept = [document for document in documents if document.paper in papers]

    def is_own(found: PublishedCell | ColumnVerdict | ClaimVerdict) -> bool:
        return found.paper in papers

    part = report.part(is_own, is_own, is_own)
    metrics = {cell.published.metric for cell in part.verdicts}
    part = replace(
        part,
        margins={name: width for name, width in report.margins.items() if name in metrics},
        notes=[note for document in kept for note in document.notes],
        choices={place: one for place, one in report.choices.items() if place[0] in papers},
    )
    return part, kept


def selected(
    report: CheckReport, documents: Iterable[Document], wanted: Selector
) -> tuple[CheckReport, LeftOut | None]:
    """Return the part of a check on some cells, and what this leaves out.

    Of the claims those are left that rest on these cells alone.

    Raises DpreproError if a name is not printed in the documents that were judged.
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
    for option, names in (("dataset", wanted.datasets), ("method", wanted.methods)):
        known = sorted({cell.dataset if option == "dataset" else cell.method for cell in printed})
        for name in names or []:
            if name not in known:
                raise DpreproError(
                    f"--{option}: no printed cell has {name!r}{nearest(name, known) or '.'} "
                    f"Allowed: {in_short(known, MOST_NAMED)}"
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
    metrics = {cell.metric for cell in kept}
    part = replace(
        report.part(is_wanted, lambda column: any(map(column.holds, verdicts)), is_wanted_claim),
        margins={name: width for name, width in report.margins.items() if name in metrics},
        notes=[note for document in documents for note in document.notes_on(kept)],
    )
    left_out = LeftOut(
        len(report.verdicts) - len(verdicts),
        len(report.claims) - len(part.claims),
        len(report.notes) - len(part.notes),
    )
    return part, left_out if left_out != LeftOut(0, 0, 0) else None
