"""`dprepro release`, `verify` and `budget`: a model of all rows, and what was released before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import one_level
from dprepro.cli.run import INTERRUPTED
from dprepro.cli.streams import say

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel
    from dprepro.data.card import Card
    from dprepro.experiment.config import ExperimentConfig
    from dprepro.experiment.record import Task
    from dprepro.methods.entry import Method
    from dprepro.privacy.guarantee_status import AuthorsWord
    from dprepro.privacy.ledger import Ledger
    from dprepro.release.book import Ahead, Book, Entry
    from dprepro.release.folder import Room
    from dprepro.release.likeness import Rows
    from dprepro.release.statement import AuditRecord, Publisher, Statement

PAGE = "model.html"
_COLUMNS, _NAMES = 80, 10
"""Of the lines on the terminal, and of the names in front of what is going to be spent."""


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
        typer.Option("--allow-no-export", help="Accept a model that some `--to` cannot write."),
    ] = False,
    allow_large_delta: Annotated[
        bool, typer.Option("--allow-large-delta", help="Accept a --delta of 0.01 or more.")
    ] = False,
    other_people: Annotated[
        bool,
        typer.Option(
            "--other-people",
            help="Say, as the owner of the data, that rows which look like those of an earlier "
            "release are of other people: book and statement record it.",
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
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Folder of datasets.", show_default="$DPREPRO_DATA"),
    ] = None,
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
    from functools import partial

    from dprepro.additive.file import rehearsing
    from dprepro.data.card import load_card
    from dprepro.experiment.config import load_config
    from dprepro.experiment.plan import plan
    from dprepro.release import book, planning, rows
    from dprepro.release.folder import Room, refuse_existing, rehearse, with_ledger
    from dprepro.release.likeness import Rows
    from dprepro.release.planning import planned_ledgers
    from dprepro.release.progress import shown_progress
    from dprepro.release.provenance import take_card
    from dprepro.release.reserved_fit import publisher_of, spent_with
    from dprepro.release.rows import refuse_exact_facts
    from dprepro.results.audits import WordsOf
    from dprepro.runtime.errors import DpreproError
    from dprepro.runtime.terminal import error_console

    found = load_card(card)
    refuse_exact_facts(found)
    place = output or Path(f"{found.name}-release")
    refuse_existing(place)
    _check_budget(epsilon, delta)
    rule = delta is None
    delta = planning.default_delta(found) if delta is None else delta
    beware = "" if rule else planning.check_delta(found, delta, allow_large_delta)
    given = None if config is None else load_config(config)
    experiment = planning.release_config(found, card, method, epsilon, delta, given)
    chosen = planning.check_method(found, experiment.methods[0].method, allow_floating_point)
    largest: list[AdditiveModel] = []
    with rehearsing(largest.append):
        (planned,) = planned_ledgers(experiment, data_dir=data_dir, all_rows=True)
    ledger = planning.require_sound(planned.ledger, planned.why_missing, allow_floating_point)
    word = WordsOf(audits).of(chosen.name, ledger.code)
    planning.refuse_refuted(chosen.name, word, audits)
    with shown_progress(error_console(), "reading the rows"):
        dataset = rows.checked_rows(card, found, data_dir, clip)
    entry = book.Entry(
        name=book.new_name(), date=_today(), dataset=found.name,
        card=rows.place_of(found, card), rows=rows.identity_of(found, dataset, data_dir),
        method=chosen.name, ledger={}, limit=found.budget_limit,
    )  # fmt: skip
    compared = Rows(dataset, other_people)
    ahead = book.look_ahead(entry, ledger, compared)
    say(_question(found, chosen, ledger, ahead, place, rule, beware, word))
    _ask(yes)
    (task,) = (p.task for p in plan(experiment, data_dir, identify=False))
    known = _audits(audits, chosen, found.task)
    says = {"date": _today(), "audits": known, "clips": clip, "delta_by_rule": rule}
    publisher = partial(publisher_of, found, chosen, **says)
    room = Room(place)
    save = partial(_save, room, experiment.name, task)
    first = publisher(**spent_with(len(ahead.earlier), ahead.total))
    try:
        with room:
            model = with_ledger(largest[0] if largest else planned.model, ledger)
            take_card(model, found)
            rehearse(
                room,
                lambda: (save(model), _complete(room, first)),
                lambda: _differences(room.folder),
                exports=not allow_no_export,
            )
            _make(
                entry, ledger, compared, experiment, task, save, publisher, found, room,
                jobs or 1, data_dir,
            )  # fmt: skip
    except KeyboardInterrupt:
        say(f"interrupted: {_written(room)}. `dprepro budget` says whether it counts")
        raise typer.Exit(INTERRUPTED) from None
    except DpreproError as error:
        if room.is_published or room.is_kept:
            raise DpreproError(f"{error}. {_written(room)}") from error
        raise


def _written(room: Room) -> str:
    if room.is_published:
        return f"{room.place} is written; the book counts it, and may list it as not finished"
    if room.is_kept:
        return (
            f"{room.place} is not written, and its budget counts as spent; the model lies in "
            f"{room.folder}"
        )
    return "nothing is written"


def _save(room: Room, config: str, task: Task, model: AdditiveModel) -> None:
    """Write the model of a release into its room."""
    from dprepro.release.folder import MODEL
    from dprepro.release.provenance import save_fitted

    save_fitted(model, config, task, room.folder / MODEL, all_rows=True)


def _complete(room: Room, says: Publisher) -> Statement:
    """Write the statement and the page of the model in a room."""
    from dprepro.release.folder import write_statement

    statement = write_statement(room, says)
    room.write(PAGE, _page(room.folder, statement))
    return statement


def _make(
    entry: Entry,
    ledger: Ledger,
    compared: Rows,
    experiment: ExperimentConfig,
    task: Task,
    save: Callable[[AdditiveModel], None],
    publisher: Callable[..., Publisher],
    card: Card,
    room: Room,
    jobs: int,
    data_dir: Path | None,
) -> None:
    """Fit, write the folder, and say so."""
    from dprepro.release import book
    from dprepro.release.fitting import fit_model
    from dprepro.release.progress import shown_progress
    from dprepro.release.reserved_fit import COUNTS, fit_reserved, of_the_book
    from dprepro.release.rows import files_of
    from dprepro.runtime.errors import DpreproError
    from dprepro.runtime.terminal import error_console
    from dprepro.runtime.threads import granted

    def keep(model: AdditiveModel) -> None:
        try:
            if not set(files_of(card, data_dir)) <= set(entry.rows):
                raise DpreproError("the files of the rows changed during the release")
            room.make_way()
            save(model)
        except DpreproError as error:
            raise DpreproError(f"{error}. Nothing is written; {COUNTS}") from error
        room.is_kept = True

    with granted(jobs), shown_progress(error_console(), f"fitting {entry.method} to all rows"):
        _, total = fit_reserved(
            entry,
            ledger,
            lambda: fit_model(experiment, task, data_dir, all_rows=True),
            keep,
            compared,
        )
    statement = _complete(room, publisher(**of_the_book(entry, total)))
    room.publish()
    book.settle(
        entry.name,
        "released",
        folder=str(room.place.resolve()),
        model_sha256=statement.model.sha256,
    )
    files = ", ".join(sorted(p.name for p in room.place.iterdir()))
    say(_folded(f"{room.place}: {files}"))
    spent = statement.privacy.spent.of_unit
    whose = ", says the method's author" if ledger.code else ""
    say(f"Spent: epsilon {spent:.4g} at delta {ledger.delta:g}. The guarantee holds{whose}")


def _page(folder: Path, statement: Statement) -> str:
    """Return the page of the model in a folder; see `dprepro show`."""
    from dprepro.additive.file import load_model
    from dprepro.release.folder import MODEL
    from dprepro.report.model_page import model_page

    said = statement.publisher
    return model_page(load_model(folder / MODEL), said.title or said.dataset, MODEL)


def _check_budget(epsilon: float, delta: float | None) -> None:
    from dprepro.runtime.errors import DpreproError

    if not 0 < epsilon < float("inf"):
        raise DpreproError(f"--epsilon must be a finite number above 0, given {epsilon:g}")
    if delta is not None and not 0 <= delta < 1:
        raise DpreproError(f"--delta must lie from 0 to below 1, given {delta:g}")


def _today() -> str:
    from datetime import datetime, timezone

    return datetime.now(timezone.utc).date().isoformat()


def _question(
    card: Card,
    method: Method,
    ledger: Ledger,
    ahead: Ahead,
    place: Path,
    by_rule: bool,
    beware: str,
    word: AuthorsWord | None,
) -> str:
    """Return what is going to be spent, on whom, and what is then spent in all."""
    from dprepro.release.rows import compared_facts
    from dprepro.release.statement import (
        mixed_in_words,
        neighbours_in_words,
        public_in_words,
        unit_in_words,
    )

    rule = " (largest power of ten up to 1 / (10 n), n of the card)" if by_rule else ""
    noise = "floating-point" if ledger.floating_point else "exact"
    limit, (total, earlier, *_) = card.budget_limit, ahead
    lines = {
        "Release": f"all rows of {card.title or card.name}, to {place}",
        "Method": f"{method.name}, {noise} noise, no seed",
        "Spends": f"epsilon {ledger.spent_epsilon():.4g} of the stated {ledger.epsilon:g}",
        "Delta": f"{ledger.delta:g}{rule}",
        "Protects": unit_in_words(ledger.unit, ledger.rows_per_unit),
        "Compares": f"two tables, {neighbours_in_words(ledger.adjacency, ledger.unit)}",
        "Public": "; ".join(public_in_words(ledger, compared_facts(card))),
        "Before": f"{len(earlier)} release(s) of these rows in the budget book",
        "Alike": f"{ahead.like}. They are counted together; if all of these rows are other "
        "people's, say --other-people",
        "Others": f"said to be other people, and not counted: {ahead.other_people}",
        "In all": f"{total.budget}, {total.adjacency}, "
        f"{'composed by dp_accounting' if total.by_accountant else 'added up'}",
        "Limit": "none on the card"
        if limit is None
        else f"epsilon {limit.epsilon:g}, delta {limit.delta:g}",
    }
    for name, known in (("Alike", ahead.like), ("Others", ahead.other_people)):
        if not known:
            del lines[name]
    if mixed := mixed_in_words((e.spent.adjacency for e in earlier), ledger.adjacency):
        lines["In all"] += f"; {mixed}"
    if word is not None:
        lines["Word"] = f"its ledger is its author's word: a method of your own, {word}"
    if beware:
        lines["Beware"] = beware
    return "\n".join(_folded(f"{name + ':':<{_NAMES}}{text}") for name, text in lines.items())


def _folded(line: str) -> str:
    """Return a line in lines of at most 80 columns, but for words that are longer."""
    from textwrap import fill

    rest = " " * _NAMES
    return fill(
        line, _COLUMNS, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _ask(yes: bool) -> None:
    """Return if the budget may be spent; else end. What is spent cannot be had back."""
    from dprepro.runtime.errors import DpreproError

    if yes:
        return
    if not _is_terminal():
        raise DpreproError(
            "nobody is there to ask, as this is no terminal: say --yes to spend the budget. "
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
    from dprepro.runtime.errors import DpreproError

    if folder.is_file():
        raise DpreproError(
            f"{folder} is a file: name the folder that `dprepro release` wrote. Of a model file "
            "alone, `dprepro ledger MODEL` says what it spends"
        )
    found = _differences(folder)
    for line in found:
        say(line)
    if found:
        raise typer.Exit(1)
    say(f"{folder}: statement and page are those of the model, and all texts agree")


def _differences(folder: Path) -> list[str]:
    """Return in words where the folder of a release is not what follows from its model."""
    from dprepro import __version__
    from dprepro.release.folder import differences, read_text

    statement, found = differences(folder)
    if read_text(folder / PAGE) != _page(folder, statement):
        found.append(f"{PAGE}: not the page of model.json, as dprepro {__version__} draws it")
    return found


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
            help="Say, as the owner of the data, that the register of private data is lost for "
            "good: all releases so far then count against every dataset.",
        ),
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Folder of datasets.", show_default="$DPREPRO_DATA"),
    ] = None,
) -> None:
    """List the budget book: every release from this machine, and what the rows have spent in all.

    The book is private. It knows rows again by their files, their values and their card, and by
    keyed digests of some of their cells where rows, columns or format have changed.

    Example: dprepro budget
    """
    from dprepro.data.card import load_card
    from dprepro.release.book import accept_new_register, book_path, read_book
    from dprepro.release.likeness import Rows
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
    from dprepro.release.book import limits_of, total_spent

    say(", ".join(dict.fromkeys(entry.dataset for entry in account)))
    for entry in account:
        ledger = entry.spent
        _say(
            f"  {entry.date}  {entry.method}  {ledger.budget}, {ledger.adjacency}, for each "
            f"{ledger.unit}: {_STATES[entry.status]}"
        )
        for names, said in (
            (entry.like, "counted with others, since its rows are like those of"),
            (entry.other_people, "of other people, as its owner says, than the like rows of"),
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
