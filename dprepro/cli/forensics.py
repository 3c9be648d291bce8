"""`dprepro forensics`: which unstated settings explain a printed column, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import DEFAULT_FOLDER, Datasets, Paper, ResultsFolder, read
from dprepro.cli.streams import Waiting
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import json_text

if TYPE_CHECKING:
    from dprepro.judge.forensics import Judgement


class ForensicsFormat(str, Enum):
    """How to write the hypotheses."""

    RICH = "rich"
    MARKDOWN = "markdown"
    JSON = "json"


def forensics(
    dataset: Datasets = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only the columns of these methods (repeatable).")
    ] = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    paper: Paper = None,
    hypotheses: Annotated[
        Path | None, typer.Option(help="File of hypotheses; default: the one of dprepro.")
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="Choose settings on some cells, and judge them on others, once."
        ),
    ] = False,
    format: Annotated[ForensicsFormat, typer.Option(help="Output format.")] = ForensicsFormat.RICH,
) -> None:
    """Show how far each hypothesis about an unstated setting lies from the printed column.

    z is the difference of the means, ours less the printed one, in standard errors. A setting that
    the authors used has a sum of z^2 of about the number of cells. (The sums of `dprepro check` are
    smaller: it squares normal scores of z.) The nearest hypothesis comes first. Without a choice of
    columns, only the findings are shown. `dprepro run forensics` runs all hypotheses.

    A setting that was chosen by looking at printed numbers agrees with them more easily. With
    --held-out settings are chosen anew on one part of the cells, by the smallest sum of z^2, and
    judged on another; and columns whose settings were chosen are judged on splits of another seed.

    Example: dprepro forensics --dataset adult --method dpboost-2021
    """
    from dprepro.judge.forensics import columns_of, judge_held_out
    from dprepro.papers.document import select_documents
    from dprepro.papers.hypotheses import load_held_out, load_hypotheses
    from dprepro.report.forensics import (
        json_columns,
        markdown_columns,
        render_columns,
        render_overview,
    )
    from dprepro.results.folder import journal_paths
    from dprepro.runtime.terminal import console

    with Waiting() as waiting:
        waiting.step("reading the journals")
        names = [path.stem for path in journal_paths(results)]
        documents = select_documents(paper)  # opens the folder of a paper of one's own
        questions = load_hypotheses(hypotheses)
        measured = read(results, names)
        found = columns_of(questions, documents, measured)
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
    is_wanted = partial(_is_wanted, datasets=dataset, methods=method)
    shown = [column for column in found if is_wanted(column.dataset, column.question.method)]
    if held_out:
        judged = judge_held_out(load_held_out(hypotheses), questions, documents, measured)
        _show_held_out([one for one in judged if is_wanted(*one.place[2:])], format)
        return
    if format is ForensicsFormat.JSON:
        typer.echo(json_text(json_columns(shown)))
    elif format is ForensicsFormat.MARKDOWN:
        typer.echo(markdown_columns(shown))
    else:
        is_chosen = dataset or method or paper
        console().print(render_columns(shown) if is_chosen else render_overview(shown))
        if not is_chosen:
            typer.echo("All hypotheses about some columns: --dataset, --method or --paper.")


def _is_wanted(
    dataset: str, method: str, datasets: list[str] | None, methods: list[str] | None
) -> bool:
    return (not datasets or dataset in datasets) and (not methods or method in methods)


def _show_held_out(judgements: Sequence[Judgement], format: ForensicsFormat) -> None:
    from dprepro.report.forensics import json_held_out, markdown_held_out, render_held_out
    from dprepro.runtime.terminal import console

    if format is ForensicsFormat.JSON:
        typer.echo(json_text(json_held_out(judgements)))
    elif format is ForensicsFormat.MARKDOWN:
        typer.echo(markdown_held_out(judgements))
    elif judgements:
        console().print(render_held_out(judgements))
    else:
        typer.echo("No verdict: no column that was asked for was chosen and run in full.")
