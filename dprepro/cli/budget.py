"""`dprepro budget` and `withdraw`: what was released before, and what is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import DataDir
from dprepro.cli.streams import say

if TYPE_CHECKING:
    from dprepro.release.budget_book import Book, Entry

_STATES = {
    "released": "released",
    "reserved": "not finished; counts, as its noise may have been drawn",
    "cancelled": "failed before any noise; does not count",
}


def budget(
    card: Annotated[
        str | None, typer.Argument(help="Path or name of a card; default: all datasets.")
    ] = None,
    register_lost: Annotated[
        bool,
        typer.Option(
            "--register-lost",
            help="State, as the owner of the data, that the register of private data is lost for "
            "good: all releases so far then count against every dataset.",
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """List the budget book: every release from this machine, and what the rows have spent in all.

    The book is private. It knows rows again by their files, their values and their card, and by
    keyed digests of some of their cells where rows, columns or format have changed.

    Example: dprepro budget
    """
    from dprepro.data.card import load_card
    from dprepro.release.budget_book import accept_new_register, book_path, read_book
    from dprepro.release.population_overlap import Rows
    from dprepro.release.rows import known_rows, place_of

    if register_lost:
        count = accept_new_register()
        say(f"{count} release(s) now count against every dataset")
    book = read_book()
    unknown = ""
    if card is None:
        accounts = book.accounts()
    else:
        found = load_card(card)
        tokens, dataset, unknown = known_rows(card, found, data_dir)
        place = place_of(found, card)
        # A release of these very rows has been compared already, and says what it is like.
        is_known = any(entry.rows == tokens for entry in book.entries)
        rows = None if dataset is None or is_known else Rows(dataset)
        alike = {} if rows is None else book.alike(place, tokens, rows)
        accounts = [book.of(place, tokens, alike)]
        if alike:
            _say(f"{card} has rows like those of {book.in_words(alike)}")
    if unknown:
        _say(f"{card} is known by path and file only, as its rows cannot be used: {unknown}")
    shown = [account for account in accounts if account]
    if not shown:
        say(_none_found(card, unknown))
    for account in shown:
        _show(account, book)
    if shown:
        _say(f"from {book_path()}, which is private")


def _none_found(card: str | None, unknown: str) -> str:
    if card is None:
        return "nothing was released yet"
    if unknown:
        return f"{card}: no release is known of this path or these files"
    return f"{card}: nothing was released"


def _show(account: Sequence[Entry], book: Book) -> None:
    from dprepro.release.budget_book import limits_of, total_spent
    from dprepro.release.joint_budget import PARALLEL

    say(", ".join(dict.fromkeys(entry.dataset for entry in account)))
    for entry in account:
        ledger = entry.spent
        _say(
            f"  {entry.date}  {entry.method}  {ledger.budget}, {ledger.adjacency}, for each "
            f"{ledger.unit}: {_STATES[entry.status]}"
        )
        if entry.withdrawn:
            said = f"withdrawn on {entry.withdrawn.date}, and its budget stays spent"
            _say(f"    {said}: {entry.withdrawn.reason}")
        for names, said in (
            (entry.like, "counted with others, since its rows are like those of"),
            (entry.other_people, "other people, as the owner of the data says, than in"),
        ):
            if names:
                _say(f"    {said} {book.in_words(names)}")
    relations = {entry.spent.adjacency for entry in account if entry.counts}
    units = dict.fromkeys(entry.spent.unit for entry in account if entry.counts)
    for total in filter(None, (total_spent(account, unit) for unit in units)):
        spent = f"{total.budget}, {total.adjacency}"
        spent += ", as the neighbours of the releases differ" if len(relations) > 1 else ""
        spent = spent if total.budget.is_finite else "no bound is known"
        _say(f"  in all: {spent}, for each {total.unit}{PARALLEL if total.is_parallel else ''}")
    limits = [
        f"  limit of {entry.dataset}: epsilon {entry.limit.epsilon:g}, delta "
        f"{entry.limit.delta:g}, for each {entry.spent.unit}"
        for entry in limits_of(account)
        if entry.limit
    ]
    for text in dict.fromkeys(limits):  # several cards of the same rows may have the same
        _say(text)
    say("")


def _say(text: str) -> None:
    """Print a line, which goes on below itself where the terminal is too narrow."""
    from dprepro.runtime.terminal import console, wrapped

    say("\n".join(wrapped(text, console().width, 6)))


def withdraw(
    folder: Annotated[Path, typer.Argument(help="A folder that `dprepro release` wrote.")],
    reason: Annotated[str, typer.Option(help="Why, for all who read it: quote no private row.")],
) -> None:
    """Mark a release as withdrawn, with the date and the reason. Its budget stays spent.

    The budget book, `dprepro verify` and the statements of later releases then say so. What was
    published cannot be called back: who has the model keeps what it discloses. The folder gets a
    file, withdrawn.json, to publish in the place where the release was.

    Example: dprepro withdraw release --reason "the table had rows of two years only"
    """
    from dprepro.release.withdrawal import FILE, withdraw_folder

    entry, missing = withdraw_folder(folder, reason)
    ledger = entry.spent
    say(
        f"{folder}: withdrawn in the budget book. What it spent on {entry.date} stays spent: "
        f"{ledger.budget}, for each {ledger.unit}"
    )
    say(missing or f"{folder / FILE} says so to all who have the folder: publish it, too")
