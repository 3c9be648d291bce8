"""`dprepro release`, `verify` and `budget`: a model of all rows, and what was released before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import DataDir, one_level
from dprepro.cli.run import INTERRUPTED
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel
    from dprepro.methods.entry import Method
    from dprepro.release.budget_book import Book, Entry
    from dprepro.release.statement import AuditRecord, Publisher

_COLUMNS, _NAMES = 80, 10
"""Of the lines on the terminal, and of the names in front of what is going to be spent."""

_STATES = {
    "released": "released",
    "reserved": "not finished; counts, as its noise may have been drawn",
    "cancelled": "failed before any noise; does not count",
}


def release(
    card: Annotated[str, typer.Argument(help="Path of the card of your dataset.")],
    epsilon: Annotated[float, one_level("The epsilon of the release.")],
    delta: Annotated[
        float | None,
        typer.Option(
            help="The delta of the release. By default it is the largest power of ten that is at "
            "most 1 / (10 n), with the number of rows n that the card states (`expect`).",
            show_default="from the card",
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="The method, by name.")] = "dp-ebm-plus",
    config: Annotated[
        str | None,
        typer.Option(help="A config with the parameters of --method, a name or label there."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder to write.", show_default="NAME-release"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: spend the budget.")] = False,
    clip: Annotated[
        bool, typer.Option("--clip", help="Clip values beyond their bounds; else they are refused.")
    ] = False,
    allow_floating_point: Annotated[
        bool,
        typer.Option("--allow-floating-point", help="Accept noise that is not exact."),
    ] = False,
    allow_no_export: Annotated[
        bool,
        typer.Option(
            "--allow-no-export",
            help="Accept a model that some form of `dprepro export` cannot hold.",
        ),
    ] = False,
    allow_large_delta: Annotated[
        bool, typer.Option("--allow-large-delta", help="Accept a --delta of 0.01 or more.")
    ] = False,
    other_people: Annotated[
        bool,
        typer.Option(
            "--other-people",
            help="State, as the owner of the data, that rows which look like those of an earlier "
            "release are of other people: the book and the statement record it.",
        ),
    ] = False,
    registry: Annotated[
        bool,
        typer.Option(
            "--registry",
            help="Refuse a card without `deployment`: who releases the model, for what and where. "
            "With it, the folder also has a record for the registry of deployments, and a model "
            "card.",
        ),
    ] = False,
    audits: Annotated[
        Path,
        typer.Option(
            help="Folder of results of `dprepro audit`, for the statement. A method of "
            "your own that one of them refutes is not released."
        ),
    ] = Path("results"),
    jobs: Annotated[
        int | None,
        # "<int range>" would leave too little room for the names at 80 columns.
        typer.Option(
            min=1, metavar="<int>", help="Threads that share the rows; they change no result."
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Fit a private model to all rows of a dataset, and write a folder that can be released.

    The noise is exact and has no seed, and the domain is the card's. Before anything is spent, the
    command shows what will be spent, and asks. The budget book of this machine then gets an entry,
    composed with all earlier releases of these rows, or of rows that are like them. If that would
    exceed `budget_limit` of the card, nothing is drawn. The folder holds the model and the
    statement of what it guarantees, for people and for programs, the page of the model, and nothing
    else about the rows.

    Example: dprepro release card.yaml --epsilon 1 --yes
    """
    from dprepro.release.publish import Request, plan_release, publish
    from dprepro.results.audits import WordsOf

    asked = Request(
        card, epsilon, delta, method, config, output, clip, allow_floating_point, allow_no_export,
        allow_large_delta, other_people, audits, data_dir, registry,
    )  # fmt: skip
    plan = plan_release(asked, WordsOf(audits).of)
    for name, text in plan.lines().items():
        say(_folded(f"{name + ':':<{_NAMES}}{text}"))
    _ask(yes)
    try:
        statement = publish(plan, _audits(audits, plan.method, plan.card.task), _page, jobs or 1)
    except KeyboardInterrupt as error:
        written = str(error) or "nothing is written"
        say(f"interrupted: {written}. `dprepro budget` says whether it counts")
        raise typer.Exit(INTERRUPTED) from None
    files = ", ".join(sorted(path.name for path in plan.place.iterdir()))
    say(_folded(f"{plan.place}: {files}"))
    spent, ledger = statement.privacy.spent.of_unit, plan.ledger
    whose = ", says the method's author" if ledger.code else ""
    say(f"Spent: epsilon {spent:.4g} at delta {ledger.delta:g}. The guarantee holds{whose}")


def _page(model: AdditiveModel, publisher: Publisher) -> str:
    """Return the page of the model of a release; see `dprepro show`."""
    from dprepro.release.folder import MODEL
    from dprepro.report.model_page import model_page

    return model_page(model, publisher.title or publisher.dataset, MODEL)


def _folded(line: str) -> str:
    """Return a line in lines of at most 80 columns, but for words that are longer."""
    from textwrap import fill

    rest = " " * _NAMES
    return fill(
        line, _COLUMNS, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _ask(yes: bool) -> None:
    """Return if the budget may be spent; else end. What is spent cannot be had back."""

    if yes:
        return
    if not _is_terminal():
        raise DpreproError(
            "this is not a terminal, so nobody can be asked: give --yes to spend the budget. "
            "Nothing was spent and nothing was written"
        )
    try:
        agreed = typer.confirm("Spend this? It cannot be taken back")
    except (typer.Abort, KeyboardInterrupt):
        say("\ninterrupted: nothing was spent and nothing was written", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if not agreed:
        say("nothing was spent and nothing was written")
        raise typer.Exit(1)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _audits(folder: Path, method: Method, task: str) -> list[AuditRecord]:
    """Return what is on record of the method's audits, of that very code, on this kind of task."""
    from dprepro.release.statement import AuditRecord
    from dprepro.results.audits import read_audits

    return [
        AuditRecord(
            subject=audit.subject, epsilon=audit.epsilon, delta=audit.delta,
            lower_bound=audit.lower_bound, confidence=audit.confidence, trials=audit.trials,
            verdict=audit.verdict.value, date=audit.date, dprepro=audit.dprepro,
        )
        for audit in read_audits(folder)
        if (audit.task, audit.method, audit.code or "") == (task, method.name, method.code)
    ]  # fmt: skip


def verify(
    folder: Annotated[Path, typer.Argument(help="A folder that `dprepro release` wrote.")],
) -> None:
    """Check the statement of a release against its model file. The exit code is 1 if they differ.

    The statement is derived anew from the ledger in the model file. That the ledger lists all
    releases, and what the publisher says beside it, cannot be checked from the files.

    Example: dprepro verify release
    """
    from dprepro.release.folder import differences

    if folder.is_file():
        raise DpreproError(
            f"{folder} is a file: name the folder that `dprepro release` wrote. Of a model file "
            "alone, `dprepro ledger MODEL` says what it spends"
        )
    found = differences(folder, _page)
    for line in found:
        say(line)
    if found:
        raise typer.Exit(1)
    say(f"{folder}: statement and page are those of the model, and all texts agree")


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

    say(", ".join(dict.fromkeys(entry.dataset for entry in account)))
    for entry in account:
        ledger = entry.spent
        _say(
            f"  {entry.date}  {entry.method}  {ledger.budget}, {ledger.adjacency}, for each "
            f"{ledger.unit}: {_STATES[entry.status]}"
        )
        for names, said in (
            (entry.like, "counted with others, since its rows are like those of"),
            (
                entry.other_people,
                "other people, as the owner of the data says, than in the similar rows of",
            ),
        ):
            if names:
                _say(f"    {said} {book.in_words(names)}")
    relations = {entry.spent.adjacency for entry in account if entry.counts}
    units = dict.fromkeys(entry.spent.unit for entry in account if entry.counts)
    for total in filter(None, (total_spent(account, unit) for unit in units)):
        spent = f"{total.budget}, {total.adjacency}"
        spent += ", as the neighbours of the releases differ" if len(relations) > 1 else ""
        spent = spent if total.budget.is_finite else "no bound is known"
        _say(f"  in all: {spent}, for each {total.unit}")
    for entry in limits_of(account):
        if limit := entry.limit:
            _say(
                f"  limit of {entry.dataset}: epsilon {limit.epsilon:g}, delta {limit.delta:g}, "
                f"for each {entry.spent.unit}"
            )
    say("")


def _say(text: str) -> None:
    """Print a line, which goes on below itself where the terminal is too narrow."""
    from dprepro.runtime.terminal import console, wrapped

    say("\n".join(wrapped(text, console().width, 6)))
