"""`dprepro methods`: all methods, with guarantee and assumptions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

if TYPE_CHECKING:
    from dprepro.methods.registry import Method


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("methods")(methods)


def methods(
    name: str | None = typer.Argument(None, help="Show only this method, with its parameters."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List all methods: kinds of task, guarantee, neighbouring relation, noise and assumptions.

    Example: dprepro methods dp-ebm-gdp
    """
    from dprepro.methods import registry

    chosen = [registry.get(name)] if name else list(registry.all_methods().values())
    if as_json:
        typer.echo(json.dumps([_as_dict(method) for method in chosen], indent=2))
    elif name:
        Console().print(_detail(chosen[0]))
    else:
        Console(highlight=False).print(_overview(chosen))


def _as_dict(method: Method) -> dict[str, object]:
    return {
        "name": method.name,
        "title": method.title,
        "tasks": sorted(method.tasks),
        "guarantee": method.guarantee.value,
        "unverified": method.is_unverified,
        "adjacency": method.adjacency,
        "noise": method.noise,
        "assumes": list(method.assumes),
        "takes_tables": method.takes_tables,
        "reference": method.reference,
        "parameters": dict(method.defaults),
    }


def _overview(chosen: list[Method]) -> Group:
    """Return one block for each method: a table of six columns is too wide for a terminal."""
    return Group(*(block for method in chosen for block in _block(method)))


def _block(method: Method) -> list[RenderableType]:
    from dprepro.privacy.unverified import UNTIL_RUN

    promise = f"guarantee {method.guarantee.value}"
    if method.adjacency:
        promise += f", neighbours {method.adjacency}"
    if method.noise:
        promise += f", noise: {method.noise}"
    if method.is_unverified:
        promise += f"; {UNTIL_RUN}"
    if method.takes_tables:
        promise += "; `fit --table` reads its rows in chunks"
    lines = [promise, *(f"- {text}" for text in method.assumes), method.reference]
    return [
        f"[bold]{method.name}[/]  {escape(method.title)} ({', '.join(sorted(method.tasks))})",
        Padding(escape("\n".join(lines)), (0, 0, 1, 4)),
    ]


def _detail(method: Method) -> Table:
    table = Table(title=method.title, show_header=False)
    for key, value in _as_dict(method).items():
        if isinstance(value, dict):
            text = "\n".join(f"{name} = {default!r}" for name, default in value.items())
        elif isinstance(value, list):
            text = "\n".join(map(str, value))
        else:
            text = str(value) if value is not None else ""
        table.add_row(key, escape(text) or "-")
    return table
