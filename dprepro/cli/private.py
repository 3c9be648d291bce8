"""What commands say where they show private rows, or exact functions of them."""

from __future__ import annotations

import typer


def warn(is_private: bool, what: str) -> None:
    """Say on standard error that `what` is not for release, where the rows are private."""
    if is_private:
        typer.echo(f"PRIVATE DATA: {what}, which no epsilon covers: keep it to yourself", err=True)
