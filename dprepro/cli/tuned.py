"""The option of all commands that score a config of `dprepro tune`."""

from __future__ import annotations

from typing import Annotated

import typer

AllowTunedSplits = Annotated[
    bool,
    typer.Option(
        "--allow-tuned-splits",
        help="Score a config of `dprepro tune` on the splits that chose its parameters.",
    ),
]
