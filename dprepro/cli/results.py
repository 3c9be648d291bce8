"""`dprepro results`: check, repair and prune journals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.journals import DEFAULT_FOLDER, ResultsFolder
from dprepro.cli.streams import say
from dprepro.text import shell

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CONFIGS]...", help="Names of journals.", show_default="all"),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Check, repair and prune journals.\n\nExample: dprepro results verify adult",
        no_args_is_help=True,
        add_completion=False,
    )
    group.command("verify")(verify)
    group.command("repair")(repair)
    group.command("prune")(prune)
    app.add_typer(group, name="results")


def verify(names: Names = None, results: ResultsFolder = DEFAULT_FOLDER) -> None:
    """Read every line of the journals, and name those that are damaged.

    A line that dprepro wrote since version 0.2.0 has a checksum, so that no flipped bit goes
    unnoticed. Older lines have none ("without checksum"): their fields and keys are checked, and
    `dprepro results repair` gives them one. Superseded are records of tasks that ran again; unasked
    are records of tasks that the config no longer asks for. Neither is shown in tables.

    Exit code: 0 all lines are sound, 1 a line is damaged, 2 a mistake that you can correct.

    Example: dprepro results verify adult
    """
    from dprepro.experiment.mending import examine
    from dprepro.terminal import BareTable, console

    table = BareTable(
        ["journal"],
        ["records", "damaged", "without checksum", "superseded", "unasked"],
    )
    problems = []
    for path in _paths(results, names):
        found = examine(path)
        counts = (found.records, len(found.problems), found.unsealed, found.superseded, found.stale)
        table.add_row(path.stem, *map(str, counts))
        problems += [f"{path}, line {number}: {text}" for number, text in found.problems]
    console().print(table)
    for problem in problems:
        say(problem)
    if problems:
        say(
            "\nTables leave out a last line that a crash has torn, with a warning. They are not "
            "shown if there is other damage. `dprepro results repair` takes damaged lines out and "
            "keeps them beside the journal; `dprepro run` then runs their tasks again"
        )
        raise typer.Exit(1)


def repair(names: Names = None, results: ResultsFolder = DEFAULT_FOLDER) -> None:
    """Take damaged lines out of journals, and give all other lines a checksum.

    Damaged lines are kept in CONFIG.jsonl.damaged. The tasks whose records were damaged run again
    with the next `dprepro run`, and give the same results. Sound journals with checksums stay as
    they are.

    Example: dprepro results repair adult
    """
    from dprepro.config import to_run
    from dprepro.experiment.mending import repair as repair_one

    for path in _paths(results, names):
        found, kept = repair_one(path)
        done = []
        if kept is not None:
            numbers = ", ".join(str(number) for number, _ in found.problems)
            done.append(f"took out {_lines(len(found.problems))} ({numbers}), kept in {kept}")
        if found.unsealed:
            done.append(f"gave {_lines(found.unsealed)} a checksum")
        say(f"{path}: {'; '.join(done) or 'sound'}")
        if kept is not None:
            command = f"dprepro run {to_run(path.stem)} --results {shell(results)}"
            say(f"`{command}` runs what is missing")


def prune(
    names: Names = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and change nothing.")] = False,
) -> None:
    """Take out of journals what tables no longer show; the old journal is kept as .bak.

    What goes are records of tasks that ran again later, and of tasks that the config did not ask
    for at its last run. Tables stay the same. A setting that the config asks for again runs anew.

    Example: dprepro results prune adult --dry-run
    """
    from dprepro.experiment.mending import prune as prune_one

    for path in _paths(results, names):
        found, backup = prune_one(path, dry_run)
        counts = f"{found.superseded} superseded, {found.stale} unasked"
        if backup is not None:
            say(f"{path}: took out {counts} record(s); the old journal is {backup}")
        elif found.superseded or found.stale:
            say(f"{path}: would take out {counts} record(s)")
        else:
            say(f"{path}: nothing to take out")


def _paths(folder: Path, names: Sequence[str] | None) -> list[Path]:
    from dprepro.report.read.results import journal_paths

    return journal_paths(folder, names or ())


def _lines(number: int) -> str:
    return f"{number} line{'' if number == 1 else 's'}"
