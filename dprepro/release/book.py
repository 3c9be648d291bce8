"""The budget book: what was released of each dataset on this machine, kept before it is released.

It lies beside the register of private data and is as private: it tells which files were released
when, and its tokens lead, with the register, to digests of the rows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from dprepro.additive.record import ledger_from_json, ledger_to_json
from dprepro.data.card_parts import BudgetLimit
from dprepro.data.register import STATE_VARIABLE, state_folder, write_own
from dprepro.errors import DpreproError
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import TOLERANCE, Ledger
from dprepro.release.composing import Total, total_of

_FILE = "budget-book.json"
_LOCK_SECONDS = 30.0
_NOTE = (
    "What `dprepro release` has released of each dataset on this machine. It is private: never "
    "release it. Without it dprepro forgets what was spent: keep a copy."
)

Status = Literal["reserved", "released", "cancelled"]


class Entry(BaseModel):
    """One release.

    Attributes
    ----------
    name, date
        A random name, and the day it was reserved.
    dataset, card
        The name of the card, and its path; of a built-in card only the name.
    rows
        Tokens of the rows' files and values; see `dprepro.release.rows`.
    ledger
        As `ledger_to_json` gives it: planned while it is reserved, then that of the fit.
    limit
        What the card allowed then.
    status
        "reserved" until the folder is written: it counts, since its noise may have been drawn.
        "cancelled" if it failed before any noise was drawn: it does not count.
    folder, model_sha256
        Of the release; empty until it is released.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    date: str
    dataset: str
    card: str
    rows: list[str]
    method: str
    ledger: dict[str, JsonValue]
    limit: BudgetLimit | None = None
    status: Status = "reserved"
    folder: str = ""
    model_sha256: str = ""

    @property
    def counts(self) -> bool:
        """Whether it has spent, or may have spent, what its ledger says."""
        return self.status != "cancelled"

    @property
    def spent(self) -> Ledger:
        """Its ledger."""
        return ledger_from_json(dict(self.ledger))


class Book(BaseModel):
    """All releases, in order."""

    model_config = ConfigDict(extra="forbid")

    note: str = _NOTE
    version: Literal[1] = 1
    entries: Annotated[list[Entry], Field(default_factory=list)]

    def of(self, card: str, rows: Sequence[str]) -> list[Entry]:
        """Return the releases of the same dataset: of the same card, or of the same rows.

        Releases that share a card or rows with one of them are of the same dataset, too.
        """
        cards, tokens, found = {card}, set(rows), set[str]()
        while True:
            more = [
                e
                for e in self.entries
                if e.name not in found and (e.card in cards or not tokens.isdisjoint(e.rows))
            ]
            if not more:
                return [e for e in self.entries if e.name in found]
            for entry in more:
                found.add(entry.name)
                cards.add(entry.card)
                tokens.update(entry.rows)

    def accounts(self) -> list[list[Entry]]:
        """Return all releases, those of each dataset together."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            same = self.of(entry.card, entry.rows)
            found.setdefault(same[0].name, same)
        return list(found.values())


def book_path() -> Path:
    """Return the path of the book, in the folder of private state."""
    return state_folder() / _FILE


def read_book() -> Book:
    """Return the book as it is now; empty if nothing was released yet. Raises DpreproError."""
    with _in_use(book_path()):
        return _read(book_path())


def total_spent(entries: Sequence[Entry], unit: str) -> Total | None:
    """Return what the releases of one dataset that count spend together; None without any.

    It is stated at the delta of the latest limit, if there is one; see `total_of`.
    """
    ledgers = [entry.spent for entry in entries if entry.counts]
    limit = entries[-1].limit if entries else None
    delta = None if limit is None else limit.delta
    return total_of(ledgers, unit, delta) if ledgers else None


def look_ahead(entry: Entry, ledger: Ledger) -> tuple[Total, list[Entry]]:
    """Return what `reserve` would, and the earlier releases that count, without entering anything.

    Raises
    ------
    DpreproError
        As `reserve`.
    """
    return _allowed(read_book(), entry, ledger)


def reserve(entry: Entry, ledger: Ledger) -> Total:
    """Enter a release before its noise is drawn, and return what its dataset then has spent.

    The total is at the delta of the card's limit, or at the sum of all deltas.

    When this returns, the entry is on the disk: no crash can make it forgotten. The book is locked
    meanwhile, so of two releases that would exceed a limit together only one is entered.

    Parameters
    ----------
    entry
        Without its ledger.
    ledger
        What the release is going to spend.

    Raises
    ------
    DpreproError
        If a limit would be exceeded, or if the book cannot be used. Then nothing is entered.
    """
    path = book_path()
    entry = entry.model_copy(update={"ledger": ledger_to_json(ledger)})
    with _in_use(path):
        book = _read(path)
        total, _ = _allowed(book, entry, ledger)
        book.entries.append(entry)
        _write(path, book)
    return total


def settle(name: str, status: Status, **found: object) -> None:
    """Say what became of a reserved release; `found` are further fields of its `Entry`.

    Raises
    ------
    DpreproError
        If the book cannot be used. The release then stays reserved, and counts.
    """
    path = book_path()
    with _in_use(path):
        book = _read(path)
        book.entries = [
            e.model_copy(update={"status": status, **found}) if e.name == name else e
            for e in book.entries
        ]
        _write(path, book)


def new_name() -> str:
    """Return a random name for a release."""
    return secrets.token_hex(8)


def _allowed(book: Book, entry: Entry, ledger: Ledger) -> tuple[Total, list[Entry]]:
    earlier = [e for e in book.of(entry.card, entry.rows) if e.counts]
    ledgers = [*(e.spent for e in earlier), ledger]
    for limit, of in _limits(entry, earlier):
        _require(limit, of, ledgers, ledger.unit, bool(earlier))
    delta = None if entry.limit is None else entry.limit.delta
    return total_of(ledgers, ledger.unit, delta), earlier


def _limits(entry: Entry, earlier: Sequence[Entry]) -> Iterator[tuple[BudgetLimit, str]]:
    """Yield each limit that holds, and whose it is: the latest of every card of the dataset.

    A card may change its own limit, but another card of the same rows does not lift it.
    """
    limits = {e.card: (e.limit, e.dataset) for e in [*earlier, entry]}
    for limit, dataset in limits.values():
        if limit is not None:
            yield limit, dataset


def _require(
    limit: BudgetLimit, of: str, ledgers: Sequence[Ledger], unit: str, has_earlier: bool
) -> None:
    total = total_of(ledgers, unit, limit.delta)
    if total.budget.epsilon <= limit.epsilon + TOLERANCE:
        return
    allowed = f"the card of {of} allows {PrivacyBudget(limit.epsilon, limit.delta)} in all"
    if not total.budget.is_finite:
        reason = (
            f"at delta {limit.delta:g} nothing bounds what the releases spend together for each "
            f"{unit}"
        )
    else:
        whole = "with all earlier releases of these rows" if has_earlier else "this release alone"
        reason = f"{whole}, epsilon {total.budget.epsilon:.4g} would be spent ({total.adjacency})"
    raise DpreproError(
        f"beyond the budget: {allowed}, and {reason}. Nothing was drawn and nothing was written. "
        "Choose a smaller --epsilon; `dprepro budget` lists what was released. Only the owner of "
        "the data can raise `budget_limit` on the card"
    )


@contextmanager
def _in_use(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=_LOCK_SECONDS, mode=0o600):
            yield
    except (OSError, Timeout) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DpreproError(
            f"cannot use the budget book, {path}: {reason}. Nothing is released without it: make "
            f"its folder writable, or set {STATE_VARIABLE} to the folder where it is kept"
        ) from error


def _read(path: Path) -> Book:
    if not path.exists():
        return Book(entries=[])
    path.chmod(0o600)
    try:
        book = Book.model_validate_json(path.read_bytes())
        for entry in book.entries:
            entry.spent  # noqa: B018 - a ledger that cannot be read is found here
    except (ValidationError, ValueError) as error:
        raise DpreproError(
            f"the budget book, {path}, is damaged, so nobody can say what was spent. Put back a "
            "copy of it. Nothing is released until then"
        ) from error
    return book


def _write(path: Path, book: Book) -> None:
    write_own(path, json.dumps(book.model_dump(mode="json"), indent=1) + "\n")
