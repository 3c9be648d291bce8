"""`dprepro votes`: a vote of 1-Rules, shown as a table of features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.options import AllowTunedSplits, one_level
from dprepro.cli.streams import say


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("votes")(votes)


def votes(
    config: Annotated[str, typer.Argument(help="Built-in name or path of a config.")],
    method: Annotated[str, typer.Option(help="The method, by name or label.")] = "lazybb-1r",
    epsilon: Annotated[float | None, one_level("Its epsilon.")] = None,
    split: Annotated[int, typer.Option(min=0, help="Fit to this split's training rows.")] = 0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of datasets.", show_default="$DPREPRO_DATA")
    ] = None,
    allow_tuned_splits: AllowTunedSplits = False,
) -> None:
    """Fit a vote of 1-Rules and show it: the number of votes of each feature and value.

    A row with the value gets that many votes for the positive label; a row without the value
    gets as many for the negative label. A negative number of votes means the opposite.

    Example: dprepro votes lazybb-adult --epsilon 0.4
    """
    from dprepro.cli import options
    from dprepro.experiment.config import load_config
    from dprepro.release.explaining import fit_vote
    from dprepro.release.fitting import choose_one, describe
    from dprepro.runtime.errors import DpreproError
    from dprepro.runtime.terminal import BareTable, console

    experiment = load_config(config)
    task = choose_one(experiment, method, epsilon, split, data_dir, identify=False)
    model, metrics = fit_vote(experiment, task, data_dir, allow_tuned_splits)
    if model.base != "1r":
        raise DpreproError(
            f"{task.method} votes with trees; choose a method with 1-Rules, such as lazybb-1r"
        )
    table = BareTable(["feature", "value"], ["votes"], f"{describe(task)} on {task.dataset}")
    for row in model.votes_.itertuples():
        table.add_row(str(row.feature), str(row.value), f"{row.votes:+d}")
    console().print(table)
    options.warn(task.is_private, "the accuracy is exact")
    say(f"accuracy {metrics['accuracy']:.3f} on the test rows of split {split}")
