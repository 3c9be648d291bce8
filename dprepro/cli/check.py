"""`dprepro check`: a verdict on every published number and claim."""

from __future__ import annotations

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
    read,
    read_held_out,
)
from dprepro.cli.streams import Waiting
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import owner_only
from dprepro.runtime.text import json_text

if TYPE_CHECKING:
    from dprepro.judge.check import Again, CheckReport, LeftOut, RerunReport
    from dprepro.results.folder import Results

# What --fast runs again: a config whose tasks are among those of the full configs.
FAST_CONFIG = "fast"


class CheckFormat(str, Enum):
    """How to write the outcome."""

    RICH = "rich"
    JSON = "json"


def check(
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    paper: Paper = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only the cells of these datasets (repeatable).")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Only the cells of these methods, as documents name them (repeatable)."),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--all",
            help="With --config, judge also what its results do not touch: other "
            "datasets, documents, and statements about cards and formulas.",
        ),
    ] = False,
    margin: Margins = None,
    deviations: Annotated[
        Path | None,
        typer.Option(help="File of reviewed deviations; default: the one of dprepro."),
    ] = None,
    min_splits: Annotated[
        int | None,
        typer.Option(
            min=1, help="Judge a cell once this many of its splits have finished; default: all."
        ),
    ] = None,
    require_all: Annotated[
        bool,
        typer.Option(
            "--require-all", help="Fail also if a cell that can be run was not run in full."
        ),
    ] = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Run a few tasks again and compare them with the journals; compare all cells and "
            "verdicts with the recorded ones; fail on stale explanations.",
        ),
    ] = False,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Write all cells and verdicts beside the journals, for --fast."
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

    Claims of the documents that state numbers are judged as well. The margins are printed. With
    --config, only the datasets of the tables that its results touch are judged, and the claims
    about them. Few cells of --dataset and --method are shown one by one.

    The first line and the last say how many cells were judged, and which were not run.

    Exit code: 0 if no deviation, claim that fails or column that differs is left without a review,
    whatever was not run; 1 if one is, if --fast finds a change, or if --require-all is given and a
    cell was not run in full; 2 if the command is wrong or a file cannot be read.

    Example: dprepro check --paper dp-ebm-2021 --verbose
    """
    from dprepro.judge.check import check_documents, selected, touched
    from dprepro.judge.deviations import load_claim_deviations, load_deviations
    from dprepro.papers.document import select_documents
    from dprepro.papers.schema import Selector
    from dprepro.results.margins import margins

    if record or fast:
        reviewed_by = deviations if record else None
        _refuse_parts(config, paper, dataset, method, margin, min_splits, reviewed_by)
    if record and fast:
        raise DpreproError("--fast compares with what --record writes: give one of them")
    widths = margins(margin)
    with Waiting() as waiting:
        waiting.step("reading the journals")
        documents = select_documents(paper)
        explained, explained_claims = load_deviations(deviations), load_claim_deviations(deviations)
        found = read(results, config)
        waiting.step("comparing the results with printed numbers and claims")
        held_out = [] if config else read_held_out(results, found, documents)
        report = check_documents(
            documents, found, explained, widths, min_splits, explained_claims, held_out=held_out
        )
    wanted = Selector(datasets=dataset or None, methods=method or None)
    left_out = None
    if dataset or method:
        report, left_out = selected(report, documents, wanted)
    elif config and not whole:
        report, left_out = touched(report, documents)
    if not report.measured and not fast:
        raise DpreproError(
            f"no verdict: the journals in {results} hold no result for "
            f"{'these cells' if dataset or method else 'a printed cell'}. "
            "`dprepro run adult` makes some"
        )
    if record:
        _record(found, report, results)
    again = _again(found, report, results, data_dir, jobs) if fast else None
    _show(report, left_out, again, require_all, verbose, format)
    if not report.passes(require_all) or (again is not None and not again.passes):
        raise typer.Exit(1)


def _refuse_parts(*parts: object) -> None:
    if any(part is not None for part in parts):
        raise DpreproError(
            "--record and --fast take all cells as they are: give them without --config, --paper, "
            "--dataset, --method, --margin and --min-splits, and --record without --deviations"
        )


def _rows(found: Results, report: CheckReport) -> list[dict[str, str]]:
    from dprepro.papers.document import select_documents
    from dprepro.report.layout import build_tables
    from dprepro.report.rows import recorded_rows

    return recorded_rows(build_tables(found, select_documents(), compare=True), report)


def _record(found: Results, report: CheckReport, folder: Path) -> None:
    from dprepro.judge.snapshot import NAME, recorded_text

    with owner_only(found.is_private):
        (folder / NAME).write_text(recorded_text(_rows(found, report)), encoding="utf-8")
    typer.echo(f"{folder / NAME}: written", err=True)


def _again(
    found: Results, report: CheckReport, folder: Path, data_dir: Path | None, jobs: int | None
) -> Again:
    """Compare with what was recorded, and with a few tasks that are run again."""
    from dprepro.judge.check import Again
    from dprepro.judge.snapshot import NAME, changes, read_recorded

    path = folder / NAME
    changed = changes(read_recorded(path), _rows(found, report)) if path.exists() else None
    stale = [*report.stale, *report.stale_claims]
    return Again(_run_again(folder, data_dir, jobs), changed, len(stale))


def _run_again(committed: Path, data_dir: Path | None, jobs: int | None) -> RerunReport:
    """Run the fast config into a folder of its own, and compare with the committed records."""
    from tempfile import TemporaryDirectory

    from dprepro.experiment.config import load_config
    from dprepro.experiment.display import display_for
    from dprepro.experiment.journal import read_journal
    from dprepro.experiment.run import Options, journal_path, run
    from dprepro.judge.check import compare_records
    from dprepro.results.folder import journal_paths
    from dprepro.runtime.terminal import error_console

    paths = journal_paths(committed)  # before anything runs
    config = load_config(FAST_CONFIG)
    with TemporaryDirectory() as folder:
        options = Options(results=Path(folder), data_dir=data_dir, jobs=jobs)
        run(config, options, display_for(config, error_console()))
        fresh = read_journal(journal_path(config, Path(folder)))
    keys = {record.task.key for record in fresh.records}
    committed_records = [r for path in paths for r in read_journal(path, keys).records]
    return compare_records(fresh.records, committed_records)


def _show(
    report: CheckReport,
    left_out: LeftOut | None,
    again: Again | None,
    require_all: bool,
    verbose: bool,
    format: CheckFormat,
) -> None:
    from dprepro.report.check import render_again, render_cells, render_check
    from dprepro.report.rows import again_json, check_json
    from dprepro.runtime.terminal import console

    if format is CheckFormat.JSON:
        outcome = check_json(report, require_all)
        if again is not None:
            outcome |= again_json(again)
        typer.echo(json_text(outcome))
        return
    screen = console()
    if verbose:
        screen.print(render_cells(report.verdicts))
    screen.print(render_check(report, require_all, left_out))
    if again is not None:
        screen.print(render_again(again))
