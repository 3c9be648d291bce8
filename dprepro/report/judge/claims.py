"""A verdict on each statement with numbers: from verdicts on cells, or from what is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from dprepro.published.claim import CellClaim, Claim, FactClaim
from dprepro.published.claims import BestInMost, Within
from dprepro.published.published import PublishedCell
from dprepro.report.judge.claim_rules import Means, assess
from dprepro.report.judge.fact_rules import establish, stated
from dprepro.report.judge.finding import Finding
from dprepro.report.judge.verdicts import CellVerdict, Verdict
from dprepro.report.read.metrics import Margin


class Outcome(str, Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    NOT_RUN = "not run"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict on one claim.

    Attributes
    ----------
    measured
        What our results say, as far as they go, or what was computed; None where there are none.
    published
        What the printed cells say that answer to those measured: the fair comparison where
        cells are left out. Where the document prints no cells, what it states.
    whole
        What all printed cells say: whether the document bears out its own sentence. None where it
        prints none.
    missing
        Cells that were not run, or not in full.
    impossible
        Cells left out because nobody outside can run them.
    explanation
        The reviewed reason why the claim does not hold, or None.
    is_unknown
        Whether this reason says that the cause was looked for and not found.
    """

    paper: str
    claim: Claim
    outcome: Outcome
    whole: Finding | None
    published: Finding | None = None
    measured: Finding | None = None
    missing: tuple[PublishedCell, ...] = ()
    impossible: tuple[CellVerdict, ...] = ()
    explanation: str | None = None
    is_unknown: bool = False

    @property
    def words(self) -> str:
        """The outcome in words, with what it rests on."""
        return "holds after rounding" if self.is_rounded else self.outcome.value

    @property
    def is_rounded(self) -> bool:
        """Whether it holds only because a stated bound is rounded."""
        holds = self.outcome is Outcome.HOLDS
        return holds and self.measured is not None and self.measured.is_rounded

    @property
    def is_unexplained(self) -> bool:
        """Whether this claim does not hold, without a reviewed reason."""
        return self.outcome is Outcome.FAILS and self.explanation is None


def judge_claims(
    paper: str,
    claims: Iterable[Claim],
    verdicts: Sequence[CellVerdict],
    margins: Mapping[str, Margin],
    unprinted: Sequence[CellVerdict] = (),
) -> list[ClaimVerdict]:
    """Return a verdict on each claim of a document.

    Parameters
    ----------
    verdicts
        Those on the printed cells of the document.
    unprinted
        Those on the cells of `Claim.unprinted`, as if they were printed.
    """
    return [
        _judge_cells(paper, claim, verdicts, unprinted, margins)
        if isinstance(claim, CellClaim)
        else _judge_fact(paper, claim)
        for claim in claims
    ]


def _judge_fact(paper: str, claim: Claim) -> ClaimVerdict:
    if not isinstance(claim, FactClaim):
        raise TypeError(f"no rule for claims of the kind {type(claim).__name__}")
    found = establish(claim)
    outcome = Outcome.HOLDS if found.holds else Outcome.FAILS
    return ClaimVerdict(paper, claim, outcome, whole=None, published=stated(claim), measured=found)


def _judge_cells(
    paper: str,
    claim: CellClaim,
    verdicts: Sequence[CellVerdict],
    unprinted: Sequence[CellVerdict],
    margins: Mapping[str, Margin],
) -> ClaimVerdict:
    wanted = {*claim.cells([v.published for v in verdicts]), *claim.unprinted(paper)}
    cells = [v for v in (*verdicts, *unprinted) if v.published in wanted]
    possible = [v for v in cells if v.verdict is not Verdict.IMPOSSIBLE]
    # Methods are compared on the same splits, also where a cell has more.
    measured = {
        v.published: v.result.as_printed.mean(v.published.metric)
        for v in possible
        if v.verdict.is_final and v.result is not None and v.measured is not None
    }
    missing = tuple(v.published for v in possible if v.published not in measured)
    is_whole = len(measured) == len(cells)
    everything = Means({v.published: v.published.mean for v in cells}, True)
    same = Means({cell: cell.mean for cell in measured}, is_whole)
    errors = {v.published: _standard_error(v) for v in possible}
    ours = assess(claim, Means(measured, is_whole, errors), same, margins)
    is_printed = not isinstance(claim, Within | BestInMost)
    return ClaimVerdict(
        paper,
        claim,
        _outcome(ours, bool(possible), bool(missing)),
        whole=assess(claim, everything, everything, margins) if is_printed else None,
        published=(
            Finding(True, {}, claim.range)
            if isinstance(claim, Within | BestInMost)
            else assess(claim, same, same, margins)
        ),
        measured=ours,
        missing=missing,
        impossible=tuple(v for v in cells if v.verdict is Verdict.IMPOSSIBLE),
    )


def _standard_error(verdict: CellVerdict) -> float:
    """Return that of a measured mean; 0 where it is not known."""
    metric = verdict.published.metric
    result = verdict.result.as_printed if verdict.result else None
    sd = result.sd(metric) if result is not None and result.splits(metric) > 1 else None
    return sd / math.sqrt(result.splits(metric)) if result is not None and sd else 0.0


def _outcome(measured: Finding | None, is_possible: bool, is_missing: bool) -> Outcome:
    if not is_possible:
        return Outcome.IMPOSSIBLE
    if measured is None or is_missing:
        return Outcome.NOT_RUN
    return Outcome.HOLDS if measured.holds else Outcome.FAILS
