"""`dprepro budget`: what was released of each dataset on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dprepro.release.book import Entry

_STATES = {
    "released": "released",
    "reserved": "not finished; counts, as its noise may have been drawn",
    "cancelled": "failed before any noise; does not count",
}


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("budget")(budget)


def budget(
    card: Annotated[
        str | None, typer.Argument(help="Path or name of a card; default: all datasets.")
    ] = None,
) -> None:
    """List the budget book: every release from this machine, and what the rows have spent in all.

    The book is private. It knows rows again by their files, their values and their card.

    Example: dprepro budget
    """
    from dprepro.data.card import load_card
    from dprepro.release.book import book_path, read_book
    from dprepro.release.rows import files_of, place_of

    book = read_book()
    if card is None:
        accounts = book.accounts()
    else:
        found = load_card(card)
        accounts = [book.of(place_of(found, card), files_of(found, None))]
    shown = [account for account in accounts if account]
    if not shown:
        typer.echo("nothing was released yet" if card is None else f"{card}: nothing was released")
    for account in shown:
        _show(account)
    if shown:
        typer.echo(f"from {book_path()}, which is private")


def _show(account: Sequence[Entry]) -> None:
    from dprepro.release.book import total_spent

    last = account[-1]
    typer.echo(", ".join(dict.fromkeys(entry.dataset for entry in account)))
    for entry in account:
        ledger = entry.spent
        typer.echo(
            f"  {entry.date}  {entry.method}  {ledger.budget}, {ledger.adjacency}, for each "
            f"{ledger.unit}: {_STATES[entry.status]}"
        )
    total = total_spent(account, last.spent.unit)
    if total is not None:
        typer.echo(f"  in all: {total.budget}, {total.adjacency}, for each {total.unit}")
    if last.limit is not None:
        typer.echo(
            f"  limit of {last.dataset}: epsilon {last.limit.epsilon:g}, delta {last.limit.delta:g}"
        )
    typer.echo("")
