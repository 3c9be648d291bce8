"""Deviations from the printed numbers: a reviewed list with reasons, or with what was tried."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from dprepro.errors import DpreproError, nearest
from dprepro.published.claims import load_claims
from dprepro.published.published import FOLDER, load_published
from dprepro.published.schema import Names, Numbers, Selector, Strict
from dprepro.yaml_model import read_model

DEVIATIONS_FILE = FOLDER / "deviations.yaml"


class Reviewed(Strict):
    """What was found out about a deviation.

    `cause` is left out where `reason` explains it, and "unknown" where none was found;
    `reason` then says what was tried.
    """

    reason: str = Field(min_length=1)
    cause: Literal["unknown"] | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the cause was looked for and not found."""
        return self.cause == "unknown"


class Deviation(Selector, Reviewed):
    """Cells that are known to differ from print, and why.

    `expected` is their verdict. Of an inconclusive cell other evidence shows the difference: a
    known difference of settings, or a sharper test. Tables, datasets, methods and epsilons must all
    be named, so that an entry explains no more than its reviewer saw. `metrics` is for tables that
    print several.
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


class _File(Strict):
    deviations: list[Deviation]
    claims: list[ClaimDeviation] = Field(default_factory=list)


def load_deviations(path: Path = DEVIATIONS_FILE) -> list[Deviation]:
    """Return the explained deviations in file order.

    Raises
    ------
    DpreproError
        If the file is malformed, or an entry names something that is not printed.
    """
    deviations = read_model(path, _File).deviations
    for number, entry in enumerate(deviations, start=1):
        entry.require_printed(load_published(entry.paper), f"{path}: deviation {number}")
    return deviations


def load_claim_deviations(path: Path = DEVIATIONS_FILE) -> list[ClaimDeviation]:
    """Return the explained claims that do not hold, in file order.

    Raises
    ------
    DpreproError
        If the file is malformed, or an entry names a claim that does not exist.
    """
    entries = read_model(path, _File).claims
    for number, entry in enumerate(entries, start=1):
        names = [claim.name for claim in load_claims().get(entry.paper, [])]
        if entry.claim not in names:
            raise DpreproError(
                f"{path}: claim {number}: {entry.paper} has no claim {entry.claim!r}"
                f"{nearest(entry.claim, names) or '.'} Allowed: {', '.join(names) or 'none'}"
            )
    return entries
