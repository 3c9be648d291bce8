"""`dprepro budget` and `withdraw`: what was released before, what still fits, what is withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import DataDir, repeated_levels
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.data.card import Card
    from dprepro.release.budget_book import Book, Entry

_STATES = {
    "released": "released",
    "reserved": "not finished; counts, as its noise may have been drawn",
    "cancelled": "failed before any noise; does not count",
}


class PlanFormat(str, Enum):
    """How to write what fits."""

    TABLE = "table"
    JSON = "json"


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
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Say how many more releases of CARD fit into what its limits leave."
        ),
    ] = False,
    epsilon: Annotated[
        list[float] | None,
        repeated_levels("With --plan: the epsilon of each release; default: parts of the limit."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="With --plan: the delta of each release.", show_default="as `dprepro release`"
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="With --plan: the method.", show_default="as `dprepro release`"),
    ] = None,
    format: Annotated[
        PlanFormat | None,
        typer.Option(help="With --plan: the output format.", show_default="table"),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """List the budget book: every release from this machine, and what the rows have spent in all.

    The book is private. It knows rows again by their files, their values and their card, and by
    keyed digests of some of their cells where rows, columns or format have changed. With --plan,
    releases to come are composed with those of the book as `dprepro release` does: so many are
    accepted, and one more is refused.

    Example: dprepro budget
    """
    from dprepro.data.card import load_card
    from dprepro.release.budget_book import accept_new_register, read_book

    of_plans = {"--epsilon": epsilon, "--delta": delta, "--method": method, "--format": format}
    if not plan and (given := [name for name, value in of_plans.items() if value is not None]):
        raise DpreproError(f"{' and '.join(given)} say what to plan: add --plan")
    if plan and card is None:
        raise DpreproError("a plan is for the rows of a card: `dprepro budget CARD --plan`")
    if register_lost:
        count = accept_new_register()
        say(f"{count} release(s) now count against every dataset")
    book = read_book()
    if card is None:
        _list(book.accounts(), book, "nothing was released yet")
        return
    loaded = load_card(card)
    entry, unknown = _next_release(card, loaded, book, data_dir, err=format is PlanFormat.JSON)
    account = book.of(entry.card, entry.rows, entry.like)
    if plan:
        from dprepro.release.budget_plan import plan_budget
        from dprepro.runtime.text import json_text

        entry = entry.model_copy(update={"method": method or entry.method})
        found = plan_budget(card, loaded, account, entry, epsilon or (), delta, data_dir)
        if format is PlanFormat.JSON:
            say(json_text(found.as_values()))
        else:
            for line in found.in_words():
                _say(line)
    elif account:
        _list([account], book, "")
    else:
        none = "no release is known of this path or these files" if unknown else ""
        say(f"{card}: {none or 'nothing was released'}")


def _next_release(
    name: str, card: Card, book: Book, data_dir: Path | None, err: bool
) -> tuple[Entry, str]:
    """Return a release to come of the rows of a card, and why these cannot be used, if so.

    What the book finds is said, to standard error with `err`.
    """
    from dprepro.release.budget_book import Entry, new_name
    from dprepro.release.planning import DEFAULT_METHOD
    from dprepro.release.population_overlap import Rows
    from dprepro.release.rows import known_rows, place_of

    tokens, dataset, unknown = known_rows(name, card, data_dir)
    place = place_of(card, name)
    # A release of these very rows has been compared already, and says what it is like.
    is_known = any(entry.rows == tokens for entry in book.entries)
    rows = None if dataset is None or is_known else Rows(dataset)
    alike = {} if rows is None else book.alike(place, tokens, rows)
    if alike:
        _say(f"{name} has rows like those of {book.in_words(alike)}", err)
    if unknown:
        _say(f"{name} is known by path and file only, as its rows cannot be used: {unknown}", err)
    entry = Entry(
        name=new_name(), date="", dataset=card.name, card=place, rows=tokens,
        method=DEFAULT_METHOD, ledger={}, limit=card.budget_limit, like=alike,
    )  # fmt: skip
    return entry, unknown


def _list(accounts: Sequence[Sequence[Entry]], book: Book, none_found: str) -> None:
    from dprepro.release.budget_book import book_path

    for account in accounts:
        _show(account, book)
    _say(f"from {book_path()}, which is private" if accounts else none_found)


def _show(account: Sequence[Entry], book: Book) -> None:
    from dprepro.release.budget_book import limits_of, total_spent
    from dprepro.release.joint_budget import PARALLEL

    say(", ".join(dict.fromkeys(entry.dataset for entry in account)))
    titles = {entry.spent.unit: entry.unit_title for entry in account}
    if len(set(titles.values())) < len(titles):  # two columns that people call the same
        titles = {unit: unit for unit in titles}
    for entry in account:
        ledger = entry.spent
        _say(
            f"  {entry.date}  {entry.method}  {ledger.budget}, {ledger.adjacency}, for each "
            f"{titles[ledger.unit]}: {_STATES[entry.status]}"
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
        apart = PARALLEL if total.is_parallel else ""
        _say(f"  in all: {spent}, for each {titles[total.unit]}{apart}")
    limits = [
        f"  limit of {entry.dataset}: epsilon {entry.limit.epsilon:g}, delta "
        f"{entry.limit.delta:g}, for each {titles[entry.spent.unit]}"
        for entry in limits_of(account)
        if entry.limit
    ]
    for text in dict.fromkeys(limits):  # several cards of the same rows may have the same
        _say(text)
    say("")


def _say(text: str, err: bool = False) -> None:
    """Print a line, which goes on below itself where the terminal is too narrow."""
    from dprepro.runtime.terminal import console, wrapped

    say("\n".join(wrapped(text, console().width, 6)), err)


def withdraw(
    folder: Annotated[Path, typer.Argument(help="A folder that `dprepro release` wrote.")],
    reason: Annotated[str, typer.Option(help="Why, for all who read it: quote no private row.")],
) -> None:
    """Mark a release as withdrawn, with the date and the reason. Its budget stays spent.

    The budget book, `dprepro verify` and the statements of later releases then say so. What was
    published cannot be called back: who has the model keeps what it discloses. The folder gets a
    file, withdrawn.json, to publish in the place where the release was.

    Example: dprepro withdraw release --reason "replaced by a model of the grown table"
    """
    from dprepro.release.withdrawal import FILE, withdraw_folder

    entry, missing = withdraw_folder(folder, reason)
    ledger = entry.spent
    say(
        f"{folder}: withdrawn in the budget book. What it spent on {entry.date} stays spent: "
        f"{ledger.budget}, for each {entry.unit_title}"
    )
    say(missing or f"{folder / FILE} says so to all who have the folder: publish it, too")
