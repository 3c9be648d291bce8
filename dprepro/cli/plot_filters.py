"""`dprepro plot filters`: what locally linear maps and networks respond to."""

from __future__ import annotations

from typing import Annotated

import typer

from dprepro.cli.levels import repeated_levels
from dprepro.cli.plot import DEFAULT_OUTPUT, DataDir, Formats, Output, endings_of, plot, say_written


@plot.command()
def filters(
    config: Annotated[str, typer.Argument(help="Built-in name or path of a config.")],
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method or label; repeatable.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, repeated_levels("Only this epsilon; repeatable.")
    ] = None,
    row: Annotated[
        list[int] | None,
        typer.Option(help="Number of a test row to explain; repeatable; default 0 and 1."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of maps to draw for each row.")] = 3,
    split: Annotated[int, typer.Option(min=0, help="Fit to this split's training rows.")] = 0,
    name: Annotated[str, typer.Option(help="Name of the files.")] = "filters",
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    data_dir: DataDir = None,
) -> None:
    """Draw the filters with the largest weights in the prediction for some test rows.

    Filters of images are drawn as images: blue is evidence for the predicted class, red against
    it. Filters of tables are drawn as bars. For a network (mlp), its integrated gradient and its
    smoothed gradient are drawn.

    Example: dprepro plot filters fashion-mnist --method llm --method mlp --row 0 --row 7
    """
    from dprepro.cli import private
    from dprepro.config import load_config
    from dprepro.durable import owner_only
    from dprepro.inspect.explaining import explain
    from dprepro.inspect.fitting import choose_tasks
    from dprepro.report.draw.files import save_figures
    from dprepro.report.draw.filters import draw_filters

    experiment = load_config(config)
    tasks = choose_tasks(experiment, method or [], epsilon or [], split, data_dir, identify=False)
    private.warn(tasks[0].is_private, "the picture shows held-out rows")
    found = explain(experiment, tasks, row or [0, 1], top, data_dir)
    endings = endings_of(format)
    with owner_only(tasks[0].is_private):
        paths = save_figures({name: lambda: draw_filters(found)}, output, endings)
    say_written(paths)
