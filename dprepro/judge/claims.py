"""Claims, the sentences of a document with numbers (``claims.yaml``), and a verdict on each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from pydantic import Field

from dprepro.judge.claim_kinds import (
    AheadInMost,
    Average,
    BestInAll,
    BestInMost,
    CellClaim,
    Claim,
    Computed,
    FactClaim,
    Finding,
    LossAtMost,
    Means,
    NoticeableUpTo,
    Repeats,
    Settings,
    Within,
)
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.papers.document import Document, load_documents, read_document
from dprepro.papers.folders import FOLDER, LAYOUT, files_of
from dprepro.papers.published_cell import PublishedCell, load_published
from dprepro.papers.schema import Printed, Strict
from dprepro.results.margins import Margin
from dprepro.runtime.errors import Faults
from dprepro.runtime.files import is_file
from dprepro.runtime.yaml_files import read_with_source


class Claims(Strict):
    """The claims of one document, by kind."""

    paper: str
    averages: list[Average] = Field(default_factory=list)
    losses: list[LossAtMost] = Field(default_factory=list)
    best: list[BestInAll] = Field(default_factory=list)
    noticeable: list[NoticeableUpTo] = Field(default_factory=list)
    ahead: list[AheadInMost] = Field(default_factory=list)
    within: list[Within] = Field(default_factory=list)
    most: list[BestInMost] = Field(default_factory=list)
    computed: list[Computed] = Field(default_factory=list)
    settings: list[Settings] = Field(default_factory=list)
    repeats: list[Repeats] = Field(default_factory=list)

    def by_place(self) -> Iterator[tuple[str, int, Claim]]:
        """Yield the claims of all kinds, each after its kind and its number in the list of it."""
        for kind, claims in list(self)[1:]:  # the first field is the paper
            for number, claim in enumerate(claims):
                yield kind, number, claim

    def all(self) -> list[Claim]:
        """Return the claims of all kinds."""
        return [claim for _, _, claim in self.by_place()]


def load_claims(folder: Path = FOLDER) -> dict[str, list[Claim]]:
    """Return the claims of each document that has a file of them.

    Raises DpreproError if a file is malformed, gives a name twice, or names cells that are not
    printed, or have no place in the layout.
    """
    paths = files_of("claims.yaml", folder=folder)
    found = (_read(path, path.stat().st_mtime_ns) for path in paths)
    return {claims.paper: claims.all() for claims in found}


@cache
def _read(path: Path, changed: int) -> Claims:
    folder, layout = path.parent, None
    if folder.parent == FOLDER:  # read before, as all commands with claims show documents
        layout = load_documents().get(folder.name)
    elif is_file(folder / LAYOUT):
        layout = read_document(folder)
    return read_claims(path, layout=layout)


def read_claims(
    path: Path, printed: Printed = load_published, layout: Document | None = None
) -> Claims:
    """Return the claims of a file.

    Raises DpreproError as `load_claims`, with all faults; `printed` gives the cells of a paper, and
    `layout` the places of cells that a claim names and the paper does not print.
    """
    source, found = read_with_source(path, Claims)
    faults, lines = Faults(), dict[str, str]()
    cells = printed(found.paper)
    for kind, number, claim in found.by_place():
        where = f"{source.where(kind, number)}: claim {claim.name}"
        if lines.setdefault(claim.name, where) != where:
            faults.append(f"{where}: two claims are called {claim.name!r}; rename one")
        for selector in claim.selectors():
            with faults.noted():
                selector.require_printed(cells, where)
        if layout is not None:
            for cell in claim.unprinted(found.paper):
                with faults.noted():
                    layout.require_place(cell, where)
    faults.require_none()
    return found


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
        What all printed cells say: whether the document bears out its own sentence, if it has any.
    missing, impossible
        Cells not run in full, and cells that nobody outside can run.
    explanation, is_unknown
        The reviewed reason why the claim does not hold, and whether it is that no cause was found.
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
        ways = [" within noise"] * self.is_noisy + [" after rounding"] * self.is_rounded
        return f"{self.outcome.value}{','.join(ways)}"

    @property
    def is_rounded(self) -> bool:
        """Whether it holds only because a stated bound is rounded."""
        holds = self.outcome is Outcome.HOLDS
        return holds and self.measured is not None and self.measured.is_rounded

    @property
    def is_noisy(self) -> bool:
        """Whether it holds only because the sampling error of the means is allowed for."""
        holds = self.outcome is Outcome.HOLDS
        return holds and self.measured is not None and self.measured.is_noisy

    @property
    def is_unexplained(self) -> bool:
        """Whether this claim does not hold, without a reviewed reason."""
        return self.outcome is Outcome.FAILS and self.explanation is None

    @property
    def notes(self) -> list[str]:
        """Sentences on what is missing, left out, or not as the document has it."""
        lines = []
        if self.missing:
            places = Counter(cell.dataset for cell in self.missing)
            datasets = ", ".join(f"{dataset} {count}" for dataset, count in places.items())
            lines.append(f"Cells missing: {datasets}.")
        for reason, count in Counter(cell.note for cell in self.impossible).items():
            lines.append(f"{count} cells left out: {reason}.")
        if self.whole is not None and not self.whole.holds:
            lines.append(f"The printed cells themselves contradict it: {self.whole.text}.")
        if self.claim.note:
            lines.append(self.claim.note)
        if self.explanation:
            what = "Reviewed, cause unknown" if self.is_unknown else "Explained"
            lines.append(f"{what}: {self.explanation}")
        return lines


def judge_claims(
    paper: str,
    claims: Iterable[Claim],
    verdicts: Sequence[CellVerdict],
    margins: Mapping[str, Margin],
    unprinted: Sequence[CellVerdict] = (),
) -> list[ClaimVerdict]:
    """Return a verdict on each claim of a document.

    `verdicts` are those on its printed cells, `unprinted` those on the cells of `Claim.unprinted`.
    """
    return [
        _judge_cells(paper, claim, verdicts, unprinted, margins)
        if isinstance(claim, CellClaim)
        else _judge_fact(paper, claim)
        for claim in claims
    ]


def _judge_fact(paper: str, claim: Claim) -> ClaimVerdict:
    assert isinstance(claim, FactClaim)
    found = claim.establish()
    outcome = Outcome.HOLDS if found.holds else Outcome.FAILS
    words = ", ".join(f"{name} {value}" for name, value in claim.stated().items())
    stated = Finding(True, {}, words)
    return ClaimVerdict(paper, claim, outcome, whole=None, published=stated, measured=found)


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
    errors = {v.published: _standard_error(v) for v in possible}
    ours = claim.assess(Means(measured, is_whole, margins, errors))
    if claim.range:
        published: Finding | None = Finding(True, {}, claim.range)
        whole = None
    else:
        whole = claim.assess(Means({v.published: v.published.mean for v in cells}, True, margins))
        published = claim.assess(Means({c: c.mean for c in measured}, is_whole, margins))
    return ClaimVerdict(
        paper,
        claim,
        _outcome(ours, bool(possible), bool(missing)),
        whole=whole,
        published=published,
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
