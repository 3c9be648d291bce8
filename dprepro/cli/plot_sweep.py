"""`dprepro plot sweep`: a metric against a parameter."""

from __future__ import annotations

from typing import Annotated

import typer

from dprepro.cli.journals import DEFAULT_FOLDER, Configs, ResultsFolder, method_titles, read
from dprepro.cli.plot import DEFAULT_OUTPUT, Formats, Output, endings_of, plot, say_written
from dprepro.cli.private import SHOWS_SCORES, warn


@plot.command()
def sweep(
    parameter: Annotated[str, typer.Argument(help="The parameter, e.g. n_maps.")],
    metric: Annotated[str, typer.Option(help="auc, rmse, accuracy, ...")] = "accuracy",
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
) -> None:
    """Draw the metric against a parameter that the `grid` of a config varies.

    There is one picture for each dataset, with one curve for each method and privacy level. Bars
    are standard deviations over splits. A dotted line is the result for the parameter value none.

    Example: dprepro plot sweep n_maps --config mnist-maps --config mnist
    """
    from functools import partial

    from dprepro.durable import owner_only
    from dprepro.report.draw.files import save_figures
    from dprepro.report.draw.sweeps import build_sweeps, draw_sweeps
    from dprepro.report.read.metrics import find_metric
    from dprepro.text import file_names

    shown = find_metric(metric)
    held = read(results, config)
    found = build_sweeps(held, parameter, shown, method_titles())
    names = file_names(f"sweep-{parameter}-{dataset}" for dataset in found)
    figures = {
        name: partial(draw_sweeps, sweeps, parameter, shown, dataset)
        for name, (dataset, sweeps) in zip(names, found.items(), strict=True)
    }
    warn(held.is_private, SHOWS_SCORES)
    with owner_only(held.is_private):
        paths = save_figures(figures, output, endings_of(format))
    say_written(paths)
