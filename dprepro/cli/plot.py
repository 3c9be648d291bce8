"""`dprepro plot`: results as pictures."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.journals import DEFAULT_FOLDER, Configs, Paper, ResultsFolder, method_titles, read


class FigureFormat(str, Enum):
    """File formats of pictures."""

    PNG = "png"
    SVG = "svg"


plot = typer.Typer(no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add `dprepro plot` to the command line."""
    app.add_typer(
        plot, name="plot", help="Draw results.\n\nExample: dprepro plot curves --metric auc"
    )


# Typer drops the name of a group's only command unless the group has a callback.
@plot.callback()
def _plot() -> None:
    pass


@plot.command()
def curves(
    metric: Annotated[
        str | None, typer.Option(help="auc, rmse, accuracy, ...; default: as printed.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these datasets (repeatable).")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only these methods, by label (repeatable).")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("out/figures"),
    format: Annotated[
        list[FigureFormat] | None, typer.Option(help="File format (repeatable); default: both.")
    ] = None,
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    paper: Paper = None,
) -> None:
    """Draw the metric against epsilon: a picture for each dataset and a grid of all.

    Filled markers and lines are measured, hollow markers published; bars are standard deviations
    over splits. The non-private twin of each method stands to the right.

    Example: dprepro plot curves --metric auc --output out/figures --format svg
    """
    from dprepro.published.document import select_documents
    from dprepro.report.curves import build_panels
    from dprepro.report.figures import write_figures
    from dprepro.report.metrics import find_metric
    from dprepro.report.tables import build_tables

    if metric is not None:
        find_metric(metric)
    tables = build_tables(
        read(results, config),
        select_documents(paper),
        metric,
        dataset or (),
        compare=True,
        unprinted=paper is None,
        titles=method_titles(),
    )
    endings = [chosen.value for chosen in format or FigureFormat]
    for path in write_figures(build_panels(tables, method or ()), output, endings):
        typer.echo(path)
