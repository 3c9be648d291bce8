"""The budget book: what was released of each dataset, what that adds up to, and its limits.

An entry is written before anything is released. The book lies beside the register of private data
and is as private: it tells which files were released when, and its tokens and sketches lead, with
the register, to digests of the rows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from dprepro.additive.record import ledger_from_json, ledger_to_json
from dprepro.data.card import load_card
from dprepro.data.card_parts import BudgetLimit
from dprepro.data.register import (
    MOST_BYTES,
    STATE_VARIABLE,
    in_use,
    register_id,
    register_path,
    state_folder,
    write_own,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import ROW, Ledger, slack
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.guarantee_words import mixed_in_words
from dprepro.release.joint_budget import Total, total_of
from dprepro.release.population_overlap import Rows, Sketch
from dprepro.release.rows import of_rows, of_units
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import read_bytes

_FILE = "budget-book.json"
_VERSION: Final = 4
_READ = (2, 3, _VERSION)
_MOST_SETS = 1000
"""Sets of releases that one person can be in. Of more, all releases are added up, which is safe."""

_USE = (
    "the budget book",
    "Nothing is released without it: make its folder writable, or set "
    f"{STATE_VARIABLE} to the folder where it is kept",
)
_NOTE = (
    "What `dprepro release` has released of each dataset on this machine. It is private: never "
    "release it. Without it dprepro forgets what was spent: keep a copy of it and of the "
    "register of private data beside it."
)


class Withdrawal(BaseModel):
    """That a release was taken back: on which day, and why, in the owner's words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    date: str
    reason: str


class Entry(BaseModel):
    """One release.

    Attributes
    ----------
    name, date
        A random name, and the day it was reserved.
    dataset, card
        The name of the card, and its path; of a built-in card only the name.
    rows
        Tokens of the rows' files and values, and of the units; see `dprepro.release.rows`.
    ledger
        As `ledger_to_json` gives it: planned while it is reserved, then that of the fit.
    limit
        What the card allowed then, for each unit of the ledger: the card decides both.
    status
        "reserved" until the folder is written: it counts, since its noise may have been drawn.
        "cancelled" if it failed before any noise was drawn: it does not count.
    folder, model_sha256
        Of the release; empty until it is released.
    counts_for_all
        Whether it counts against every dataset, as nobody can say any longer which rows it had.
    sketch
        By which later tables are compared with its rows. None in books of version 2, and where an
        earlier release of the very same rows has it.
    like
        Names of earlier releases with rows like these, and why; see `Likeness`.
    other_people
        Names of earlier releases with rows like these or of the same card, of which the owner of
        the data said that they are of other people: nobody is in both.
    withdrawn
        When and why it was taken back; None if it was not. Its budget stays spent.
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
    counts_for_all: bool = False
    sketch: Sketch | None = None
    like: dict[str, str] = Field(default_factory=dict)
    other_people: dict[str, str] = Field(default_factory=dict)
    withdrawn: Withdrawal | None = None

    @property
    def counts(self) -> bool:
        """Whether it has spent, or may have spent, what its ledger says."""
        return self.status != "cancelled"

    @property
    def spent(self) -> Ledger:
        """Its ledger."""
        return ledger_from_json(dict(self.ledger))

    @property
    def unit_title(self) -> str:
        """What its unit is called: as the card says, if it is there now; else by its column."""
        unit = self.spent.unit
        if unit == ROW:
            return unit
        try:
            card = load_card(self.card)
        except DpreproError:
            return unit
        return card.unit_title or unit if card.unit == unit else unit

    def has_units_of(self, other: Entry) -> bool:
        """Whether both protect the same units: rows, or units with the same values.

        If the two have other rows, as a file that was corrected, the columns must be the same.
        """
        unit = self.spent.unit
        if unit != other.spent.unit or unit == ROW:
            return unit == other.spent.unit
        same_rows = not of_rows(self.rows).isdisjoint(of_rows(other.rows))
        kinds: tuple[Literal["values", "column"], ...] = ("values",)
        kinds = kinds if same_rows else ("values", "column")
        return any(
            not of_units(self.rows, kind).isdisjoint(of_units(other.rows, kind)) for kind in kinds
        )


class Book(BaseModel):
    """All releases, in order; `register_id` is of the register that made their tokens."""

    model_config = ConfigDict(extra="forbid")

    note: str = _NOTE
    version: Literal[2, 3, 4] = _VERSION
    register_id: str
    entries: Annotated[list[Entry], Field(default_factory=list)]

    def of(self, card: str, rows: Sequence[str], like: Collection[str] = ()) -> list[Entry]:
        """Return the releases of the same dataset: of the same card, of the same rows, or `like`.

        Releases that share a card or rows with one of them, or are like it, are of the same
        dataset, too. So are those that count for all.
        """
        cards, tokens, names, found = {card}, of_rows(rows), set(like), set[str]()
        while True:
            more = [
                e
                for e in self.entries
                if e.name not in found
                and (
                    e.card in cards
                    or not tokens.isdisjoint(e.rows)
                    or e.name in names
                    or not found.isdisjoint(e.like)
                )
            ]
            if not more:
                return [e for e in self.entries if e.name in found or e.counts_for_all]
            for entry in more:
                found.add(entry.name)
                cards.add(entry.card)
                tokens.update(of_rows(entry.rows))
                names.update(entry.like)

    def alike(self, card: str, tokens: Sequence[str], rows: Rows) -> dict[str, str]:
        """Return names of the releases that are like rows in no other way known, and why."""
        known = {e.name for e in self.of(card, tokens)}
        found = {}
        for entry in reversed(self.entries):
            if entry.name in known or entry.sketch is None:
                continue
            if likeness := rows.likeness_to(entry.sketch):
                found[entry.name] = str(likeness)
                known.update(e.name for e in self.of(entry.card, entry.rows, entry.like))
        return found

    def earlier_than(self, entry: Entry) -> list[Entry]:
        """Return the releases that count and can have people of an entry, which comes later.

        It may be in the book already.
        """
        found = []
        for other in self.of(entry.card, entry.rows, entry.like):
            if other.name == entry.name:
                break
            if other.counts and not _are_other_people(other, entry):
                found.append(other)
        return found

    def in_words(self, alike: dict[str, str]) -> str:
        """Return of which releases rows are like, and why."""
        named = {e.name: f"{e.dataset} ({e.date})" for e in self.entries}
        return "; ".join(f"the release of {named[name]}, {why}" for name, why in alike.items())

    def accounts(self) -> list[list[Entry]]:
        """Return all releases, those of each dataset together."""
        found: dict[tuple[str, ...], list[Entry]] = {}
        for entry in self.entries:
            same = self.of(entry.card, entry.rows, entry.like)
            found.setdefault(tuple(e.name for e in same), same)
        return list(found.values())


def book_path() -> Path:
    """Return the path of the book, in the folder of private state."""
    return state_folder() / _FILE


def read_book() -> Book:
    """Return the book as it is now; empty if nothing was released yet. Raises DpreproError."""
    with in_use(book_path(), *_USE) as path:
        return _checked(path)


def total_spent(entries: Sequence[Entry], unit: str) -> Total | None:
    """Return what the releases of one dataset that count spend together, for units of this name.

    None without any. It is stated at the delta of the latest limit for such units, if there is
    one. It is infinite if units of this name are not the same in all releases; see `total_of`.
    """
    counted = [entry for entry in entries if entry.counts]
    if not counted:
        return None
    deltas = [e.limit.delta for e in limits_of(entries) if e.limit and e.spent.unit == unit]
    own = [entry for entry in counted if entry.spent.unit == unit]
    return _most_spent(counted, unit, deltas[-1] if deltas else None, own[-1] if own else None)


def accept_new_register() -> int:
    """Let every release so far count against every dataset, and go on with a new register.

    For an owner who has lost the register for good. Returns how many releases that are.

    Raises
    ------
    DpreproError
        If the book cannot be used, or if its register is not lost: then nothing is changed.
    """
    with in_use(book_path(), *_USE) as path:
        book = _read(path)
        if not book.entries or book.register_id == register_id():
            raise DpreproError(
                f"the register of the budget book is not lost: {register_path()} is the one that "
                "it was made with, or nothing was released yet. Nothing is changed"
            )
        book.entries = [e.model_copy(update={"counts_for_all": True}) for e in book.entries]
        book.register_id = register_id()
        _write(path, book)
    return sum(entry.counts for entry in book.entries)


class Ahead(NamedTuple):
    """What a release would add to: the total with it, and the earlier releases that count.

    `like` and `other_people` say in words which of the book's releases have rows like these: they
    count, or the owner of the data says that they are of other people.
    """

    total: Total
    earlier: list[Entry]
    like: str
    other_people: str


def look_ahead(entry: Entry, ledger: Ledger, rows: Rows | None = None) -> Ahead:
    """Return what `reserve` would find, without entering anything.

    Raises
    ------
    DpreproError
        As `reserve`.
    """
    book = _but(read_book(), entry.name)
    entry = _compared(book, with_ledger(entry, ledger), rows)
    total, earlier = _allowed(book, entry)
    return Ahead(total, earlier, book.in_words(entry.like), book.in_words(entry.other_people))


def reserve(entry: Entry, ledger: Ledger, rows: Rows | None = None) -> Total:
    """Enter a release before its noise is drawn, and return what its dataset then has spent.

    A release that was begun already, and goes on, takes the place of its own entry.

    The total is at the delta of the card's limit, or at the sum of all deltas.

    When this returns, the entry is on the disk: no crash can make it forgotten. The book is locked
    meanwhile, so of two releases that would exceed a limit together only one is entered.

    Parameters
    ----------
    entry
        Without its ledger; its unit is that of the card.
    ledger
        What the release is going to spend.
    rows
        Compared with those of all earlier releases; None: only tokens and the card are.

    Raises
    ------
    DpreproError
        If a limit would be exceeded, or if the book cannot be used. Then nothing is entered.
    """
    entry = with_ledger(entry, ledger)
    with in_use(book_path(), *_USE) as path:
        book = _but(_checked(path), entry.name)
        entry = _compared(book, entry, rows)
        total, _ = _allowed(book, entry)
        book.register_id = register_id()
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
    with in_use(book_path(), *_USE) as path:
        book = _read(path)  # with whatever register: the entry is there
        book.entries = [
            e.model_copy(update={"status": status, **found}) if e.name == name else e
            for e in book.entries
        ]
        _write(path, book)


def withdraw(is_it: Callable[[Entry], bool], why: Withdrawal) -> Entry | None:
    """Mark a release as withdrawn, and return its entry. What it spent stays spent.

    None, and nothing is changed, if the book has no finished release of which `is_it` holds.

    Raises
    ------
    DpreproError
        If the book cannot be used, or has the release as withdrawn already.
    """
    with in_use(book_path(), *_USE) as path:
        book = _read(path)  # with whatever register: the entry is there
        found = [k for k, e in enumerate(book.entries) if e.status == "released" and is_it(e)]
        if not found:
            return None
        entry = book.entries[found[-1]]
        if entry.withdrawn is not None:
            raise DpreproError(
                f"it was withdrawn on {entry.withdrawn.date} already: {entry.withdrawn.reason}. "
                "Nothing is changed"
            )
        book.entries[found[-1]] = entry = entry.model_copy(update={"withdrawn": why})
        _write(path, book)
    return entry


def withdrawal_of(model_sha256: str) -> Withdrawal | None:
    """Return why the release of a model was withdrawn, by the book of this machine, if any.

    Nothing is written, nor is the book locked: readers elsewhere need no folder of private state.

    Raises
    ------
    DpreproError
        If there is a book and it cannot be read.
    """
    path = book_path()
    try:
        entries = _read(path).entries
    except OSError as error:
        raise DpreproError(f"cannot read the budget book, {path}: {error.strerror}") from error
    return next((e.withdrawn for e in entries if e.model_sha256 == model_sha256), None)


def require_limits(entries: Sequence[Entry]) -> None:
    """Refuse a release, the last entry, if a limit would be exceeded. Raises DpreproError.

    Each limit holds for the units of its own card, whomever the last release protects.
    """
    for limited in limits_of(entries):
        _require_one(limited, entries)


def limits_of(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of one dataset whose limits hold: each for the units of its own ledger.

    A card may change its own limit for a unit, or take back all its limits. Another card of the
    same rows, or a limit of the card for another unit, lifts none.
    """
    found: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if not entry.counts:
            continue
        if entry.limit is None:
            found = {key: e for key, e in found.items() if key[0] != entry.card}
        else:
            key = (entry.card, entry.spent.unit)
            found.pop(key, None)
            found[key] = entry
    return list(found.values())


def total_for(of: Entry, entries: Sequence[Entry], delta: float | None) -> Total:
    """Return what all entries spend together for a unit of one of them; see `total_of`.

    Of entries that are said to be of other people a unit is in one alone: then it is the most that
    the entries of any unit spend, as parallel composition has it (McSherry 2009, Theorem 4).
    """
    return _most_spent(entries, of.spent.unit, delta, of)


def _most_spent(
    entries: Sequence[Entry], unit: str, delta: float | None, of: Entry | None
) -> Total:
    """Return the most that the entries of one unit spend; `of` says which units are meant."""

    def total(some: Sequence[Entry], delta: float | None) -> Total:
        same = of is None or all(entry.has_units_of(of) for entry in some)
        return total_of([entry.spent for entry in some], unit, delta, same_units=same)

    together = total(entries, delta)
    # Under replace-one somebody of one table may become somebody of another, which moves both.
    if together.adjacency is REPLACE_ONE:
        return together
    named = {name for entry in entries for name in entry.other_people}
    apart = [e for e in entries if e.name in named or e.other_people]
    sets = [*islice(_of_one_person(apart), _MOST_SETS)]
    if len(sets) in (1, _MOST_SETS):
        return together
    in_all = [e for e in entries if e not in apart]
    sets = [(*in_all, *some) for some in sets]
    most = max(
        (total(some, together.budget.delta) for some in sets), key=lambda t: t.budget.epsilon
    )
    return replace(most, is_parallel=True)


def _are_other_people(one: Entry, other: Entry) -> bool:
    """Whether the owner of the data says that no unit is in both."""
    return one.name in other.other_people or other.name in one.other_people


def _of_one_person(
    left: list[Entry], chosen: tuple[Entry, ...] = (), seen: tuple[Entry, ...] = ()
) -> Iterator[tuple[Entry, ...]]:
    """Yield all largest sets of entries, in order, that one unit can be in (Bron, Kerbosch 1973).

    Of them no two are said to be of other people.
    """
    if any(not any(_are_other_people(known, e) for e in left) for known in seen):
        return  # each set from here on lacks that one, and is not the largest
    if not left:
        yield chosen
    while left:
        entry, *left = left
        yield from _of_one_person(
            [e for e in left if not _are_other_people(e, entry)],
            (*chosen, entry),
            tuple(e for e in seen if not _are_other_people(e, entry)),
        )
        seen = (*seen, entry)


def _require_one(limited: Entry, entries: Sequence[Entry]) -> None:
    """Refuse what exceeds the limit of an entry, for the units of that entry."""
    limit, unit = limited.limit, limited.unit_title
    if limit is None:
        return
    total = total_for(limited, entries, limit.delta)
    if total.budget.epsilon <= limit.epsilon + slack(limit.epsilon):
        return
    allowed = (
        f"the card of {limited.dataset} allows {PrivacyBudget(limit.epsilon, limit.delta)} in all "
        f"for each {unit}"
    )
    advice = "Choose a smaller --epsilon"
    if not total.budget.is_finite:
        reason = f"at delta {limit.delta:g} nothing bounds what the releases spend together for it"
        advice = f"Release these rows only for each {unit}, with `unit` as on that card"
        if all(entry.has_units_of(limited) for entry in entries):
            advice = "Choose a method whose guarantee holds at this delta"
    else:
        has_earlier = len(entries) > 1
        whole = "with all earlier releases of these rows" if has_earlier else "this release alone"
        reason = f"{whole}, epsilon {total.budget.epsilon:.4g} would be spent ({total.adjacency})"
        *earlier, own = (entry.spent.adjacency for entry in entries)
        if mixed := mixed_in_words(earlier, own):
            reason += f": {mixed}"
            if len(set(earlier)) == 1:
                advice += f", or a method with {earlier[0]} neighbours"
    raise DpreproError(
        f"beyond the budget: {allowed}, and {reason}. Nothing was drawn and nothing was written. "
        f"{advice}; `dprepro budget` lists what was released. Only the owner of "
        "the data can raise `budget_limit` on the card"
    )


Status = Literal["reserved", "released", "cancelled"]


def new_name() -> str:
    """Return a random name for a release."""
    return secrets.token_hex(8)


def with_ledger(entry: Entry, ledger: Ledger) -> Entry:
    """Return an entry with its ledger. Raises DpreproError if the book could not keep that."""
    entry = entry.model_copy(update={"ledger": ledger_to_json(ledger)})
    try:
        entry.spent  # noqa: B018 - the book must be able to read it again
    except ValueError as error:
        raise DpreproError(f"the budget book cannot keep what is to be spent: {error}") from error
    return entry


def _but(book: Book, name: str) -> Book:
    """Return the book without the release of this name."""
    left = [entry for entry in book.entries if entry.name != name]
    return book.model_copy(update={"entries": left})


def _compared(book: Book, entry: Entry, rows: Rows | None) -> Entry:
    """Return the entry with the sketch of its rows, and with what they are like."""
    if rows is None:
        return entry
    same = [e for e in book.entries if e.rows == entry.rows]
    others = {name: why for e in same for name, why in e.other_people.items()}
    alike = book.alike(entry.card, entry.rows, rows)
    if rows.are_others:
        others |= alike | _of_the_card(book, entry, rows)
    like = {name: why for name, why in alike.items() if name not in others}
    sketch = None if any(e.sketch for e in same) else rows.sketch()
    return entry.model_copy(update={"sketch": sketch, "like": like, "other_people": others})


def _of_the_card(book: Book, entry: Entry, rows: Rows) -> dict[str, str]:
    """Return names of the releases of an entry's account that have none of its rows, and why."""
    found = {}
    for other in book.of(entry.card, entry.rows):
        if other.counts_for_all or not of_rows(other.rows).isdisjoint(of_rows(entry.rows)):
            continue  # these are the same people, or nobody can say
        likeness = None if other.sketch is None else rows.likeness_to(other.sketch)
        found[other.name] = str(likeness or "of the same card")
    return found


def _allowed(book: Book, entry: Entry) -> tuple[Total, list[Entry]]:
    account = [e for e in book.of(entry.card, entry.rows, entry.like) if e.counts]
    try:
        require_limits([*account, entry])
    except DpreproError as error:
        if not entry.like:
            raise
        raise DpreproError(
            f"{error}. These rows are counted with those that they are like: "
            f"{book.in_words(entry.like)}. If all of them are other people's, say --other-people"
        ) from error
    earlier = book.earlier_than(entry)
    delta = None if entry.limit is None else entry.limit.delta
    return total_for(entry, [*earlier, entry], delta), earlier


def _checked(path: Path) -> Book:
    """Return the book, if the register can still tell which rows it is about."""
    book = _read(path)
    if book.entries and book.register_id != register_id():
        raise DpreproError(
            f"the register of private data, {register_path()}, is not the one that the budget book "
            "was made with, so nobody can say which rows were released. Nothing is released until "
            "a copy of that register is back at this place. If it is lost for good, the owner of "
            "the data says `dprepro budget --register-lost`: then all releases so far count "
            "against every dataset"
        )
    return book


def _read(path: Path) -> Book:
    if not path.exists():
        return Book(register_id="", entries=[])
    path.chmod(0o600)
    _refuse_other_version(path)
    try:
        book = Book.model_validate_json(read_bytes(path, MOST_BYTES))
        for entry in book.entries:
            entry.spent  # noqa: B018 - a ledger that cannot be read is found here
    except (ValidationError, ValueError) as error:
        raise DpreproError(
            f"the budget book, {path}, is damaged, so nobody can say what was spent. Put back a "
            "copy of it. Nothing is released until then"
        ) from error
    return book


def _refuse_other_version(path: Path) -> None:
    try:
        version = json.loads(read_bytes(path, MOST_BYTES)).get("version")
    except (ValueError, AttributeError, RecursionError):
        return  # damaged, which reading it tells
    if isinstance(version, int) and version not in _READ:
        raise DpreproError(
            f"the budget book, {path}, has version {version}, and this dprepro reads version "
            f"{_VERSION}. Use the dprepro that wrote it. Nothing is released until then"
        )


def _write(path: Path, book: Book) -> None:
    book.version = _VERSION
    text = json.dumps(book.model_dump(mode="json"), indent=1) + "\n"
    if len(text) > MOST_BYTES:
        raise DpreproError(
            f"the budget book, {path}, is full: it would be larger than {MOST_BYTES:,} bytes, and "
            "could not be read again. Nothing was entered"
        )
    write_own(path, text)
