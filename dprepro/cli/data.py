"""`dprepro data`: list, fetch, verify and describe datasets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dprepro.cli.catalogue import Words, select, show_list
from dprepro.cli.options import ConfigName, Datasets
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError, nearest, nearest_names
from dprepro.runtime.text import json_text, shell, visible

if TYPE_CHECKING:
    from dprepro.data.card import Card
    from dprepro.data.dataset import Check
    from dprepro.data.describe import Column, Description

_FEW_COLUMNS = 100
_PUBLIC_WIDTH = 24
_PRIVATE = (
    "yes: the card has no checksum of what is loaded, or says `private: true`. The figures here "
    "are exact functions of the rows: keep them to yourself. To declare the rows public, give each "
    "source its `sha256` (what sha256sum prints for the file)"
)
_COUNTED = "the number of rows is exact"

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Built-in name, or path of a card.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of data files, laid out like adult/adult.data [$DPREPRO_DATA]."),
]

# Of the group below, for a word that looks like one of them.
_COMMANDS = ("list", "fetch", "check", "verify", "describe", "croissant", "export-splits")


class _ListOrCommand(TyperGroup):
    """A group of commands that takes any other word as a search word of its list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and not args[0].startswith("-")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


data = typer.Typer(
    cls=_ListOrCommand,
    help="List, fetch, verify and describe datasets. Without a command it lists them; other words "
    "are search words.\n\nExample: dprepro data describe adult",
)


@data.command("list")
def list_(words: Words = None) -> None:
    """List the built-in datasets: task, rows, columns and title.

    Example: dprepro data list wine
    """
    from dprepro.data.card import card_names, load_card

    cards = {name: load_card(name) for name in card_names()}
    found = _searched(words or [], {name: f"{c.title} {c.task}" for name, c in cards.items()})
    heads = ("dataset", "task", "rows", "columns", "title")
    rows = [_listed(cards[name]) for name in found]
    show_list([heads, *rows], figures=[2, 3])


def _searched(words: list[str], texts: dict[str, str]) -> list[str]:
    """Return the datasets that have the words; of a mistyped command, say which is near."""
    try:
        return select(words, texts, "dataset")
    except DpreproError as error:
        near = nearest_names(words[0], _COMMANDS)
        if near and len(words) > 1:
            raise DpreproError(f"{error}. Or did you mean `dprepro data {near[0]}`?") from None
        raise


def _listed(card: Card) -> tuple[str, ...]:
    expect = card.expect
    return (card.name, card.task, _count(expect.rows), _count(expect.columns), card.title)


@data.command()
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="Datasets, cards, and configs; a dataset's name wins."
        ),
    ],
    data_dir: DataDir = None,
) -> None:
    """Download what datasets and configs need and is not on this machine, and verify it.

    A config stands for all datasets that it and its includes name. Files in the data folder count.
    There is a line for each dataset: its size, which checksums of the card were compared, and the
    files. The exit code is 1 if one cannot be had; the line then says where to put it by hand.

    Example: dprepro data fetch adult

    Example: dprepro data fetch table3 quickstart
    """
    found = _show_states(_asked_for(names), data_dir, online=True)
    missed = sum(check.status != "ok" for check in found)
    if len(found) > 1:
        say(f"{len(found) - missed} of {len(found)} datasets are here and verified")
    if missed:
        raise typer.Exit(1)


def _asked_for(names: Sequence[str]) -> dict[str, bool]:
    """Return the datasets that are meant, and of each whether its published test rows are needed.

    Raises DpreproError if a name is neither that of a dataset nor that of a config.
    """
    from dprepro.data.card import card_names
    from dprepro.experiment.config import config_names, is_config, load_experiments
    from dprepro.runtime.files import is_file

    found: dict[str, bool] = {}
    for name in names:
        path, known = Path(name), [*card_names(), *config_names()]
        if not is_file(path) and name not in known:
            raise DpreproError(
                f"{name!r} is no dataset, no config and no file{nearest(path.stem, known) or '.'} "
                "`dprepro data` and `dprepro configs` list what there is"
            )
        if is_config(path) if is_file(path) else name not in card_names():
            for config in load_experiments(name):
                is_tested = config.evaluation == "test-set"
                found[config.card] = found.get(config.card, False) or is_tested
        else:
            found[name] = True
    return found


def _show_states(
    wanted: Mapping[str, bool], data_dir: Path | None, online: bool = False
) -> list[Check]:
    """Load datasets one after the other, say of each what is known of it, and return that."""
    from dprepro.cli import options
    from dprepro.data.dataset import check_dataset
    from dprepro.runtime.terminal import console, wrapped

    width, found = console().width, []
    for name, with_test in wanted.items():
        check = check_dataset(name, data_dir, online, with_test)
        options.warn(check.is_private, _COUNTED)
        text = f"{check.status:>7} {check.name}: {check.message}"
        lead, *lines = text.splitlines()
        say("\n".join(wrapped(lead, width, 8)))
        for line in lines:
            say("\n".join(wrapped(f"{' ' * 8}{line}", width, 10)))
        found.append(check)
    return found


@data.command()
def check(
    card: Annotated[Path, typer.Argument(help="Path of a card.")],
    rows: Annotated[
        bool,
        typer.Option(
            "--rows",
            help="Read the whole file, too, and report all that the card rules out at once.",
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Check a card: what is still to be filled in, and what is wrong. No row is read.

    Where the card's file is on this machine, the names of columns are compared with its header. A
    card whose file is not there, and that names no download, is refused.

    --rows reads every row: texts among numbers, values that are no category, missing values that
    the card does not allow, values outside of bounds. It names each column, and the first line
    where it is wrong. What it says depends on the rows: keep it to yourself if they are private.

    Example: dprepro data check datasets/adult.yaml

    Example: dprepro data check datasets/mushroom.yaml --rows
    """
    from dprepro.data.card import load_card
    from dprepro.data.dataset import check_names, header_names, missing_files

    if not card.is_file():
        raise DpreproError(f"no card at {card}; `dprepro new dataset DATA` writes one")
    found = load_card(card)
    if places := missing_files(found, data_dir):
        raise DpreproError(
            f"{card}: all is filled in, but there is no file at {' or '.join(map(str, places))}: "
            "correct `file`, or put the file there. Only `dprepro fit --table` does without it"
        )
    names = header_names(found, data_dir)
    if names is not None:
        check_names(found, names)
    said = f"{len(found.features)} features" if found.features else "no public domain"
    if rows:
        _check_rows(card, found, data_dir)
    read = "Every row was read, and keeps to it" if rows else "No row was read"
    say(f"{card}: complete: {found.task}, target {found.target}, {said}. {read}")
    if found.features and not rows:
        say(f"Whether the rows keep to it: dprepro data check {shell(card)} --rows reads them")
    if found.features and not found.domain_note:
        say("It does not say why its domain is public: add `domain_note`")
    if found.budget_limit is None:
        say("It sets no limit for what `dprepro release` may spend in all (`budget_limit`)")


def _check_rows(card: Path, found: Card, data_dir: Path | None) -> None:
    """Refuse rows that the card rules out, with all that is wrong at once."""
    from dprepro.cli import options
    from dprepro.data.dataset import load, names_in_words, outside_bounds, undeclared_missing

    options.warn(found.is_private(data_dir), options.ABOUT_ROWS)
    dataset = load(card, data_dir, with_test=True)
    names = undeclared_missing(dataset)
    problems = [*([names_in_words(names)] if names else []), *outside_bounds(dataset, found)]
    if problems:
        raise DpreproError("\n  ".join([f"{card}: the rows do not keep to the card:", *problems]))


@data.command()
def croissant(name: Name) -> None:
    """Print a card as Croissant 1.0 (JSON-LD), which catalogues of datasets read. No row is read.

    Example: dprepro data croissant adult
    """
    from dprepro.data.card import load_card
    from dprepro.data.describe import croissant as described

    typer.echo(json_text(described(load_card(name))))


@data.command()
def verify(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Built-in name, or path of a card; default: all."),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Compare the datasets on this machine with their cards; download nothing.

    The exit code is 1 if a dataset is wrong, or if the one that you name is not here.

    Example: dprepro data verify adult
    """
    from dprepro.data.card import card_names

    found = _show_states(dict.fromkeys([name] if name else card_names(), True), data_dir)
    if any(check.status == "wrong" or (name and check.status != "ok") for check in found):
        raise typer.Exit(1)


@data.command("export-splits")
def export_splits(
    config: ConfigName,
    output: Annotated[
        Path, typer.Option(help="File to write: .csv, .parquet or .pq.", show_default=False)
    ],
    dataset: Datasets = None,
    data_dir: DataDir = None,
) -> None:
    """Write which rows train and which test in each split of a config, for other programs.

    These are the splits of `dprepro run`. The file has a row for each row of a split: config,
    dataset, split, part (train or test), the row's number in the cleaned table, from 0, and the
    line of the file in which it begins, where that is known. Lines that begin with # (in Parquet:
    the metadata `dprepro`) say how the rows were split, and which files they come from.

    Example: dprepro data export-splits quickstart --output splits.csv
    """
    from dprepro.cli import options
    from dprepro.data.card import load_card
    from dprepro.experiment.config import load_experiments
    from dprepro.experiment.split_export import Experiment, check_suffix, write_splits
    from dprepro.runtime.errors import require_known
    from dprepro.runtime.terminal import counted

    check_suffix(output)
    configs = [(load_card(one.card).name, one) for one in load_experiments(config)]
    known = list(dict.fromkeys(name for name, _ in configs))
    for wanted in dataset or ():
        require_known(wanted, known, "--dataset: the config has no dataset", "")
    chosen = [one for name, one in configs if not dataset or name in dataset]
    found = [Experiment.of(one, data_dir) for one in chosen]
    options.warn(any(one.is_private for one in found), "the file has the exact number of rows")
    rows = write_splits(found, output)
    splits = counted(sum(len(one.keys) for one in found), "split")
    say(f"{output}: {rows:,} rows, {splits} of {counted(len(found), 'config')}")


@data.command()
def describe(
    name: Name,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a dataset: size, source, checksum, cleaning, and what is public about it.

    Example: dprepro data describe adult --json
    """

    from dprepro.data.card import load_card
    from dprepro.data.dataset import load
    from dprepro.data.describe import describe as description_of

    card = load_card(name)
    description = description_of(load(name, data_dir), card, card.fingerprint(data_dir))
    if as_json:
        typer.echo(json.dumps(description.to_json(), indent=2, allow_nan=False))
    else:
        _render(description)


def _render(description: Description) -> None:
    from rich.text import Text

    from dprepro.data.dataset import names_in_words
    from dprepro.runtime.terminal import StackedColumn, console, stacked_table, wrapped

    show_list([(key, value) for key, value in _facts(description).items() if value])
    columns = list(_alike(description.columns))
    names = [c.name if c is last else f"{c.name} … {last.name}" for c, last in columns]
    shown = [column for column, _ in columns]
    outside = ["" if c.outside is None else f"{c.outside:.2%}" for c in shown]
    parts = [
        StackedColumn("feature", [(Text(visible(name)),) for name in names]),
        StackedColumn("kind", [column.kind for column in shown]),
        StackedColumn("missing", [(Text(_count(c.missing)),) for c in shown], "right"),
        StackedColumn("outside", [(Text(text),) for text in outside], "right"),
        StackedColumn("public", [_public(column.public) for column in shown], least=_PUBLIC_WIDTH),
    ]
    console().print(stacked_table("", parts, 1, is_tight=True))
    if any(outside):
        said = "outside: the share of the rows whose value lies outside the public bounds"
        say("\n".join(wrapped(said, console().width)))
    if description.undeclared:
        say("\n".join(wrapped(names_in_words(description.undeclared), console().width)))


def _alike(columns: list[Column]) -> Iterator[tuple[Column, Column]]:
    """Yield (first, last) of each run of columns that differ only in the number in their names.

    Where there are few columns, each has a line of its own.
    """
    if len(columns) <= _FEW_COLUMNS:
        yield from ((column, column) for column in columns)
        return
    runs = itertools.groupby(
        columns, lambda column: (column.name.rstrip("0123456789"), replace(column, name=""))
    )
    for _, run in runs:
        members = list(run)
        yield members[0], members[-1]


def _facts(description: Description) -> dict[str, str]:
    positives = ""
    if description.positives is not None:
        share = description.positives / max(description.rows, 1)
        positives = f"{description.positives:,} ({share:.1%})"
    return {
        "dataset": f"{description.name}: {description.title}",
        "task": f"{description.task}, target {description.target}",
        "labels": ", ".join(description.labels or []),
        "target bounds": _target_bounds(description),
        "rows": _count(description.rows),
        "unit of privacy": _unit(description),
        "columns": _count(len(description.columns)),
        "positives": positives,
        "private": _PRIVATE if description.private else "",
        "source": description.source,
        "verified by": description.verified,
        "sha256": description.sha256,
        "values sha256": description.values_sha256,
        "fingerprint": description.fingerprint,
        "cleaning": description.cleaning_note,
        "public domain": _domain(description),
        "licence": description.licence,
        "citation": description.citation,
        "url": description.url,
    }


def _target_bounds(description: Description) -> str:
    if description.target_bounds is None:
        return ""
    said = _public(description.target_bounds)
    if description.target_outside is None:
        return said
    return f"{said} (outside: {description.target_outside:.2%} of the rows)"


def _unit(description: Description) -> str:
    from dprepro.privacy.budget import unit_in_words

    if description.unit is None or description.rows_per_unit is None:
        return ""
    said = unit_in_words(description.unit, description.rows_per_unit)
    return f"{said} ({_count(description.units)} of them)"


def _domain(description: Description) -> str:
    if not description.has_public_domain:
        none = "none: run it with `domain: observed`"
        return f"{none}. {description.domain_note}" if description.domain_note else none
    return description.domain_note or (
        "what the card says about the target, and below about each feature; it gives no reasons "
        "(`domain_note`)"
    )


def _public(public: list[float] | list[str] | None) -> str:
    if public is None:
        return "nothing"
    if all(isinstance(value, float) for value in public):
        return f"[{public[0]:,g}, {public[1]:,g}]"
    return ", ".join(map(str, public))


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
