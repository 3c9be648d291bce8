"""`dprepro forensics`: which unstated settings explain a printed column, and which do not."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.journals import DEFAULT_FOLDER, Paper, ResultsFolder, read
from dprepro.cli.patience import Waiting


class ForensicsFormat(str, Enum):
    """How to write the hypotheses."""

    RICH = "rich"
    MARKDOWN = "markdown"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("forensics")(forensics)


def forensics(
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these datasets (repeatable).")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only the columns of these methods (repeatable).")
    ] = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    paper: Paper = None,
    hypotheses: Annotated[
        Path | None, typer.Option(help="File of hypotheses; default: the one of dprepro.")
    ] = None,
    format: Annotated[ForensicsFormat, typer.Option(help="Output format.")] = ForensicsFormat.RICH,
) -> None:
    """Show how far each hypothesis about an unstated setting lies from the printed column.

    z is the difference of the means, ours less the printed one, in standard errors. A setting that
    the authors used has a sum of z^2 of about the number of cells. (The sums of `dprepro check` are
    smaller: it squares normal scores of z.) Hypotheses come the nearest first. Without a choice of
    columns, only the findings are shown. `dprepro run forensics` runs all hypotheses.

    Example: dprepro forensics --dataset adult --method dpboost-2021
    """
    from dprepro.errors import DpreproError, nearest
    from dprepro.published.document import select_documents
    from dprepro.published.hypotheses import HYPOTHESES_FILE, load_hypotheses
    from dprepro.report.judge.forensics import columns_of
    from dprepro.report.read.results import journal_paths
    from dprepro.report.write.forensics import (
        json_columns,
        markdown_columns,
        render_columns,
        render_overview,
    )
    from dprepro.terminal import console
    from dprepro.text import json_text

    with Waiting() as waiting:
        waiting.step("reading the journals")
        names = [path.stem for path in journal_paths(results)]
        questions = load_hypotheses(hypotheses or HYPOTHESES_FILE)
        found = columns_of(questions, select_documents(paper), read(results, names))
    for option, wanted, known in (
        ("--dataset", dataset, {column.dataset for column in found}),
        ("--method", method, {column.question.method for column in found}),
    ):
        for name in wanted or []:
            if name not in known:
                raise DpreproError(
                    f"{option}: no hypothesis is about {name!r}"
                    f"{nearest(name, sorted(known)) or '.'} Allowed: {', '.join(sorted(known))}"
                )
    shown = [
        column
        for column in found
        if (not dataset or column.dataset in dataset)
        and (not method or column.question.method in method)
    ]
    if format is ForensicsFormat.JSON:
        typer.echo(json_text(json_columns(shown)))
    elif format is ForensicsFormat.MARKDOWN:
        typer.echo(markdown_columns(shown))
    else:
        is_chosen = dataset or method or paper
        console().print(render_columns(shown) if is_chosen else render_overview(shown))
        if not is_chosen:
            typer.echo("All hypotheses about some columns: --dataset, --method or --paper.")
