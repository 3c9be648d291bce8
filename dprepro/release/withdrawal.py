"""A release that is taken back: marked in the budget book and in its folder, and found by verify.

Nothing that was published can be called back, so its budget stays spent.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from dprepro.additive.file import MAX_BYTES
from dprepro.release import budget_book
from dprepro.release.budget_book import Entry, Withdrawal
from dprepro.release.folder import MODEL, read_text
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import read_bytes, replacing
from dprepro.runtime.text import json_text, one_line

FILE = "withdrawn.json"
"""What a withdrawn release has beside its model."""

_LONGEST = 500


class _Mark(BaseModel):
    """The file: of which model it is, when and why it was withdrawn, and what that means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["dprepro withdrawal"] = "dprepro withdrawal"
    model_sha256: str
    withdrawal: Withdrawal
    note: str = (
        "The publisher has taken this release back: do not use it. Its privacy budget stays spent, "
        "since what was published cannot be called back."
    )


def withdraw_folder(folder: Path, reason: str) -> tuple[Entry, str]:
    """Withdraw the release in a folder, and return its entry in the book.

    With it comes why the folder has no mark; empty if it has one. A folder that is gone is known
    by the path that it had.

    Raises
    ------
    DpreproError
        If the reason is empty or above 500 characters, the folder has no model, or the book does
        not have the release as one that can be withdrawn. Nothing is changed then.
    """
    reason = one_line(reason)
    if not 0 < len(reason) <= _LONGEST:
        raise DpreproError(
            f"--reason has {len(reason)} characters, and 1 to {_LONGEST} are allowed: say in a "
            "sentence why the release is withdrawn. Nothing is changed"
        )
    why = Withdrawal(date=datetime.now(timezone.utc).date().isoformat(), reason=reason)
    sha256 = _sha256(folder) if folder.is_dir() else ""
    place = str(folder.resolve())
    entry = budget_book.withdraw(
        lambda e: e.model_sha256 == sha256 if sha256 else e.folder == place, why
    )
    if entry is None:
        raise DpreproError(
            f"the budget book of this machine has no finished release of {folder}: withdraw it on "
            "the machine that released it. `dprepro budget` lists what was released here. Nothing "
            "is changed"
        )
    if not sha256:
        return entry, f"{folder} is gone, so the book alone says so"
    mark = _Mark(model_sha256=sha256, withdrawal=why).model_dump(mode="json")
    try:
        with replacing(folder / FILE) as unfinished:
            unfinished.write_text(json_text(mark) + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        why_not = error.strerror or str(error)
        return entry, f"{folder / FILE} cannot be written ({why_not}), so the book alone says so"
    return entry, ""


def found_withdrawn(folder: Path) -> Withdrawal | None:
    """Return that the release in a folder was withdrawn, by the folder or this machine's book.

    Raises
    ------
    DpreproError
        If the folder has no model, or if its mark or the book cannot be read.
    """
    sha256, path = _sha256(folder), folder / FILE
    if not path.exists():
        return budget_book.withdrawal_of(sha256)
    try:
        mark = _Mark.model_validate_json(read_text(path))
    except ValueError as error:
        raise DpreproError(f"{path}: not what `dprepro withdraw` writes") from error
    if mark.model_sha256 != sha256:
        raise DpreproError(f"{path} is about another model: its SHA-256 is not that of {MODEL}")
    return mark.withdrawal


def _sha256(folder: Path) -> str:
    return hashlib.sha256(read_bytes(folder / MODEL, MAX_BYTES)).hexdigest()
