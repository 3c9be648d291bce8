"""`dprepro check`: a verdict on every published number and claim."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.journals import (
    DEFAULT_FOLDER,
    Configs,
    Margins,
    Paper,
    ResultsFolder,
    read,
)
from dprepro.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.report.judge.check import CheckReport
    from dprepro.report.judge.rerun import RerunReport
    from dprepro.report.read.results import Results

# What --fast runs again: a config whose tasks are among those of the full configs.
FAST_CONFIG = "fast"


class CheckFormat(str, Enum):
    """How to write the outcome."""

    RICH = "rich"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("check")(check)


def check(
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    paper: Paper = None,
    margin: Margins = None,
    deviations: Annotated[
        Path | None, typer.Option(help="File of explained deviations; default: the one of dprepro.")
    ] = None,
    min_splits: Annotated[
        int | None,
        typer.Option(
            min=1, help="Judge a cell once this many of its splits have finished; default: all."
        ),
    ] = None,
    require_all: Annotated[
        bool, typer.Option("--require-all", help="Fail also if a cell was not run in full.")
    ] = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Run a few tasks again and compare them with published and committed results.",
        ),
    ] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of datasets, for --fast.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes, for --fast.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every cell with its numbers.")
    ] = False,
    format: Annotated[CheckFormat, typer.Option(help="Output format.")] = CheckFormat.RICH,
) -> None:
    """Compare results with every published number, and give a verdict on each.

    Claims of the documents that state numbers are judged as well. The margins are printed.
    Exit code: 0 if every deviation is explained, 1 if one is not, 2 if the command is wrong or a
    file cannot be read.

    Example: dprepro check --paper dp-ebm-2021 --verbose
    """
    from dprepro.published.deviations import (
        DEVIATIONS_FILE,
        load_claim_deviations,
        load_deviations,
    )
    from dprepro.published.document import select_documents
    from dprepro.report.judge.check import check_documents
    from dprepro.report.read.metrics import margins

    widths = margins(margin)
    documents = select_documents(paper)
    reviewed = deviations or DEVIATIONS_FILE
    explained, explained_claims = load_deviations(reviewed), load_claim_deviations(reviewed)
    rerun = None
    if fast:
        found, rerun, min_splits = _run_again(results, data_dir, jobs)
    else:
        found = read(results, config)
    report = check_documents(documents, found, explained, widths, min_splits, explained_claims)
    if fast:
        report = report.of_measured()
    if not (fast or report.measured):
        raise DpreproError(
            f"nothing to judge: the journals in {results} hold no result for a printed cell. "
            "`dprepro run adult` makes some"
        )
    _show(report, rerun, require_all, verbose, format)
    if not report.passes(require_all) or (rerun is not None and not rerun.passes):
        raise typer.Exit(1)


def _run_again(
    committed: Path, data_dir: Path | None, jobs: int | None
) -> tuple[Results, RerunReport, int]:
    """Run the fast config into a folder of its own; return its results and the comparison."""
    from tempfile import TemporaryDirectory

    from rich.console import Console

    from dprepro.config import load_config
    from dprepro.experiment.display import display_for
    from dprepro.experiment.journal import read_journal
    from dprepro.experiment.run import Options, journal_path, run
    from dprepro.report.judge.rerun import compare_records
    from dprepro.report.read.results import journal_paths

    before = [read_journal(path) for path in journal_paths(committed)]
    config = load_config(FAST_CONFIG)
    with TemporaryDirectory() as folder:
        options = Options(results=Path(folder), data_dir=data_dir, jobs=jobs)
        run(config, options, display_for(config, Console(stderr=True)))
        fresh = read_journal(journal_path(config, Path(folder)))
        found = read(Path(folder))
    committed_records = [record for contents in before for record in contents.records]
    rerun = compare_records(fresh.records, committed_records)
    return found, rerun, config.splits


def _show(
    report: CheckReport,
    rerun: RerunReport | None,
    require_all: bool,
    verbose: bool,
    format: CheckFormat,
) -> None:
    from dprepro.report.write.check import render_cells, render_check, render_rerun
    from dprepro.report.write.rows import check_json, rerun_json
    from dprepro.terminal import console

    if format is CheckFormat.JSON:
        outcome = check_json(report, require_all)
        if rerun is not None:
            outcome["rerun"] = rerun_json(rerun)
        typer.echo(json.dumps(outcome, indent=1, allow_nan=False, ensure_ascii=False))
        return
    screen = console()
    if verbose:
        screen.print(render_cells(report.verdicts))
    screen.print(render_check(report, require_all))
    if rerun is not None:
        screen.print(render_rerun(rerun))
