"""What a record keeps of a ledger, checked: a plug-in writes it as it likes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dprepro.errors import DpreproError
from dprepro.experiment.record import Record
from dprepro.experiment.record_table import RecordTable
from dprepro.privacy.unverified import is_unverified
from dprepro.text import shortened

_LONGEST_VALUE = 60

# Strict: a text, true or false is no number.
_Epsilon = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
_Delta = Annotated[float, Field(strict=True, ge=0, le=1)]


class LedgerSummary(BaseModel):
    """What a record keeps of a ledger; see `dprepro.privacy.ledger.Ledger.summary`.

    An epsilon is None where it is infinite, `floating_point` where it was not recorded. Files call
    `spent_epsilon` ``true_epsilon``.
    """

    model_config = ConfigDict(frozen=True)

    epsilon: _Epsilon | None = None
    delta: _Delta = 0.0
    adjacency: str = ""
    spent_epsilon: _Epsilon | None = Field(None, validation_alias="true_epsilon")
    replace_one_epsilon: _Epsilon | None = None
    unpaid: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    floating_point: tuple[str, ...] | None = None
    releases: tuple[Mapping[str, Any], ...] = ()
    code: str = ""


def kept_ledger(record: Record) -> LedgerSummary | None:
    """Return what a record keeps of its ledger; None where it keeps none, or one of no release.

    Raises
    ------
    DpreproError
        If the ledger is malformed.
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
