"""`dprepro plot margins`: how the boosting of a vote proceeded."""

from __future__ import annotations

from typing import Annotated

import typer

from dprepro.cli.levels import one_level
from dprepro.cli.plot import DEFAULT_OUTPUT, DataDir, Formats, Output, endings_of, plot, say_written
from dprepro.cli.tuned import AllowTunedSplits


@plot.command()
def margins(
    config: Annotated[str, typer.Argument(help="Built-in name or path of a config.")],
    method: Annotated[str, typer.Option(help="The method, by name or label.")] = "lazybb-1r",
    epsilon: Annotated[float | None, one_level("Its epsilon.")] = None,
    fits: Annotated[
        int | None, typer.Option(min=1, help="Number of splits to fit; default: all.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the files.")] = "margins",
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    data_dir: DataDir = None,
    allow_tuned_splits: AllowTunedSplits = False,
) -> None:
    """Draw the advantage of each boosting round, and the margins of the training rows.

    Both are exact functions of the training rows: do not release such a picture of private rows.

    Example: dprepro plot margins lazybb-figure1 --epsilon 1
    """
    from dprepro.cli import private
    from dprepro.config import load_config
    from dprepro.durable import owner_only
    from dprepro.inspect.fitting import choose_one
    from dprepro.inspect.voting import run_boosting
    from dprepro.report.draw.files import save_figures
    from dprepro.report.draw.margins import draw_margins

    experiment = load_config(config)
    tasks = [
        choose_one(experiment, method, epsilon, split, data_dir, identify=False)
        for split in range(min(fits or experiment.splits, experiment.splits))
    ]
    private.warn(tasks[0].is_private, "the picture shows exact advantages and margins")
    figure = draw_margins(run_boosting(experiment, tasks, data_dir, allow_tuned_splits))
    endings = endings_of(format)
    with owner_only(tasks[0].is_private):
        paths = save_figures({name: lambda: figure}, output, endings)
    say_written(paths)
