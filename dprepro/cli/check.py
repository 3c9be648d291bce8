"""`dprepro check`: a verdict on every published number and claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprepro.cli.options import (
    DEFAULT_FOLDER,
    Configs,
    Margins,
    Paper,
    ResultsFolder,
    own_papers,
    read,
    read_held_out,
)
from dprepro.cli.streams import Waiting, say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import owner_only
from dprepro.runtime.text import json_text, one_line

if TYPE_CHECKING:
    from dprepro.experiment.config import ExperimentConfig
    from dprepro.experiment.journal import JournalContents
    from dprepro.judge.check import Again, CheckReport, LeftOut
    from dprepro.judge.rerun import Repeated, RerunReport, Sample
    from dprepro.papers.document import Document
    from dprepro.report.ci_formats import Case
    from dprepro.report.findings import Finding
    from dprepro.results.folder import Results
    from dprepro.runtime.terminal import Renderable

# What --fast runs again: a config whose tasks are among those of the full configs.
FAST_CONFIG = "fast"


class CheckFormat(str, Enum):
    """How to write the outcome."""

    RICH = "rich"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"
    MARKDOWN = "markdown"


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
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER_OR_REV",
            help="Compare with earlier results instead of printed numbers: those of a folder, or "
            "of the results folder at a git revision, such as main.",
        ),
    ] = None,
    record_baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep a packed copy of the results there, for --baseline; it replaces an earlier "
            "copy of the same configs.",
        ),
    ] = None,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Run a few tasks again and compare them with the journals; compare all cells and "
            "verdicts with the recorded ones; fail on stale explanations. With --config, run a few "
            "tasks of these configs again, and nothing else.",
        ),
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="For --fast --config: by how much a metric may differ from its record, in its own "
            "units.",
            show_default="0, to the last digit",
        ),
    ] = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Write all cells and verdicts beside the journals, for --fast."
        ),
    ] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of datasets, for --fast.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes, for --fast.")] = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Show the map of all cells, every reason, claim and note; also for "
            "--format markdown.",
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="The same, and every cell with its numbers.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print one line if the check passes.")
    ] = False,
    format: Annotated[
        CheckFormat,
        typer.Option(help="Output format: for readers, for programs, or as CI services read it."),
    ] = CheckFormat.RICH,
) -> None:
    """Compare results with every published number, and give a verdict on each.

    Claims of the documents that state numbers are judged as well. The margins are printed. With
    --config, only the datasets of the tables that its results touch are judged, and the claims
    about them. Few cells of --dataset and --method are shown one by one.

    The first line says how many cells were judged, and which were not run. What needs attention
    follows, in 25 lines at most; --details shows all.

    With --baseline, each cell is compared with its earlier result on the same splits, by the paired
    tests of `dprepro compare`: better, worse, equivalent within the margin, or inconclusive. The
    exit code is 1 if a cell is worse or has no result any more, or a fit fails that had finished.

    With --fast --config, splits 0 and 1 of each dataset and method, at its lowest and its highest
    epsilon, are run again, and their metrics have to be those of the records.

    Exit code: 0 if no deviation, claim that fails or column that differs is left without a review,
    whatever was not run; 1 if one is, if --fast finds a change, or if --require-all is given and a
    cell was not run in full; 2 if the command is wrong or a file cannot be read.

    Example: dprepro check --paper dp-ebm-2021 --details

    Example: dprepro check --config adult --format junit

    Example: dprepro check --config adult --baseline HEAD

    Example: dprepro check --fast --config quickstart --tolerance 1e-9
    """
    from dprepro.experiment.changed_code import warn_of_changed_code
    from dprepro.judge.check import check_documents, selected, touched
    from dprepro.judge.deviations import load_reviewed
    from dprepro.papers.document import select_documents
    from dprepro.papers.schema import Selector
    from dprepro.report.check import FEW_CELLS
    from dprepro.results.margins import margins

    if quiet and (details or verbose or format is not CheckFormat.RICH):
        raise DpreproError("--quiet prints one line: leave out --details, --verbose and --format")
    view = View(format, details or verbose, verbose, quiet)
    if baseline is not None or record_baseline is not None:
        if any((paper, whole, deviations, min_splits, require_all, fast, record, tolerance)):
            raise DpreproError(
                "--baseline and --record-baseline take --results, --config, --dataset, --method "
                "and --margin: leave out the other options"
            )
        if record_baseline is not None:
            _record_baseline(results, config, record_baseline)
        if baseline is not None:
            _check_baseline(baseline, results, config, dataset, method, margin, view)
        return
    if fast and config:
        parts = (paper, dataset, method, whole, margin, deviations, min_splits)
        if any(parts) or require_all or record:
            raise DpreproError(
                "--fast --config takes --results, --data-dir, --jobs and --tolerance: leave out "
                "the other options"
            )
        _check_again(config, results, data_dir, jobs, tolerance or 0.0, view)
        return
    if tolerance is not None:
        raise DpreproError("--tolerance is for --fast --config CONFIG: add these, or leave it out")
    if record or fast:
        reviewed_by = deviations if record else None
        _refuse_parts(config, paper, dataset, method, margin, min_splits, reviewed_by)
    if record and fast:
        raise DpreproError("--fast compares with what --record writes: give one of them")
    widths = margins(margin)
    with Waiting() as waiting:
        waiting.step("reading the journals")
        found = read(results, config)
        paper = paper or (_paper_of(found) if config else None)
        documents = select_documents(paper)
        reviewed = load_reviewed(deviations)
        waiting.step("comparing the results with printed numbers and claims")
        held_out = [] if config else read_held_out(results, found, documents)
        report = check_documents(
            documents, found, reviewed.deviations, widths, min_splits, reviewed.claims,
            held_out=held_out,
        )  # fmt: skip
    wanted = Selector(datasets=dataset or None, methods=method or None)
    left_out = None
    if dataset or method:
        report, left_out = selected(report, documents, wanted)
    elif config and not whole:
        report, left_out = touched(report, documents)
    own = own_papers(found) if paper is None else []
    if not report.measured and not fast:
        ways = own or ([_how_to_answer(found, documents[0], paper)] if paper else [])
        if dataset or method or not any(ways):
            ways = ["`dprepro run adult` makes some"]
        raise DpreproError(
            f"no verdict: the journals in {results} hold no result for "
            f"{'these cells' if dataset or method else 'a printed cell'}. {'. '.join(ways)}"
        )
    for line in own:
        say(line, err=True)
    warn_of_changed_code(one for journal in found.held for one in journal.own_ledgers)
    if record:
        _record(found, report, results)
    again = _again(found, report, results, data_dir, jobs) if fast else None
    few = bool(dataset or method) and len(report.verdicts) <= FEW_CELLS
    view = replace(view, details=view.details or few)
    _show(_answer(report, left_out, again, require_all, view), view)
    if not report.passes(require_all) or (again is not None and not again.passes):
        raise typer.Exit(1)


def _paper_of(found: Results) -> str | None:
    """Return the folder of the user's own paper that all these configs answer to, if it is here."""
    from dprepro.papers.folders import FOLDER, folder_beside

    named = {plan.paper for plan in found.plans.values()} - {None}
    name = named.pop() if len(named) == 1 else None
    if name is None or (FOLDER / name).is_dir():
        return None
    folder = folder_beside(name)
    return None if folder is None else f"./{folder}"


def _how_to_answer(found: Results, document: Document, given: str) -> str:
    """Say which configs name no document, and how they name this one; empty if all name one."""
    from dprepro.runtime.text import in_short

    others = [name for name, plan in found.plans.items() if plan.paper is None]
    if not others:
        return ""
    it = "it" if len(others) == 1 else "them"
    table = next(iter(document.tables))
    return (
        f"{in_short(others)} {'does' if len(others) == 1 else 'do'} not name {given}: add "
        f"`published: {{paper: {given}, table: {table}}}` to {it}, the path from the config's "
        "folder, and give `dprepro run` again, which keeps what has finished"
    )


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
        (folder / NAME).write_text(
            recorded_text(_rows(found, report)), encoding="utf-8", newline="\n"
        )
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
    from dprepro.experiment.config import load_config
    from dprepro.experiment.journal import read_journal
    from dprepro.judge.rerun import compare_records
    from dprepro.results.folder import journal_paths

    paths = journal_paths(committed)  # before anything runs
    fresh = _run_aside(load_config(FAST_CONFIG), data_dir, jobs)
    keys = {record.task.key for record in fresh.records}
    committed_records = [r for path in paths for r in read_journal(path, keys).records]
    return compare_records(fresh.records, committed_records)


def _record_baseline(results: Path, configs: list[str] | None, folder: Path) -> None:
    """Write packed copies of the journals into a folder."""
    from dprepro.experiment.maintenance import keep
    from dprepro.results.folder import journal_paths

    found = read(results, configs)  # what cannot be read is no baseline
    with owner_only(found.is_private):
        for name in found.journals:
            typer.echo(f"{keep(journal_paths(results, [name])[0], folder)}: written", err=True)


def _check_baseline(
    given: str,
    results: Path,
    configs: list[str] | None,
    datasets: list[str] | None,
    methods: list[str] | None,
    margin: list[str] | None,
    view: View,
) -> None:
    """Compare with earlier results, and show what was found."""
    from dprepro.judge.baseline import compare_with_baseline
    from dprepro.report import baseline as written
    from dprepro.results.folder import journal_paths
    from dprepro.results.margins import margins
    from dprepro.results.revision import earlier_results

    widths = margins(margin)
    with Waiting() as waiting, earlier_results(given, results) as (folder, name):
        waiting.step("reading the journals")
        now = read(results, configs)
        both = [path.stem for path in journal_paths(folder) if path.stem in now.journals]
        if not both:
            raise DpreproError(
                f"{name} has no journal of {', '.join(now.journals)}: `dprepro check "
                "--record-baseline FOLDER` keeps one"
            )
        waiting.step("comparing with the baseline")
        # Without --config also those that are gone now, and would be missed.
        before = read(folder, both if configs else None)
        report = compare_with_baseline(now, before, name, widths, datasets or (), methods or ())
    answer = Answer(
        written.outcome_of_baseline(report),
        report.passes,
        list(written.findings_of_baseline(report)),
        lambda: written.json_of_baseline(report),
        lambda: written.cases_of_baseline(report),
        lambda: written.markdown_of_baseline(report, view.details),
        lambda: [
            (written.details_of_baseline if view.details else written.screen_of_baseline)(report)
        ],
    )
    _show(answer, view)
    if not report.passes:
        raise typer.Exit(1)


def _run_aside(
    config: ExperimentConfig, data_dir: Path | None, jobs: int | None, sample: Sample | None = None
) -> JournalContents:
    """Run a config, or a sample of it, into a folder that is gone afterwards.

    Raises DpreproError if faults of the machine left a task without a record.
    """
    from tempfile import TemporaryDirectory

    from dprepro.experiment.display import display_for
    from dprepro.experiment.journal import read_journal
    from dprepro.experiment.run import Options, journal_path, run
    from dprepro.runtime.terminal import error_console

    with TemporaryDirectory() as folder:
        options = Options(
            results=Path(folder),
            data_dir=data_dir,
            jobs=jobs,
            cells=sample.cells if sample else None,
            allow_tuned_splits=sample is not None,  # they were scored on these before
        )
        ended = run(config, options, display_for(config, error_console()))
        if sample and ended.unfinished:
            faults = "; ".join(f"{label}: {fault}" for label, fault in ended.unfinished)
            raise DpreproError(
                f"{config.name}: the machine stopped tasks each time ({faults}), so they could not "
                "be compared. Mend that, then give the same command again"
            )
        return read_journal(journal_path(config, Path(folder)))


def _check_again(
    configs: list[str],
    results: Path,
    data_dir: Path | None,
    jobs: int | None,
    tolerance: float,
    view: View,
) -> None:
    """Run a sample of configs again, compare it with their records, and show what was found."""
    from dprepro.report import rerun as written

    if not math.isfinite(tolerance):
        raise DpreproError(f"--tolerance {tolerance}: give a number such as 1e-9, or 0")
    found = [_repeated(name, results, data_dir, jobs, tolerance) for name in configs]
    passes = written.passes_again(found)
    answer = Answer(
        written.outcome_of_rerun(found),
        passes,
        list(written.findings_of_rerun(found)),
        lambda: written.json_of_rerun(found),
        lambda: written.cases_of_rerun(found),
        lambda: written.markdown_of_rerun(found),
        lambda: [(written.details_of_rerun if view.details else written.screen_of_rerun)(found)],
    )
    _show(answer, view)
    if not passes:
        raise typer.Exit(1)


def _repeated(
    given: str, results: Path, data_dir: Path | None, jobs: int | None, tolerance: float
) -> Repeated:
    from dprepro.cli.options import assumed_plan
    from dprepro.experiment.config import config_names, load_config
    from dprepro.experiment.journal import read_journal
    from dprepro.judge.rerun import compare_sample, sample_of
    from dprepro.results.folder import journal_paths, read_journals

    here = Path(f"{given}.yaml")
    is_here = given not in config_names() and not Path(given).is_file() and here.is_file()
    config = load_config(here if is_here else given)
    (path,) = journal_paths(results, [config.name])
    (journal,) = read_journals(results, [config.name], assumed_plan)
    sample = sample_of(journal)
    recorded = read_journal(path, {task.key for task in sample.tasks})  # before anything runs
    fresh = _run_aside(config, data_dir, jobs, sample)
    return compare_sample(sample, recorded, fresh, tolerance)


@dataclass(frozen=True)
class View:
    """How to show a check, and how much of it."""

    format: CheckFormat
    details: bool
    verbose: bool
    quiet: bool


@dataclass(frozen=True)
class Answer:
    """A check in each form; but for the first three, a form is made when it is asked for."""

    outcome: str
    passes: bool
    findings: Sequence[Finding]
    json: Callable[[], Mapping[str, Any]]
    cases: Callable[[], Iterable[Case]]
    markdown: Callable[[], str]
    readers: Callable[[], Sequence[Renderable]]


def _show(answer: Answer, view: View) -> None:
    if view.format is CheckFormat.JSON:
        typer.echo(json_text(answer.json()))
    elif view.format is CheckFormat.JUNIT:
        from dprepro.report.ci_formats import junit

        typer.echo(junit(answer.cases()))
    elif view.format is CheckFormat.GITHUB:
        from dprepro.report.ci_formats import github

        typer.echo(github(answer.outcome, answer.passes, answer.findings))
    elif view.format is CheckFormat.MARKDOWN:
        typer.echo(answer.markdown())
    elif view.quiet and answer.passes:
        say(one_line(answer.outcome))
    else:
        from dprepro.runtime.terminal import console

        screen = console()
        for part in answer.readers():
            screen.print(part)


def _answer(
    report: CheckReport,
    left_out: LeftOut | None,
    again: Again | None,
    require_all: bool,
    view: View,
) -> Answer:
    from dprepro.report.ci_formats import cases, cases_again, markdown_check
    from dprepro.report.findings import (
        again_in_words,
        findings,
        findings_again,
        outcome_in_words,
    )

    passes = report.passes(require_all) and (again is None or again.passes)
    said = [outcome_in_words(report, require_all)]
    said[len(said) if passes else 0 : 0] = [again_in_words(again)] if again else []
    outcome = " ".join(said)
    found = [*findings(report), *(findings_again(again) if again else ())]

    def json() -> dict[str, Any]:
        from dprepro.report.rows import again_json, check_json

        return check_json(report, require_all) | (again_json(again) if again else {})

    return Answer(
        outcome,
        passes,
        found,
        json,
        lambda: [*cases(report, require_all), *(cases_again(again) if again else ())],
        lambda: markdown_check(report, outcome, passes, found, view.details),
        lambda: _for_readers(report, left_out, again, require_all, view),
    )


def _for_readers(
    report: CheckReport,
    left_out: LeftOut | None,
    again: Again | None,
    require_all: bool,
    view: View,
) -> list[Renderable]:
    from dprepro.report.check import render_again, render_cells, render_check
    from dprepro.report.short import render_short

    if not view.details:
        return [render_short(report, require_all, left_out, again)]
    return [
        *([render_cells(report.verdicts)] if view.verbose else []),
        render_check(report, require_all, left_out),
        *([render_again(again)] if again is not None else []),
    ]
