"""`dprepro release` and `verify`: a model of all rows, and whether its folder is sound."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import DataDir, Encrypt, Store, one_level
from dprepro.cli.run import INTERRUPTED
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel
    from dprepro.methods.entry import Method
    from dprepro.release.statement import AuditRecord, Publisher

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
    method: Annotated[
        str | None,
        typer.Option(help="The method, by name.", show_default="DP-EBM+, as the card's task needs"),
    ] = None,
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
            help="State, as the owner of the data, that nobody in these rows is in an earlier "
            "release with rows that look like them, or of this card: the book and the statement "
            "record it, and such releases are not added up.",
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
    measure: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Spend this share of epsilon, such as 0.3, on how well the model predicts: on a "
            "fifth of the rows, which do not train it; also for the `subgroups` of the card.",
            show_default="nothing is measured",
        ),
    ] = None,
    attack: Annotated[
        int | None,
        typer.Option(
            min=40,
            metavar="MODELS",
            help="Attack so many models that are fitted like this one, such as 200, to drawn rows "
            "and a canary. It reads no private row and spends nothing; the statement has what it "
            "shows.",
            show_default="no attack",
        ),
    ] = None,
    attack_rows: Annotated[
        Path | None,
        typer.Option(
            "--attack-rows",
            metavar="FILE",
            help="Fit these models to rows of a public file with the columns of the card. That its "
            "rows are public is your word, and nothing protects them.",
            show_default="drawn rows",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="PATH",
            help="Release the rows of this table, in the place of the card's files, without having "
            "them in memory: a parquet file, a folder of parquet files, or a CSV file.",
            show_default="the card's files",
        ),
    ] = None,
    store: Store = None,
    encrypt: Encrypt = False,
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

    With --table the rows are those of a table in chunks, as for `dprepro fit --table`. If such a
    release is interrupted, the same command goes on where it was: no noise is drawn twice, and the
    book counts it once. With --encrypt it cannot go on, and counts. --measure and --attack-rows
    need the rows in memory.

    Example: dprepro release card.yaml --epsilon 1 --yes
    """
    from dprepro.release.publish import Request, plan_release, publish
    from dprepro.results.audits import WordsOf

    asked = Request(
        card, epsilon, delta, method, config, output, clip, allow_floating_point, allow_no_export,
        allow_large_delta, other_people, audits, data_dir, registry, measure, attack, attack_rows,
        table, store, encrypt,
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

    return model_page(
        model, publisher.title or publisher.dataset, MODEL, unit_title=publisher.unit_title
    )


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
    """Return what is on record of audits of a method on this kind of task, in a folder or with us.

    Of a method of one's own it is that very code, of others this version, or one that is not on
    record.
    """
    from dprepro.release.statement import AuditRecord
    from dprepro.results.audits import read_audits

    folders = dict.fromkeys((folder.resolve(), builtin("results").resolve()))
    return list(dict.fromkeys(
        AuditRecord(
            subject=audit.subject, epsilon=audit.epsilon, delta=audit.delta,
            lower_bound=audit.lower_bound, confidence=audit.confidence, trials=audit.trials,
            verdict=audit.verdict.value, date=audit.date, dprepro=audit.dprepro,
            method_version=audit.method_version,
        )
        for place in folders
        for audit in read_audits(place)
        if (audit.task, audit.method, audit.code or "") == (task, method.name, method.code)
        and audit.method_version in (None, method.version)
    ))  # fmt: skip


def verify(
    folder: Annotated[Path, typer.Argument(help="A folder that `dprepro release` wrote.")],
) -> None:
    """Check the statement of a release against its model file. The exit code is 1 if they differ.

    The statement is derived anew from the ledger in the model file. That the ledger lists all
    releases, and what the publisher says beside it, cannot be checked from the files. It is 1 for a
    release that was withdrawn, too, by its folder or by the budget book of this machine.

    Example: dprepro verify release
    """
    from dprepro.release.folder import differences
    from dprepro.release.withdrawal import found_withdrawn

    if folder.is_file():
        raise DpreproError(
            f"{folder} is a file: name the folder that `dprepro release` wrote. Of a model file "
            "alone, `dprepro ledger MODEL` says what it spends"
        )
    found = differences(folder, _page)
    for line in found:
        say(line)
    withdrawn = found_withdrawn(folder)
    if withdrawn:
        say(f"{folder}: withdrawn on {withdrawn.date}, do not use it: {withdrawn.reason}")
    if found or withdrawn:
        raise typer.Exit(1)
    say(f"{folder}: statement and page are those of the model, and all texts agree")
