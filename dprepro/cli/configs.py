"""`dprepro configs`: the configs that ship with dprepro."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("configs")(configs)


def configs(
    word: Annotated[
        str | None, typer.Argument(help="Only configs with this word in name or title.")
    ] = None,
) -> None:
    """List the configs that come with dprepro, with their titles.

    `dprepro run NAME` runs one, and `dprepro ledger NAME` shows what it spends.

    Example: dprepro configs adult
    """
    from dprepro.config import config_titles
    from dprepro.errors import DpreproError, nearest

    titles = config_titles()
    found = {n: t for n, t in titles.items() if word is None or word.lower() in f"{n} {t}".lower()}
    if not found:
        hint = nearest(str(word), list(titles))
        raise DpreproError(f"no config has {word!r} in its name or title{hint}")
    width = max(map(len, found))
    for name, title in found.items():
        typer.echo(f"{name:<{width}}  {title}".rstrip())
