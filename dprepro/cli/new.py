"""`dprepro new`: files to begin with: a card, a config, a paper, a private method."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import shell

if TYPE_CHECKING:
    from collections.abc import Mapping

Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


class Task(str, Enum):
    """Kinds of task that a new method can be for."""

    REGRESSION = "regression"
    BINARY = "binary"


new = typer.Typer(
    no_args_is_help=True,
    help="Write a card, a config, a paper or a method to begin with.\n\n"
    "Example: dprepro new dataset data.csv",
)


@new.command()
def dataset(
    data: Annotated[
        Path,
        typer.Argument(help="A CSV file with a header (or .csv.gz), an ARFF or a parquet file."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The card to write.", show_default="DATA.yaml"),
    ] = None,
    codebook: Annotated[
        Path | None,
        typer.Option(
            help="CSV with the columns name, type, lower, upper, categories (between |), missing, "
            "ordered, date, measured_in, description. Types: numeric, categorical, date, target, "
            "unit, drop, list, missing. docs/formats/tables.md describes it."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Of two classes the one to predict.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says whose row it is, if several "
                     "rows can be of one person."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that is not used. Repeatable."),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="What stands for a missing value in all columns, such "
                     "as -99. Repeatable."),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(metavar="MARK", help="What separates the fields of a CSV; `tab` for tabs.",
                     show_default="found out"),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Of a text file, such as utf8 or cp1252.", show_default="found out"),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(metavar="MARK", help="The decimal mark: . or ,", show_default="found out"),
    ] = None,
    thousands: Annotated[
        str | None,
        typer.Option(metavar="MARK", help="The mark of thousands: . , ' or a blank.",
                     show_default="found out"),
    ] = None,
    observed: Annotated[
        bool,
        typer.Option("--observed", help="For public data only: fill in bounds and categories with "
                     "values of the rows."),
    ] = False,
    force: Force = False,
) -> None:  # fmt: skip
    """Write the card of a dataset, to be filled in.

    Names and types of the columns are read from the file. Bounds, categories and labels are not:
    each is a place to fill in, FILL_IN, with a comment that says what goes there. A codebook fills
    them. How values are written is read, too: from it the card proposes lists such as no/yes,
    dates, decimal commas, codes of missing values, and columns to drop. Its head says what was
    read from rows. No command uses the card until all is filled in; `dprepro data check` says what
    is left.

    Example: dprepro new dataset data.csv --target returned --positive yes --missing -99
    """
    from dprepro.release.codebook import Codebook, missing_codes, read_codebook
    from dprepro.release.columns import read_columns
    from dprepro.release.new_card import Choices, card_name, check_format, new_card
    from dprepro.release.scaffold import write_new
    from dprepro.runtime.yaml_files import read_yaml

    separator = "\t" if separator in ("tab", "\\t") else separator
    keys = {"separator": separator, "encoding": encoding, "thousands": thousands}
    # Numbers with a decimal mark alone are written otherwise than both marks would be.
    check_format({**keys, "decimal": decimal or ("," if thousands == "." else None)})
    card = output or data.with_name(f"{card_name(data)}.yaml")
    lacking = tuple(missing or ())
    columns = read_columns(
        data,
        separator=separator,
        encoding=encoding,
        missing=(*lacking, *(() if codebook is None else missing_codes(codebook))),
        observed=observed,
    )
    known = Codebook() if codebook is None else read_codebook(codebook, columns.forms)
    choices = Choices(
        target=target, unit=unit, positive=positive, drop=tuple(drop or ()), missing=lacking,
        decimal=decimal, thousands=thousands,
    )  # fmt: skip
    written = new_card(data, columns, card, known, choices)
    write_new({card: written.text}, force)
    left = read_yaml(card, text_only=True).unfilled
    names = ", ".join(name or '""' for name in columns.forms)
    say(
        f"{card}: {len(columns.forms)} columns. Their names and types were read from the file, and "
        f"count as public from now on; {_what_was_taken(observed, bool(written.facts))}\n"
        f"Check that these are names, and not the values of a row: {names}"
    )
    if columns.doubtful:
        say(
            "Warning: a name that is also a value in its column: "
            f"{', '.join(columns.doubtful)}. If the first line of {data} is a row, delete {card}, "
            "put a line with the names before it, and write the card again",
            err=True,
        )
    for warning in written.warnings:
        say(f"Warning: {warning}", err=True)
    if observed:
        say(
            f"Warning: {card} holds values of the rows. It is for rows that are public: of private "
            "rows, the card and every model made with it disclose values, and no epsilon covers "
            "that. The card still says `private: true`; without --observed no value is taken",
            err=True,
        )
    if left:
        say(f"{len(left)} lines are to be filled in; then: dprepro data check {shell(card)}")
    elif codebook is not None:
        say(f"The codebook filled in all of it. Check it: dprepro data check {shell(card)}")
    else:
        say(f"Nothing is left to fill in. Check it: dprepro data check {shell(card)}")


def _what_was_taken(observed: bool, facts: bool) -> str:
    if observed:
        return "bounds and categories were read from the rows"
    if facts:
        return (
            "no bound and no value was taken from it. Proposals follow from how values are "
            "written; the head of the card says what was read from rows"
        )
    return "no bound, category or label was taken from it"


@new.command()
def config(
    card: Annotated[Path, typer.Argument(help="The card of the dataset, filled in.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The config to write.", show_default="CARD-study.yaml"),
    ] = None,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="The target of a regression is a count: fit its logarithm."),
    ] = False,
    force: Force = False,
) -> None:
    """Write a config that compares private methods on splits of a dataset. No row is read.

    Example: dprepro new config card.yaml
    """
    import os

    from dprepro.data.card import load_card
    from dprepro.experiment.config import load_config
    from dprepro.release.scaffold import config_text, write_new

    if not card.is_file():
        raise DpreproError(f"no card at {card}; `dprepro new dataset DATA` writes one")
    found = load_card(card)
    target = output or card.with_name(f"{card.stem}-study.yaml")
    place = os.path.relpath(card.resolve(), target.resolve().parent)
    write_new({target: config_text(found, place, counts)}, force)
    methods = [entry.label for entry in load_config(target).methods]
    say(f"{target}: {', '.join(methods)} on {found.name}. Run it: dprepro run {shell(target)}")


@new.command()
def method(
    name: Annotated[str, typer.Argument(help="What to call it, such as noisy-mean.")],
    task: Annotated[
        Task, typer.Option(help="What it predicts: a number, or one of two classes.")
    ] = Task.REGRESSION,
    folder: Annotated[Path, typer.Option(help="The folder of your methods.")] = Path("my_methods"),
    force: Force = False,
) -> None:
    """Write a small private method with a curator, a ledger, an audit case and a test.

    For regression it predicts a noisy mean; with --task binary it is naive Bayes of noisy counts.
    Its test passes as it stands: change the method step by step, as the comments in its curator
    say, and keep the test passing. Its ledger is your word: audit the method whenever it changes.

    Example: dprepro new method noisy-counts --task binary
    """
    from dprepro.methods import registry
    from dprepro.release.scaffold import method_files, package_of, write_new

    files = method_files(name, task.value)
    place = folder / package_of(name)
    if name in registry.all_methods() and not place.exists():
        raise DpreproError(f"there is a method called {name!r} already; choose another name")
    written: Mapping[Path, str] = {place / file: text for file, text in files.items()}
    write_new(written, force)
    say(
        f"{place}: {', '.join(files)}\n"
        f"Use it:  export {registry.PLUGIN_VARIABLE}={shell(folder)}; dprepro methods {name}\n"
        f"Test it: python -m pytest {shell(place)} (after `make install-dev` or `pip install "
        "pytest`)\n"
        f"Audit it, when {registry.PLUGIN_VARIABLE} is set: dprepro audit {name} "
        "--output results/audit.json"
    )


@new.command()
def paper(
    name: Annotated[str, typer.Argument(help="What to call it, such as smith-2026.")],
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it.", show_default="./NAME")
    ] = None,
    force: Force = False,
) -> None:
    """Write the folder of a paper: its layout, its printed cells and its claims, with comments.

    It is sound as it stands, with numbers of an example. Replace these by what the paper prints.

    Example: dprepro new paper smith-2026
    """
    from dprepro.papers.folders import paper_folders
    from dprepro.release.scaffold import paper_files, write_new

    files = paper_files(name)
    if name in paper_folders():
        raise DpreproError(f"there is a paper called {name!r} already; choose another name")
    place = folder or Path(name)
    written: Mapping[Path, str] = {place / file: text for file, text in files.items()}
    write_new(written, force)
    given = place if place.is_absolute() else f"./{place}"
    say(
        f"{place}: {', '.join(files)}\n"
        f"Check it: dprepro paper check {shell(given)}\n"
        f"In a config: published: {{paper: {given}, table: 1}}, a path from the config's folder"
    )
