"""What the lists of configs, methods, datasets and documents share: search words, and columns."""

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
    from dprepro.errors import DpreproError, nearest

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
    from dprepro.terminal import aligned_list, console

    for line in aligned_list(rows, console().width, figures):
        say(line)
