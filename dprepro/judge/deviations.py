"""Deviations from the printed numbers: a reviewed list with reasons, or with what was tried."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from dprepro.judge.claims import load_claims
from dprepro.papers.folders import FOLDER, files_of
from dprepro.papers.published_cell import load_published
from dprepro.papers.schema import Names, Numbers, Printed, Selector, Strict
from dprepro.runtime.errors import DpreproError, Faults, nearest, require_known
from dprepro.runtime.files import builtin, checkout
from dprepro.runtime.yaml_files import read_with_source


class Evidence(Strict):
    """A place where what a reason says can be looked up, and what it `shows`.

    The place is the recorded `results` of a built-in config, a `test` (``tests/FILE.py::NAME`` or
    ``tests/FILE.py``), or a `file`: a page, a benchmark or the output of one, by its path in the
    repository.
    """

    results: str | None = None
    test: str | None = None
    file: str | None = None
    shows: str = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Evidence:
        if sum(place is not None for place in (self.results, self.test, self.file)) != 1:
            raise ValueError("give one of `results`, `test` and `file`, and `shows`")
        return self

    def __str__(self) -> str:
        place = f"results of {self.results}" if self.results else self.test or self.file
        return f"{place} ({self.shows})"

    def require(self, path: Path, where: str) -> None:
        """Raise DpreproError unless the place exists; `path` is the file of the entry.

        Tests and files are looked for in the checkout, and beside a file of the user's own. A wheel
        has those of our entries no more.
        """
        if self.results is not None:
            configs, results = builtin("configs"), builtin("results")
            config, journal = configs / f"{self.results}.yaml", results / f"{self.results}.parquet"
            if not (config.is_file() and journal.is_file()):
                known = {path.stem for path in results.glob("*.parquet")}
                raise DpreproError(
                    f"{where}: evidence: no recorded results of a built-in config "
                    f"{self.results!r}{nearest(self.results, sorted(known)) or '.'} "
                    "Allowed: configs with a journal in results/"
                )
            return
        place, folders = str(self.test or self.file), [checkout()]
        if FOLDER not in path.parents:
            folders.append(path.parent)
        elif folders == [None]:
            return
        file, _, name = place.partition("::")
        texts = [(f / file).read_text("utf8") for f in folders if f and (f / file).is_file()]
        if not any(not name or f"def {name}(" in text for text in texts):
            raise DpreproError(
                f"{where}: evidence: there is no {place!r}. Allowed: a path in the "
                "repository or beside this file, and for a test also ::NAME"
            )


class Reviewed(Strict):
    """What was found out about a deviation.

    `cause` is left out where `reason` explains it, and "unknown" where none was found;
    `reason` then says what was tried. `evidence` says where both can be looked up.
    """

    reason: str = Field(min_length=1)
    cause: Literal["unknown"] | None = None
    evidence: list[Evidence] = Field(min_length=1)

    @property
    def told(self) -> str:
        """The reason, and where its evidence lies."""
        return f"{self.reason} Evidence: {'; '.join(map(str, self.evidence))}."

    @property
    def is_unknown(self) -> bool:
        """Whether the cause was looked for and not found."""
        return self.cause == "unknown"


class Deviation(Selector, Reviewed):
    """Cells that are known to differ from print, and why.

    `expected` is their verdict. Of an inconclusive cell other evidence shows the difference: a
    known difference of settings, or a sharper test. All coordinates must be named, so that an entry
    explains no more than its reviewer saw; `metrics` is for tables that print several.
    """

    paper: str
    tables: Names
    datasets: Names
    methods: Names
    epsilons: Numbers
    expected: Literal["better", "worse", "inconclusive"]


class ClaimDeviation(Reviewed):
    """A claim that is known not to hold, and why."""

    paper: str
    claim: str


class Deviations(Strict):
    """The explained cells and claims of a file."""

    deviations: list[Deviation] = Field(default_factory=list)
    claims: list[ClaimDeviation] = Field(default_factory=list)


def load_reviewed(path: Path | None = None) -> Deviations:
    """Return what the files of all papers explain, or a user's file, in file order.

    Raises DpreproError as `read_deviations`.
    """
    found = [read_deviations(file) for file in files_of("deviations.yaml", path)]
    return Deviations(
        deviations=[entry for file in found for entry in file.deviations],
        claims=[entry for file in found for entry in file.claims],
    )


def load_deviations(path: Path | None = None) -> list[Deviation]:
    """Return the explained deviations of `load_reviewed`."""
    return load_reviewed(path).deviations


def load_claim_deviations(path: Path | None = None) -> list[ClaimDeviation]:
    """Return the explained claims that do not hold of `load_reviewed`."""
    return load_reviewed(path).claims


def read_deviations(path: Path, printed: Printed = load_published) -> Deviations:
    """Return what a file explains; `printed` gives the cells of a paper.

    Raises DpreproError, with all faults, if the file is malformed, or an entry names cells that are
    not printed, or a claim or evidence that does not exist.
    """
    source, found = read_with_source(path, Deviations)
    faults = Faults()
    for number, entry in enumerate(found.deviations):
        where = f"{source.where('deviations', number)}: deviation {number + 1}"
        with faults.noted():
            entry.require_printed(printed(entry.paper), where)
        _note_evidence(entry, path, where, faults)
    for number, claim in enumerate(found.claims):
        where = f"{source.where('claims', number)}: claim {number + 1}"
        with faults.noted():
            names = [known.name for known in load_claims().get(claim.paper, [])]
            require_known(claim.claim, names, f"{where}: {claim.paper} has no claim", "")
        _note_evidence(claim, path, where, faults)
    faults.require_none()
    return found


def _note_evidence(entry: Reviewed, path: Path, where: str, faults: Faults) -> None:
    for evidence in entry.evidence:
        with faults.noted():
            evidence.require(path, where)
