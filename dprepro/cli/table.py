"""`dprepro table`: results as the documents print them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from dprepro.errors import DpreproError, nearest

if TYPE_CHECKING:
    from dprepro.published.document import Document
    from dprepro.report.results import Results


class TableFormat(str, Enum):
    """How to write a table."""

    RICH = "rich"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


# An index is read, not counted: no wider than this.
_INDEX_WIDTH = 100


@dataclass(frozen=True)
class _Part:
    """What one name stands for; `tables` are (document, table), None for all of them."""

    results: Results
    documents: list[Document]
    datasets: tuple[str, ...] = ()
    tables: tuple[tuple[str, str], ...] | None = None
    unprinted: bool = True


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("table")(table)


def table(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Datasets, configs, printed tables (2, table2, figure-2) or documents to show.",
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="auc, rmse, accuracy, ...; default: as printed.")
    ] = None,
    format: Annotated[
        TableFormat | None, typer.Option(help="How to write it.", show_default="rich")
    ] = None,
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

    Without arguments it lists what there is. Printed tables are laid out as in the document; the
    best of each row is bold, the non-private row last. Shown is what each config asks for now.

    Example: dprepro table --metric auc --compare --format markdown
    """
    from dprepro.published.document import select_documents
    from dprepro.report import render
    from dprepro.report.metrics import find_metric, tolerances
    from dprepro.report.tables import build_tables

    if metric is not None:
        find_metric(metric)
    widths, documents, found = tolerances(tolerance), select_documents(paper), read(results, config)
    chosen = (names, metric, format, dataset, config, paper, compare, true_epsilon)
    if not any(chosen):
        _print_index(found, documents, results)
        return
    whole = _Part(found, documents, unprinted=paper is None)
    parts = list(_parts(names, whole, results)) if names else [whole]
    titles, tables = method_titles(), []
    for part in parts:
        tables += [
            shown
            for shown in build_tables(
                part.results,
                part.documents,
                metric,
                (*(dataset or ()), *part.datasets),
                compare,
                widths,
                part.unprinted,
                titles,
                part.tables,
            )
            if shown not in tables
        ]
    style = render.Style(compare, true_epsilon)
    if format in (None, TableFormat.RICH):
        console().print(render.rich_tables(tables, style))
        return
    writers = {
        TableFormat.MARKDOWN: render.markdown_tables,
        TableFormat.LATEX: render.latex_tables,
        TableFormat.CSV: render.csv_tables,
        TableFormat.JSON: render.json_tables,
    }
    typer.echo(writers[format](tables, style))


def _print_index(found: Results, documents: list[Document], folder: Path) -> None:
    from dprepro.report.index import build_index, render_index

    width = min(console().width, _INDEX_WIDTH)
    typer.echo(render_index(build_index(found, documents), folder, width))


def _parts(names: list[str], whole: _Part, folder: Path) -> Iterator[_Part]:
    """Yield what each name stands for: a dataset, else a config, a printed table, a document."""
    cells = whole.results.cells
    datasets = {name for cell in cells for name in (cell.dataset, cell.task.dataset)}
    journals = dict.fromkeys(journal for cell in cells for journal in cell.journals)
    printed = [(d.paper, table) for d in whole.documents for table in d.tables]
    for name in names:
        number = name.removeprefix("table").lstrip("- ") or name
        tables = tuple(place for place in printed if place[1] in (name, number))
        documents = [d for d in whole.documents if name and d.paper.startswith(name)]
        if name in datasets:
            yield _Part(whole.results, whole.documents, (name,), unprinted=whole.unprinted)
        elif name in journals:
            yield _Part(read(folder, [name]), whole.documents, unprinted=whole.unprinted)
        elif tables:
            yield _Part(whole.results, whole.documents, tables=tables)
        elif documents:
            yield _Part(whole.results, documents, unprinted=False)
        else:
            known = [*datasets, *journals, *(table for _, table in printed)]
            raise DpreproError(
                f"nothing is called {name!r}{nearest(name, known) or '.'} A name is that of a "
                "dataset, of a config that was run, of a printed table or of a document; `dprepro "
                "table` lists them"
            )
