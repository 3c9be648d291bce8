"""`dprepro ledger`: what a config spends. No private row is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("ledger")(ledger)


def ledger(
    config: Annotated[str, typer.Argument(help="Built-in name or path of a config.")],
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method or label; repeatable.")
    ] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="Only this epsilon.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the full ledgers as JSON.")
    ] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of datasets.")] = None,
) -> None:
    """Show every release of a config's private methods, and the epsilon that they spend.

    The ledger is that of a fit to random rows of the public domain, so no private row is read. With
    --method and --epsilon it is shown in full. The exit code is 2 if there is no ledger to show, or
    if a method that --method names fails.

    Example: dprepro ledger adult --method dp-ebm-gdp --epsilon 1
    """
    from dprepro.config import load_config
    from dprepro.inspect.ledgers import planned_ledgers
    from dprepro.report.write import ledgers as render

    found = planned_ledgers(
        load_config(config), tuple(method or ()), tuple(epsilon or ()), data_dir
    )
    console = Console(highlight=False)
    if as_json:
        typer.echo(json.dumps([render.ledger_json(planned) for planned in found], indent=1))
    elif method and epsilon:
        for planned in found:
            console.print(render.detail(planned))
    else:
        console.print(render.ledger_overview(found))
        console.print("\nTo see a ledger in full, give both --method and --epsilon.")
    if method and any(planned.error for planned in found):
        raise typer.Exit(2)
