"""`dprepro paper`: whether the folder of a paper is sound."""

from __future__ import annotations

from typing import Annotated

import typer

from dprepro.cli.streams import say
from dprepro.runtime.text import shell

paper = typer.Typer(
    no_args_is_help=True,
    help="Check the folder of a paper.\n\nExample: dprepro paper check dp-ebm-2021",
)


@paper.command()
def check(
    given: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder of a paper, or the name of one.")
    ],
) -> None:
    """Read all files of a paper, and list everything that is wrong, with its place.

    The exit code is 1 if anything is. What is printed is compared with nothing here: that is what
    `dprepro check --paper FOLDER` does.

    Example: dprepro paper check dp-ebm-2021
    """
    from dprepro.judge.paper_check import check_paper
    from dprepro.runtime.terminal import counted

    found = check_paper(given)
    for fault in found.faults:
        say(fault)
    for note in found.notes:
        say(f"Note: {note}")
    tables = ", ".join(f"{table} ({counted(n, 'cell')})" for table, n in found.cells.items())
    said = f"{counted(found.cells.total(), 'printed cell')}, {counted(found.claims, 'claim')}"
    if found.faults:
        say(f"{found.name}: {counted(len(found.faults), 'fault')}; {said}")
        raise typer.Exit(1)
    say(f"{found.name} is sound: {said}. Tables: {tables}")
    key = f"published: {{paper: {given}, table: {next(iter(found.cells))}}}"
    say(f"A config answers to it by `{key}`, a path from the config's folder")
    say(f"Then: dprepro check --paper {shell(given)}")
