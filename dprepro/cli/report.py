"""`dprepro report`: all results on one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.options import (
    DEFAULT_FOLDER,
    Configs,
    Margins,
    Paper,
    ResultsFolder,
    Shipped,
    method_titles,
    read,
    read_held_out,
    warn,
)
from dprepro.cli.show import check_page, write_page
from dprepro.cli.streams import Patience, say
from dprepro.runtime.files import require_writable


def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    shipped: Shipped = False,
    paper: Paper = None,
    margin: Margins = None,
) -> None:
    """Write one HTML page: tables, verdicts, figures, ledgers, audits, reasons of deviations.

    The page is a single file and needs no network. Any browser can sort, filter and print it, and
    save what it shows as CSV or JSON. Every cell opens to its runs. With our results it is smaller
    than 1.5 MB. The same journals give the same bytes, and nothing is trained. Documents of which
    no cell was run are left out. The folder of results may also hold audits (audit*.json), and
    saved models (models/*.json), whose shape functions are drawn. Figures need
    `pip install 'dprepro\\[plot]'`.

    Example: dprepro report --output report.html
    """
    from dprepro.judge.check import answered, check_documents
    from dprepro.judge.deviations import load_reviewed
    from dprepro.papers.document import select_documents
    from dprepro.report.draw.files import Workers
    from dprepro.report.layout import build_tables
    from dprepro.report.page.content import Sources, build_page, render_page
    from dprepro.report.page.figures import begin_shapes, figure_groups, overview
    from dprepro.results.audits import read_audits
    from dprepro.results.margins import margins
    from dprepro.results.runs import runs_of

    check_page(output)
    require_writable(output)
    widths, documents = margins(margin), select_documents(paper)
    with Patience() as patience, Workers() as workers:
        patience.step("reading the journals")
        shapes = begin_shapes(results, workers)
        found = read(results, config, shipped)
        patience.step("comparing the results with printed numbers")
        tables = build_tables(
            found,
            documents,
            compare=True,
            margins=widths,
            unprinted=paper is None,
            titles=method_titles(),
        )
        explained = load_reviewed()
        held_out = [] if config else read_held_out(results, found, documents)
        judged = check_documents(
            documents,
            found,
            explained.deviations,
            widths,
            claim_deviations=explained.claims,
            held_out=held_out,
        )
        if paper is None:
            # A page about somebody's own results does not list what no run of theirs answers to.
            judged, documents = answered(judged, documents)
            shown = {None, "", *(document.paper for document in documents)}
            tables = [table for table in tables if table.paper in shown]
        patience.step("reading the ledgers and machines of the runs")
        runs, audits = runs_of(found), read_audits(results)
        patience.step("drawing figures")
        figures = figure_groups(tables, judged, shapes, workers)
        patience.step("writing the page")
        sources = Sources(documents, tables, judged, runs, audits, figures, overview(judged))
        page = build_page(sources)
        # Lone surrogates, which JSON can hold, are gone by now; all else is UTF-8.
        written = render_page(page).encode()
    write_page(output, written, bool(page.private))
    warn(bool(page.private), "the page holds exact scores of private rows")
    say(f"{output}: {page.cells_in_words}, {_size(len(written))}")


def _size(count: int) -> str:
    """Return a number of bytes in words, with a digit that says something."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(count / 1e3, 1):.0f} kB"
