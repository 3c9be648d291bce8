"""`dprepro results`: check, repair, prune, pack and merge journals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from dprepro.cli.options import DEFAULT_FOLDER, OwnFolder
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import shell

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CONFIGS]...", help="Names of journals.", show_default="all"),
]

_Done = TypeVar("_Done")


results = typer.Typer(
    help="Check, repair, prune, pack and merge journals.\n\nExample: dprepro results verify adult",
    no_args_is_help=True,
    add_completion=False,
)


@results.command()
def verify(
    names: Names = None,
    results: OwnFolder = DEFAULT_FOLDER,
    record: Annotated[
        bool,
        typer.Option("--record", help="Write SHA256SUMS, the digests of all files of the folder."),
    ] = False,
) -> None:
    """Read every line of the journals, and name what is no longer as it was written.

    A line states a checksum of itself and of the line before, so a line that was changed, deleted,
    added, doubled or moved is named. Lines of earlier versions state less. The file SHA256SUMS
    beside the journals covers them, and all other files there: --record writes it. Unprotected are
    lines that neither covers. Superseded are records of tasks that ran again, and unasked those of
    tasks that the config no longer asks for. Neither is shown in tables. Missing are tasks without
    a record.

    Exit code: 0 all is as it was written, 1 something is not, 2 a mistake that you can correct.

    Example: dprepro results verify adult
    """
    from dprepro.experiment.journal import is_packed
    from dprepro.experiment.maintenance import (
        counted,
        difference,
        examine,
        read_sums,
        unrecorded,
        write_sums,
    )
    from dprepro.runtime.terminal import BareTable, console

    if names and record:
        raise DpreproError("--record is of the whole folder: leave the names of journals out")
    table = BareTable(
        ["journal"],
        ["records", "damaged", "unprotected", "superseded", "unasked", "missing"],
    )
    problems, notes, lines = [], [], 0
    sums = {} if record else read_sums(results)
    for path in _paths(results, names):
        try:
            found = examine(path)
        except DpreproError as error:
            problems.append(str(error))
            continue
        unprotected = 0 if path.name in sums or is_packed(path) else found.unchained
        counts = (len(found.problems), unprotected, found.superseded, found.stale, found.missing)
        table.add_row(path.stem, str(found.records), *map(str, counts))
        problems += [f"{path}, line {number}: {text}" for number, text in found.problems]
        lines += len(found.problems)
    differ = 0
    for name, told in sums.items():
        if not names or name in [path.name for path in _paths(results, names)]:
            text, since = difference(results / name, told)
            problems += [f"{results / name}, compared with SHA256SUMS: {text}"] if text else []
            notes += [f"{results / name}: {counted(since)} since it was recorded"] if since else []
            differ += bool(text)
    console().print(table)
    for line in (*problems, *notes):
        say(line)
    if lines:
        say(
            "\nTables leave out a last line that a crash has torn, with a warning. They are not "
            "shown if there is other damage. `dprepro results repair` takes damaged lines out, and "
            "keeps the old journal; `dprepro run` then runs their tasks again"
        )
    if differ:
        say(
            "\n`git diff` shows what changed in a file that git has. If the change is meant, "
            "`dprepro results verify --record` records it"
        )
    if problems:
        raise typer.Exit(1)
    if record:
        say(f"{results / 'SHA256SUMS'}: {len(write_sums(results))} files")
    elif sums and not names and (new := unrecorded(results, sums)):
        say(f"Not in SHA256SUMS: {', '.join(new)}. `--record` adds them")


@results.command()
def repair(names: Names = None, results: OwnFolder = DEFAULT_FOLDER) -> None:
    """Take damaged lines out of journals, and let each other line follow the one before it.

    The old journal is kept as .bak. The tasks whose records were damaged run again with the next
    `dprepro run`, and give the same results. Nothing brings back lines that were deleted: what is
    there counts from now on. Sound journals stay as they are.

    Example: dprepro results repair adult
    """
    from dprepro.experiment.config import to_run
    from dprepro.experiment.maintenance import counted
    from dprepro.experiment.maintenance import repair as repair_one

    for path, (found, kept) in _each(results, names, repair_one):
        if kept is None:
            say(f"{path}: sound")
            continue
        done = [f"{counted(len(found.problems))} not as written; the old journal is {kept}"]
        if found.damaged:
            numbers = ", ".join(map(str, found.damaged))
            done.append(f"took out {counted(len(found.damaged))} ({numbers})")
        say(f"{path}: {'; '.join(done)}")
        command = f"dprepro run {to_run(path.stem)} --results {shell(results)}"
        say(f"`{command}` runs what is missing")


@results.command()
def prune(
    names: Names = None,
    results: OwnFolder = DEFAULT_FOLDER,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and change nothing.")] = False,
) -> None:
    """Take out of journals what tables no longer show; the old journal is kept as .bak.

    What goes are records of tasks that ran again later, and of tasks that the config did not ask
    for at its last run. Tables stay the same. A setting that the config asks for again runs anew.

    Example: dprepro results prune adult --dry-run
    """
    from dprepro.experiment.maintenance import prune as prune_one

    for path, (found, backup) in _each(results, names, lambda path: prune_one(path, dry_run)):
        counts = f"{found.superseded} superseded, {found.stale} unasked"
        if backup is not None:
            say(f"{path}: took out {counts} record(s); the old journal is {backup}")
        elif found.superseded or found.stale:
            say(f"{path}: would take out {counts} record(s)")
        else:
            say(f"{path}: nothing to take out")


@results.command()
def pack(names: Names = None, results: OwnFolder = DEFAULT_FOLDER) -> None:
    """Pack finished journals: one Parquet file a config, a twentieth of the size, without loss.

    All commands read packed journals as they read lines, in a tenth of the time, and a run goes on
    from one. The file shows its columns to DuckDB, pandas and others (docs/formats/journal.md).

    Example: dprepro results pack adult
    """
    from dprepro.experiment.maintenance import pack as pack_one

    sized = _each(results, names, lambda path: (path.stat().st_size, pack_one(path)))
    for path, (before, into) in sized:
        if into is None:
            say(f"{path}: packed already")
        else:
            say(f"{into}: {_size(into.stat().st_size)}, was {_size(before)}")


@results.command()
def unpack(names: Names = None, results: OwnFolder = DEFAULT_FOLDER) -> None:
    """Write packed journals as lines again, byte for byte as they were.

    Example: dprepro results unpack adult
    """
    from dprepro.experiment.maintenance import unpack as unpack_one

    for path, into in _each(results, names, unpack_one):
        say(f"{path}: no packed journal" if into is None else into)


@results.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", show_default=False)],
    into: Annotated[Path, typer.Option(help="New folder of the joined journals.")],
) -> None:
    """Join the journals of several folders, such as those of several machines, in a new one.

    Of a task that finished in several folders the record of the first counts, and the command says
    whether the others agree with it. A task that failed in one folder and finished in another has
    finished.

    Example: dprepro results merge results/editing results/history/dropped --into merged
    """
    from dprepro.experiment.maintenance import merge as merge_all
    from dprepro.runtime.terminal import BareTable, console

    table = BareTable(["journal"], ["folders", "records", "repeated", "differing"])
    found = merge_all(folders, into)
    for one in found:
        counts = (one.folders, one.records, one.repeated, one.differing)
        table.add_row(one.name, *map(str, counts))
    console().print(table)
    if any(one.differing for one in found):
        say(
            "Differing tasks have other metrics in another folder, as with other versions of "
            "libraries or on other processors. The first folder counts"
        )


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.0f} KiB"


def _each(
    folder: Path, names: Sequence[str] | None, act: Callable[[Path], _Done]
) -> Iterator[tuple[Path, _Done]]:
    """Yield each journal with what `act` returns; where it fails, raise at the end, for all."""

    errors = []
    for path in _paths(folder, names):
        try:
            done = act(path)
        except DpreproError as error:
            errors.append(str(error))
            continue
        yield path, done
    if errors:
        raise DpreproError("\n".join(errors))


def _paths(folder: Path, names: Sequence[str] | None) -> list[Path]:
    from dprepro.results.folder import journal_paths

    return journal_paths(folder, names or ())
