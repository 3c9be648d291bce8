"""`dprepro table`: results as the documents print them."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from dprepro.cli.journals import (
    DEFAULT_FOLDER,
    Configs,
    Paper,
    ResultsFolder,
    Tolerances,
    console,
    method_titles,
    read,
)


class TableFormat(str, Enum):
    """How to write a table."""

    RICH = "rich"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("table")(table)


def table(
    metric: Annotated[
        str | None, typer.Option(help="auc, rmse, accuracy, ...; default: as printed.")
    ] = None,
    format: Annotated[TableFormat, typer.Option(help="How to write it.")] = TableFormat.RICH,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these datasets (repeatable).")
    ] = None,
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    paper: Paper = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Add published values and verdicts.")
    ] = False,
    true_epsilon: Annotated[
        bool, typer.Option("--true-epsilon", help="Add the epsilon that is really spent.")
    ] = False,
    tolerance: Tolerances = None,
) -> None:
    """Show results: rows epsilon, columns methods, mean and standard deviation over splits.

    Laid out as in the reproduced document; the best of each row is bold, the non-private row last.

    Example: dprepro table --metric auc --compare --format markdown
    """
    from dprepro.published.document import select_documents
    from dprepro.report import render
    from dprepro.report.metrics import find_metric, tolerances
    from dprepro.report.tables import build_tables

    if metric is not None:
        find_metric(metric)
    tables = build_tables(
        read(results, config),
        select_documents(paper),
        metric,
        dataset or (),
        compare,
        tolerances(tolerance),
        unprinted=paper is None,
        titles=method_titles(),
    )
    style = render.Style(compare, true_epsilon)
    if format is TableFormat.RICH:
        console().print(render.rich_tables(tables, style))
        return
    writers = {
        TableFormat.MARKDOWN: render.markdown_tables,
        TableFormat.LATEX: render.latex_tables,
        TableFormat.CSV: render.csv_tables,
        TableFormat.JSON: render.json_tables,
    }
    typer.echo(writers[format](tables, style))
