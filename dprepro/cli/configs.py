"""`dprepro configs` and `dprepro documents`: what ships with dprepro.

`dprepro configs`: the configs that ship with dprepro.

What the lists of configs, methods, datasets and documents share: search words, and columns.

`dprepro documents`: the papers and slides whose printed numbers are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

import typer

from dprepro.cli.streams import say

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[WORD]...", help="Only what has all these words in name or title."),
]


def select(words: Sequence[str], texts: Mapping[str, str], what: str) -> list[str]:
    """Return the names whose texts hold all the words, whatever their case.

    Raises
    ------
    DpreproError
        If there are none; it says which names are near, and that the list is shown without a word.
    """
    from dprepro.runtime.errors import DpreproError, nearest

    found = [
        name
        for name, text in texts.items()
        if all(word.casefold() in f"{name} {text}".casefold() for word in words)
    ]
    if not found:
        asked = " and ".join(map(repr, words))
        raise DpreproError(
            f"no {what} has {asked} in its name or title"
            f"{nearest(words[0], texts, 3) or '.'} Without a word, all are listed"
        )
    return found


def show_list(rows: Sequence[Sequence[str]], figures: Collection[int] = ()) -> None:
    """Print rows below each other in columns."""
    from dprepro.runtime.terminal import aligned_list, console

    for line in aligned_list(rows, console().width, figures):
        say(line)


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    register_documents(app)
    app.command("configs")(configs)


def configs(words: Words = None) -> None:
    """List the configs that come with dprepro, with their titles.

    `dprepro run NAME` runs one, and `dprepro ledger NAME` shows what it spends.

    Example: dprepro configs adult
    """
    from dprepro.experiment.config import config_titles

    titles = config_titles()
    show_list([(name, titles[name]) for name in select(words or (), titles, "config")])


def register_documents(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("documents")(documents)


def documents(words: Words = None) -> None:
    """List the documents whose printed numbers are compared: printed cells, and titles.

    `dprepro table NAME` shows our results in their tables, and `dprepro check --paper NAME` gives a
    verdict on each number.

    Example: dprepro documents boosted
    """
    from dprepro.papers.document import load_documents

    known = load_documents()
    found = select(words or (), {name: one.title for name, one in known.items()}, "document")
    rows = [(name, f"{len(known[name].cells()):,} cells", known[name].title) for name in found]
    show_list(rows, figures=[1])
