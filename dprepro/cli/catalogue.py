"""`dprepro configs`, `documents` and `methods`: what ships with dprepro, in searchable lists."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError, nearest

if TYPE_CHECKING:
    from dprepro.methods.entry import Method

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[WORD]...", help="Only what has all these words in name or title."),
]

_HEADS = ("method", "guarantee", "neighbours", "noise")


def select(words: Sequence[str], texts: Mapping[str, str], what: str) -> list[str]:
    """Return the names whose texts hold all the words, whatever their case.

    Raises
    ------
    DpreproError
        If there are none; it says which names are near, and that the list is shown without a word.
    """

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


def configs(words: Words = None) -> None:
    """List the configs that come with dprepro, with their titles.

    `dprepro run NAME` runs one, and `dprepro ledger NAME` shows what it spends.

    Example: dprepro configs adult
    """
    from dprepro.experiment.config import config_titles

    titles = config_titles()
    show_list([(name, titles[name]) for name in select(words or (), titles, "config")])


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


def methods(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME | WORD]...",
            help="A method, to show it with its parameters; or words, to list what has them.",
        ),
    ] = None,
    verbose: bool = typer.Option(
        False, "--verbose", "-v", help="Say also what each takes as public, and its reference."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List all methods: guarantee, neighbouring relation, and how noise is drawn.

    A method that is named in full is shown with its parameters.

    Example: dprepro methods dp-ebm-gdp
    """
    from dprepro.methods import registry

    known = registry.all_methods()
    is_one = words is not None and len(words) == 1 and words[0] in known
    chosen = [known[words[0]]] if words and is_one else _found(words or [], known)
    if as_json:
        typer.echo(json.dumps([_as_dict(method) for method in chosen], indent=2))
    elif is_one:
        _show_one(chosen[0])
    elif verbose:
        for method in chosen:
            _show_block(method)
    else:
        show_list([_HEADS, *(_row(method) for method in chosen)])


def _found(words: list[str], known: dict[str, Method]) -> list[Method]:
    texts = {name: f"{one.title} {one.reference} {_kinds(one)}" for name, one in known.items()}
    return [known[name] for name in select(words, texts, "method")]


def _kinds(method: Method) -> str:
    return ", ".join(sorted(method.tasks))


def _row(method: Method) -> tuple[str, ...]:
    unverified = " (unverified)" if method.is_unverified else ""
    return (
        method.name,
        _guarantee(method) + unverified,
        method.adjacency or "-",
        _noise(method) or "-",
    )


def _guarantee(method: Method) -> str:
    says = method.takes_epsilon and not method.is_unverified
    return method.guarantee.value + (_says_author(method) if says else "")


def _noise(method: Method) -> str:
    return f"{method.noise}{_says_author(method)}" if method.noise else ""


def _says_author(method: Method) -> str:
    return " (says its author)" if method.code else ""


def _as_dict(method: Method) -> dict[str, object]:
    return {
        "name": method.name,
        "title": method.title,
        "tasks": sorted(method.tasks),
        "guarantee": method.guarantee.value,
        "unverified": method.is_unverified,
        "authors_word": bool(method.code) and method.takes_epsilon,
        "adjacency": method.adjacency,
        "noise": method.noise,
        "assumes": list(method.assumes),
        "takes_tables": method.takes_tables,
        "reference": method.reference,
        "parameters": dict(method.defaults),
    }


def _show_block(method: Method) -> None:
    """Print what a method promises and takes as public, below its name."""
    from dprepro.privacy.guarantee_status import UNTIL_RUN
    from dprepro.runtime.terminal import console, wrapped

    width = console().width
    promise = f"guarantee {_guarantee(method)}"
    if method.adjacency:
        promise += f", neighbours {method.adjacency}"
    if method.noise:
        promise += f", noise: {_noise(method)}"
    if method.is_unverified:
        promise += f"; {UNTIL_RUN}"
    if method.takes_tables:
        promise += "; `fit --table` reads its rows in chunks"
    said = [promise, *(f"- {text}" for text in method.assumes), method.reference]
    say("\n".join(wrapped(f"{method.name}  {method.title} ({_kinds(method)})", width, 4)))
    for text in said:
        say("\n".join(wrapped(f"    {text}", width, 6)))
    typer.echo()


def _show_one(method: Method) -> None:
    rows = []
    for key, value in _as_dict(method).items():
        if isinstance(value, dict):
            texts = [f"{name} = {default!r}" for name, default in value.items()]
        elif isinstance(value, list):
            texts = [str(one) for one in value]
        else:
            texts = [] if value is None else [str(value)]
        rows += [(key if first else "", text) for first, text in _marked(texts or ["-"])]
    show_list(rows)


def _marked(texts: list[str]) -> list[tuple[bool, str]]:
    """Return each text after whether it is the first."""
    return [(position == 0, text) for position, text in enumerate(texts)]
