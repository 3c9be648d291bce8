"""The warning of commands that show private rows, or exact functions of them."""

from __future__ import annotations

import typer

SHOWS_SCORES = "the picture shows exact scores"


def warn(is_private: bool, what: str) -> None:
    """Print to standard error that `what` is not for release, if the rows are private."""
    if is_private:
        typer.echo(f"PRIVATE DATA: {what}, not covered by epsilon: keep it to yourself", err=True)
