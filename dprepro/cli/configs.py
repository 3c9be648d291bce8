"""`dprepro configs`: the configs that ship with dprepro."""

from __future__ import annotations

import typer

from dprepro.cli.finding import Words, select, show_list


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("configs")(configs)


def configs(words: Words = None) -> None:
    """List the configs that come with dprepro, with their titles.

    `dprepro run NAME` runs one, and `dprepro ledger NAME` shows what it spends.

    Example: dprepro configs adult
    """
    from dprepro.config import config_titles

    titles = config_titles()
    show_list([(name, titles[name]) for name in select(words or (), titles, "config")])
