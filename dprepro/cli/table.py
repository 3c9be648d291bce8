"""`dprepro table`: results in the layout of the documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import (
    DEFAULT_FOLDER,
    Configs,
    Margins,
    Paper,
    ResultsFolder,
    Shipped,
    ShownDatasets,
    ShownMethods,
    method_titles,
    own_papers,
    read,
)
from dprepro.cli.streams import Waiting, say
from dprepro.runtime.errors import DpreproError, nearest

if TYPE_CHECKING:
    from dprepro.papers.document import Document
    from dprepro.report.formatting import Style
    from dprepro.report.layout import ResultTable
    from dprepro.results.folder import Results
    from dprepro.results.margins import Margin

# The list of what there is holds sentences: longer lines are hard to read.
_INDEX_WIDTH = 100


class TableFormat(str, Enum):
    """How to write a table."""

    RICH = "rich"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True)
class _Part:
    """What one name stands for.

    `tables` are pairs (document, table), None for all tables. With `unprinted`, results that
    answer to no printed table are shown too.
    """

    results: Results
    documents: list[Document]
    tables: tuple[tuple[str, str], ...] | None = None
    unprinted: bool = True


def table(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Datasets, configs, printed tables (2, table2, figure-2) or documents to show.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="auc, rmse, accuracy, ...; default: that of the printed table."),
    ] = None,
    format: Annotated[
        TableFormat | None, typer.Option(help="Output format.", show_default="rich")
    ] = None,
    dataset: ShownDatasets = None,
    methods: ShownMethods = None,
    drop_empty: Annotated[
        bool,
        typer.Option("--drop-empty", help="Leave out rows and columns without any number."),
    ] = False,
    digits: Annotated[
        int | None,
        typer.Option(
            min=0, max=12, metavar="N", help="Digits after the point; default: as printed."
        ),
    ] = None,
    caption: Annotated[
        str, typer.Option(help="Caption of one table; in LaTeX it stands as it is.")
    ] = "",
    label: Annotated[
        str, typer.Option(help=r"What \ref calls one table in LaTeX, e.g. tab:adult.")
    ] = "",
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    shipped: Shipped = False,
    paper: Paper = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Add the published numbers and our verdicts.")
    ] = False,
    spent_epsilon: Annotated[
        bool,
        typer.Option(
            "--true-epsilon",
            help="Add the spent epsilon: what the answers of the ledger add up to.",
        ),
    ] = False,
    margin: Margins = None,
    spread: Annotated[
        bool,
        typer.Option(
            "--sd", help="Show standard deviations also where there is no room beside the mean."
        ),
    ] = False,
) -> None:
    """Show results: mean and standard deviation over splits, by epsilon and method.

    Without arguments the command lists what can be shown. Many methods stand below each other, in
    a block for each dataset; few stand beside each other. A star marks the best at each epsilon.
    Results are those that each config asked for at its last run. Of a run with --method or
    --epsilon, only what was run is shown.

    In LaTeX, tables need the package booktabs alone, and fit a paper of two columns. For such a
    paper: --dataset adult,telco --methods dp-ebm-plus,dp-ebm-gdp,dpboost --digits 2 --drop-empty
    --format latex

    Example: dprepro table --metric auc --compare --format markdown
    """
    from dprepro.experiment.method_names import split_names
    from dprepro.papers.document import select_documents
    from dprepro.report.formatting import Style
    from dprepro.report.selecting import select
    from dprepro.results.margins import find_metric, margins

    metric = find_metric(metric).name if metric else None
    chosen = (
        names,
        metric,
        format,
        dataset,
        config,
        paper,
        compare,
        spent_epsilon,
        spread,
        shipped,
        methods,
        drop_empty,
        digits is not None,
        caption,
        label,
    )
    format = format or TableFormat.RICH
    _require_place(caption, label, format)
    with Waiting() as waiting:
        waiting.step("reading the journals")
        widths, documents, found = (
            margins(margin),
            select_documents(paper),
            read(results, config, shipped),
        )
        whole = _Part(found, documents, unprinted=paper is None)
        tables: list[ResultTable] = []
        if any(chosen):
            parts = list(_parts(names, whole)) if names else [whole]
            waiting.step("laying out the tables")
            data = split_names(dataset or (), found.datasets)
            parts = _of_datasets(parts, found, data) if data else parts
            titles = method_titles()
            tables = _laid_out(parts, metric, compare, widths, titles)
            tables = select(tables, methods or (), data, digits, drop_empty, titles)
    for line in own_papers(found) if paper is None else ():
        say(line, err=True)
    if any(chosen):
        style = Style(compare, spent_epsilon, spread, digits, caption, label)
        _require_one(tables, style)
        _write(tables, style, format)
    else:
        _print_index(found, documents, results)


def _laid_out(
    parts: list[_Part],
    metric: str | None,
    compare: bool,
    widths: Mapping[str, Margin],
    titles: Mapping[str, str],
) -> list[ResultTable]:
    from dprepro.report.layout import build_tables

    tables: list[ResultTable] = []
    for part in parts:
        found = build_tables(
            part.results,
            part.documents,
            metric,
            (),
            compare,
            widths,
            part.unprinted,
            titles,
            part.tables,
        )
        tables += [shown for shown in found if shown not in tables]
    return tables


def _require_place(caption: str, label: str, format: TableFormat) -> None:
    if label and format is not TableFormat.LATEX:
        raise DpreproError("--label is for LaTeX: add --format latex, or leave it out")
    if caption and format in (TableFormat.CSV, TableFormat.JSON):
        raise DpreproError(f"{format.value} has no captions: leave out --caption")


def _require_one(tables: list[ResultTable], style: Style) -> None:
    if (style.caption or style.label) and len(tables) > 1:
        what = "--caption" if style.caption else "--label"
        raise DpreproError(
            f"{what} is for one table, and these are {len(tables)}: name one, such as "
            "`dprepro table 2 --paper dp-ebm-2021`, or choose with --metric and --dataset"
        )


def _write(tables: list[ResultTable], style: Style, format: TableFormat) -> None:
    from dprepro.report.latex import latex_tables
    from dprepro.report.rows import csv_tables, json_tables
    from dprepro.report.tables import markdown_tables, rich_tables
    from dprepro.runtime.terminal import console

    if format is TableFormat.RICH:
        console().print(rich_tables(tables, style))
        return
    writers = {
        TableFormat.MARKDOWN: markdown_tables,
        TableFormat.LATEX: latex_tables,
        TableFormat.CSV: csv_tables,
        TableFormat.JSON: json_tables,
    }
    # Click would leave out what looks like a colour.
    typer.echo(writers[format](tables, style), color=True)


def _print_index(found: Results, documents: list[Document], folder: Path) -> None:
    from dprepro.report.index import build_index, render_index
    from dprepro.runtime.terminal import console

    width = min(console().width, _INDEX_WIDTH)
    say(render_index(build_index(found, documents), folder, width))


def _of_datasets(parts: list[_Part], found: Results, datasets: list[str]) -> list[_Part]:
    """Keep the results of these datasets in each part; an error if none is left."""
    found.of_datasets(datasets)  # an error if there are none of one of them
    left = []
    for part in parts:
        known = [name for name in datasets if name in part.results.datasets]
        if known:
            left.append(replace(part, results=part.results.of_datasets(known)))
    if not left:
        raise DpreproError(
            f"the names given hold no results of dataset {' or '.join(datasets)}: leave out the "
            "names or --dataset"
        )
    return left


def _parts(names: list[str], whole: _Part) -> Iterator[_Part]:
    """Yield what each name stands for: a dataset, else a config, a printed table, a document."""
    results = whole.results
    for name in names:
        tables, documents = _printed(name, whole.documents)
        if name in results.datasets:
            yield replace(whole, results=results.of_datasets([name]))
        elif name in results.journals:
            yield replace(whole, results=results.of(name))
        elif tables:
            yield replace(whole, tables=tables)
        elif documents:
            yield replace(whole, documents=documents, unprinted=False)
        else:
            raise DpreproError(_unknown(name, whole))


def _printed(
    name: str, documents: list[Document]
) -> tuple[tuple[tuple[str, str], ...], list[Document]]:
    """Return the printed tables that a name means, and the documents."""
    number = name.removeprefix("table").lstrip("- ") or name
    printed = [(d.paper, table) for d in documents for table in d.tables]
    tables = tuple(place for place in printed if place[1] in (name, number))
    return tables, [d for d in documents if name and d.paper.startswith(name)]


def _unknown(name: str, whole: _Part) -> str:
    from dprepro.papers.document import select_documents

    if any(_printed(name, select_documents(None))):
        papers = " and ".join(document.paper for document in whole.documents)
        return (
            f"{name!r} is not part of {papers}, and --paper shows nothing else: leave out --paper"
        )
    tables = [table for document in whole.documents for table in document.tables]
    known = [*sorted(whole.results.datasets), *whole.results.journals, *tables]
    return (
        f"nothing is called {name!r}{nearest(name, known) or '.'} Allowed are datasets, configs "
        "that were run, printed tables and documents; `dprepro table` lists them"
    )
