"""`dprepro methods`: all methods, with guarantee and assumptions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.configs import select, show_list
from dprepro.cli.streams import say

if TYPE_CHECKING:
    from dprepro.methods.entry import Method

_HEADS = ("method", "guarantee", "neighbours", "noise")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("methods")(methods)


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
