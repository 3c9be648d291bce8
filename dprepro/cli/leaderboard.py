"""`dprepro leaderboard`: private methods ranked over tables and privacy levels."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.compare import CompareFormat
from dprepro.cli.options import (
    DEFAULT_FOLDER,
    Datasets,
    ResultsFolder,
    Shipped,
    read,
    repeated_levels,
    warn,
)
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.files import builtin
from dprepro.runtime.text import in_short

if TYPE_CHECKING:
    from dprepro.methods.entry import Method
    from dprepro.results.audits import Audit

_PATTERN = "*board-*"

_BOARD = "board"
"""The folder, among the results that come with dprepro, of the runs of the board."""


class TaskOption(str, Enum):
    """A kind of task."""

    BINARY = "binary"
    MULTICLASS = "multiclass"
    REGRESSION = "regression"


def leaderboard(
    task: Annotated[TaskOption | None, typer.Option(help="Only tables of this kind.")] = None,
    epsilon: Annotated[
        list[float] | None, repeated_levels("Only this privacy level (repeatable).")
    ] = None,
    dataset: Datasets = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these methods, by label or name (repeatable); ranks are among them."
        ),
    ] = None,
    interpretable: Annotated[
        bool, typer.Option("--interpretable", help="Only methods whose model can be read.")
    ] = False,
    sound: Annotated[
        bool, typer.Option("--sound", help="Only methods whose ledgers back their guarantee.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Only methods without noise in floating point.")
    ] = False,
    audited: Annotated[
        bool,
        typer.Option("--audited", help="Only methods of which an audit is within what they state."),
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option(help="log_loss, mae, a scorer, ...; default: that of each config."),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            help="Only the journals of these configs (repeatable); * stands for anything.",
            show_default=_PATTERN,
        ),
    ] = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    shipped: Shipped = False,
    format: Annotated[CompareFormat, typer.Option(help="Output format.")] = CompareFormat.TABLE,
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as --format json, with every cell.")
    ] = False,
) -> None:
    """Rank private methods over tables and privacy levels, with what they cost and assume.

    It reads the journals of the configs board-TABLE, which `dprepro run board` writes in pieces; or
    those that come with dprepro, where there are none. Each kind of task has a board of its own,
    and where several have results, methods that take all kinds have one more. Methods are compared
    by their means over the same splits.

    A method that failed or was not run on a table is ranked last there, with the score of a
    constant, and a line says so. A table at an epsilon counts if more than half of the methods have
    results there; others are named.

    Any other configs can be read, too, such as those of DP-EBM+ that come with dprepro.

    Example: dprepro leaderboard --config plus-adult --config plus-telco --sound
    """
    from dprepro.judge.leaderboard import FILTERS, boards
    from dprepro.report.leaderboard import write_boards
    from dprepro.results.margins import find_metric
    from dprepro.runtime.terminal import console

    if metric is not None:
        find_metric(metric)
    come_with = builtin("results") if config else builtin("results") / _BOARD
    folder = results if config else _with_board(results)
    names = _journals(folder, config or [_PATTERN], come_with if shipped else None)
    found = read(folder, names, shipped, come_with)
    found = found.of_datasets(dataset) if dataset else found
    asked = {"interpretable": interpretable, "sound": sound, "exact": exact, "audited": audited}
    made = boards(
        found,
        _registry(),
        _audits(results),
        kind=task.value if task else None,
        epsilons=epsilon or (),
        methods=method or (),
        metric=metric,
        only=[name for name in FILTERS if asked[name]],
    )
    written = write_boards(made, "json" if as_json else format.value)
    if isinstance(written, str):
        typer.echo(written, color=True)  # Click would leave out what looks like a colour
    else:
        console().print(written)
    warn(found.is_private, "exact scores")


def _with_board(folder: Path) -> Path:
    """Return a folder, or the one in it that is for the board if it has no journals of one."""
    from dprepro.experiment.journal import journal_files

    inner = folder / _BOARD
    has_some = any(fnmatch(name, _PATTERN) for name in journal_files(folder))
    return inner if not has_some and journal_files(inner) else folder


def _journals(folder: Path, patterns: list[str], come_with: Path | None) -> list[str]:
    """Return the names of the journals that match. Raises DpreproError if a pattern has none."""
    from dprepro.experiment.journal import journal_files
    from dprepro.results.folder import journal_paths

    names = dict.fromkeys(path.stem for path in journal_paths(folder))
    if come_with is not None:
        names |= dict.fromkeys(journal_files(come_with))
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matching = [name for name in names if fnmatch(name, pattern)]
        if not matching:
            raise DpreproError(
                f"no journal {pattern!r} in {folder}{nearest(pattern, names, 3) or '.'} It has: "
                f"{in_short(list(names))}. `dprepro run board` writes those of the board, or "
                "`dprepro run board-pima` one of them; --shipped shows those that come with "
                "dprepro, and --config and --results name others"
            )
        chosen |= dict.fromkeys(matching)
    return list(chosen)


def _registry() -> Mapping[str, Method]:
    """Return all methods; none if one of the user's is broken."""
    from dprepro.methods.registry import all_methods

    try:
        return all_methods()
    except DpreproError as error:
        say(f"no method is known to be readable: {error}", err=True)
        return {}


def _audits(folder: Path) -> list[Audit]:
    """Return the audits in a folder, and those that come with dprepro."""
    from dprepro.results.audits import read_audits

    folders = dict.fromkeys(path.resolve() for path in (folder, builtin("results")))
    return [audit for each in folders for audit in read_audits(each)]
