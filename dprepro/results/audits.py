"""What others wrote, checked: audits (`dprepro audit --output`), and the ledgers of records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dprepro.experiment.packed import RecordTable
from dprepro.experiment.record import Record
from dprepro.privacy.guarantee_status import AuditVerdict, AuthorsWord, is_unverified
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import MEBIBYTE, read_bytes
from dprepro.runtime.text import shell, shortened

PATTERN = "audit*.json"
_MOST_BYTES = MEBIBYTE
"""Forty times what `dprepro audit` writes of all that there is to audit."""
_LIST = TypeAdapter(list[Any])
_LONGEST_VALUE = 60

# Strict: a text, true or false is no number.
_Epsilon = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
_Delta = Annotated[float, Field(strict=True, ge=0, le=1)]


class Audit(BaseModel):
    """One audited method or mechanism; fields as in `dprepro.audit.result.AuditResult`.

    `spent_epsilon`, which the files call ``ledger_epsilon``, and `lower_bound` are None where
    infinite. An audit by many runs has `trials`, and a `ceiling` where one is known; one by a
    single run has `guesses`, of which `correct` were right. One of a method of one's own has the
    `code`, see `dprepro.privacy.ledger.Ledger.code`. Older records lack the `method_version`.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    subject: str
    task: str | None
    neighbours: str
    adjacency: str
    epsilon: float
    delta: float
    spent_epsilon: float | None = Field(validation_alias="ledger_epsilon")
    lower_bound: float | None
    confidence: float
    bound: str
    verdict: AuditVerdict
    gaps: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    trials: int | None = None
    guesses: int | None = None
    correct: int | None = None
    curve_bound: float | None = None
    independent_bound: float | None = None
    ceiling: float | None = None
    date: str | None = None
    dprepro: str | None = None
    code: str | None = None
    method_version: int | None = None

    @property
    def method(self) -> str:
        """The method, or mechanism, that `subject` is a case of."""
        return self.subject.partition("/")[0]


def read_audits(folder: Path) -> list[Audit]:
    """Return the audits in `folder` (files ``audit*.json``), in order of file names; maybe none.

    Raises DpreproError if a file cannot be read, or is not what `dprepro audit --output` writes.
    """
    return [audit for path in sorted(folder.glob(PATTERN)) for audit in _read(path)]


class WordsOf:
    """What the audits in a folder say of the code of one's own methods, read when first asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _verdicts(self) -> Mapping[tuple[str, str | None], list[AuditVerdict]]:
        found: dict[tuple[str, str | None], list[AuditVerdict]] = {}
        for audit in read_audits(self._folder):
            found.setdefault((audit.method, audit.code), []).append(audit.verdict)
        return found

    def of(self, method: str, code: object) -> AuthorsWord | None:
        """Return what is known of a method of this code; None without one, as ours are."""
        if not isinstance(code, str) or not code:
            return None
        return AuthorsWord.after(self._verdicts.get((method, code), ()))


def _read(path: Path) -> list[Audit]:
    found: list[Audit] = []
    position: tuple[int, ...] = ()
    try:
        for number, values in enumerate(_LIST.validate_json(read_bytes(path, _MOST_BYTES))):
            # One at a time: to collect all that is wrong with a long list takes gigabytes.
            position = (number,)
            found.append(Audit.model_validate(values))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, (*position, *problem["loc"]))) or "the file"
        raise DpreproError(
            f"{path}: {place}: {problem['msg']}; `dprepro audit --output {shell(path)}` writes "
            "such a file"
        ) from error
    return found


class LedgerSummary(BaseModel):
    """What a record keeps of a ledger; see `dprepro.privacy.ledger.Ledger.summary`.

    An epsilon is None where it is infinite, `floating_point` where it was not recorded. Files call
    `spent_epsilon` ``true_epsilon``, and `unaccounted` ``unpaid``.
    """

    model_config = ConfigDict(frozen=True)

    epsilon: _Epsilon | None = None
    delta: _Delta = 0.0
    adjacency: str = ""
    spent_epsilon: _Epsilon | None = Field(None, validation_alias="true_epsilon")
    replace_one_epsilon: _Epsilon | None = None
    unaccounted: tuple[str, ...] = Field((), validation_alias="unpaid")
    gaps: tuple[str, ...] = ()
    floating_point: tuple[str, ...] | None = None
    releases: tuple[Mapping[str, Any], ...] = ()
    code: str = ""


def kept_ledger(record: Record) -> LedgerSummary | None:
    """Return what a record keeps of its ledger; None where it keeps none, or one of no answer.

    Raises DpreproError if the ledger is malformed.
    """
    if record.ledger is None or record.is_unverified:
        return None
    try:
        return LedgerSummary.model_validate(record.ledger)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        given = shortened(repr(problem["input"]), _LONGEST_VALUE)
        raise DpreproError(
            f"the record {record.task.key} ({record.task.dataset}, {record.task.label}) has a "
            f"malformed ledger: {place}: {problem['msg']}, and it is {given}; take its line out of "
            "the journal, or run it again with --fresh"
        ) from error


def kept_ledger_of(table: RecordTable, row: int) -> LedgerSummary | None:
    """Return the same of a finished record of a table. Raises DpreproError as `kept_ledger`."""
    ledger = table.ledger_of(row)
    if ledger is None or is_unverified(table.tasks[table.task[row]].epsilon, ledger):
        return None
    try:
        return LedgerSummary.model_validate(ledger)
    except ValidationError:
        return kept_ledger(next(table.records([row])))
