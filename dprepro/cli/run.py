"""`dprepro run`: run the tasks of configs, and more splits until verdicts are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import (
    DEFAULT_FOLDER,
    AllowTunedSplits,
    DataDir,
    Methods,
    OwnFolder,
    repeated_levels,
)
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin
from dprepro.runtime.text import shell

if TYPE_CHECKING:
    from rich.console import Console

    from dprepro.experiment.config import ExperimentConfig
    from dprepro.experiment.run import Options
    from dprepro.judge.verdicts import CellVerdict, Stage
    from dprepro.papers.published_cell import PublishedCell

INTERRUPTED = 130

MOST = 400
"""How many splits a cell gets at most where nobody says."""
ENDING = "-until-decided"
"""Of the journal of the splits that are added, behind the name of the config."""


class ExecutorName(str, Enum):
    """Where to run."""

    LOCAL = "local"
    DASK = "dask"


def run(
    configs: Annotated[list[str], typer.Argument(help="Built-in names or paths of configs.")],
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Worker processes.", show_default="one a core"),
    ] = None,
    executor: Annotated[
        ExecutorName, typer.Option(help="Processes of this machine, or a Dask cluster.")
    ] = ExecutorName.LOCAL,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address of the cluster's scheduler.", show_default=False
        ),
    ] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="Only the first N splits.")] = None,
    method: Methods = None,
    epsilon: Annotated[
        list[float] | None,
        repeated_levels(
            "Only this epsilon; repeatable. Methods without a privacy budget run anyway."
        ),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Then run more splits of the printed cells whose verdict they can decide.",
        ),
    ] = False,
    most_splits: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=10_000,
            help="How many splits --until-decided gives a cell at most.",
            show_default="400",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Count the tasks, say how long they will take, check the rows, and run nothing.",
        ),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin a new journal; the old one is renamed to .bak.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed tasks again.")
    ] = False,
    results: OwnFolder = DEFAULT_FOLDER,
    data_dir: DataDir = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=31_536_000,
            help="Seconds that one task may take.",
            show_default="the config's",
        ),
    ] = None,
    allow_tuned_splits: AllowTunedSplits = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Show how much time each method took.")
    ] = False,
) -> None:
    """Run all tasks of one or more configs that have not finished yet.

    Every finished task is one line of results/CONFIG.jsonl. Ctrl-C stops the run; the same command
    continues it.

    A task whose worker is killed, or that gets no memory, runs again: that is no failure.

    With --dry-run, nothing runs. It shows the tasks, and how long they take by records of the same
    methods and dataset, and reads the rows: columns, categories and labels that the card does not
    have are named, with the line of the file.

    With --until-decided, cells of the printed table whose verdict is open get twice as many splits,
    again and again, until they are decided or --most-splits are reached. The added splits are in
    results/CONFIG-until-decided.jsonl. The errors of all looks keep to the level of one.

    Exit code: 0 all well, 1 a task failed or could not be finished, 2 a mistake that you can
    correct, 130 interrupted.

    Example: dprepro run adult telco --jobs 4 --splits 5

    Example: dprepro run adult --method dp-ebm-gdp,ebm --dry-run

    Example: dprepro run telco --until-decided --most-splits 100 --method dp-ebm-gdp-2021
    """
    is_here = executor is ExecutorName.LOCAL and not (dry_run or until_decided)
    with _worker_ahead(configs[0], results, fresh, method or ()) if is_here else nullcontext():
        from dprepro.experiment.config import load_experiments
        from dprepro.experiment.executors import NowhereToRunError
        from dprepro.experiment.run import Options
        from dprepro.runtime.terminal import PlainConsole

        options = Options(
            executor=executor.value,
            address=address,
            jobs=jobs,
            splits=splits,
            methods=tuple(method or ()),
            epsilons=tuple(epsilon or ()),
            fresh=fresh,
            retry_failed=retry_failed,
            results=results,
            data_dir=data_dir,
            time_limit=time_limit,
            allow_tuned_splits=allow_tuned_splits,
        )
        if until_decided and dry_run:
            raise DpreproError(
                "--dry-run does not go with --until-decided: how many tasks that runs depends on "
                "what they say. Leave one of the two out"
            )
        if most_splits is not None and not until_decided:
            raise DpreproError("--most-splits is for --until-decided: add that, or leave it out")
        console = PlainConsole()
        run_config = partial(run_one, console=console, dry_run=dry_run, profile=profile)
        failed, errors = 0, []
        for config in load_experiments(*configs):
            try:
                if until_decided:
                    most = most_splits or MOST
                    failed += run_until_decided(config, options, console, most, run_config)
                else:
                    failed += run_config(config, options)
            except DpreproError as error:
                errors.append(str(error))
                if isinstance(error, NowhereToRunError):
                    break  # the other configs may be right, but cannot run either
    if errors:
        raise DpreproError("\n".join(errors))
    if failed:
        raise typer.Exit(1)


@contextmanager
def _worker_ahead(
    config: str, results: Path, fresh: bool, methods: Sequence[str]
) -> Iterator[None]:
    """Start a worker before the plan is known, where a config is there and no journal of it."""
    from dprepro.experiment.local import end_ahead, start_ahead

    place = Path(config)
    is_there = place.is_file() or (builtin("configs") / f"{config}.yaml").is_file()
    names = (results / f"{place.stem}{suffix}" for suffix in (".jsonl", ".parquet"))
    if is_there and (fresh or not any(name.exists() for name in names)):
        start_ahead(config, methods)
    try:
        yield
    finally:
        end_ahead()


def run_one(
    config: ExperimentConfig, options: Options, console: Console, dry_run: bool, profile: bool
) -> int:
    """Run one config, print its summary, return the number of failed and unfinished tasks.

    A part of a plan has no table of its own.
    """
    from dprepro.experiment import display
    from dprepro.experiment.run import journal_path
    from dprepro.experiment.run import run as run_config

    if options.splits is not None and options.splits > config.splits:
        note = f"{config.name}: it has {config.splits} splits, so --splits {options.splits} is all"
        console.print(note, soft_wrap=True)
    if dry_run:
        _say_ahead(config, options, console)
        return 0
    try:
        summary = run_config(config, options, display.display_for(config, console))
    except KeyboardInterrupt:
        again = "the same command without --fresh" if options.fresh else "the same command"
        console.print(f"{config.name}: interrupted; {again} continues it")
        raise typer.Exit(INTERRUPTED) from None
    if options.cells is None:
        console.print(display.cells_table(config, summary.whole))
    if profile:
        console.print(display.profile_table(summary))
    for note in display.notes(summary, journal_path(config, options.results)):
        console.print(note, soft_wrap=True)
    return summary.failed + sum(summary.unfinished.values())


def _say_ahead(config: ExperimentConfig, options: Options, console: Console) -> None:
    """Print what a run would do and how long that takes, then whether it can.

    Raises DpreproError if the rows are not what the card says, or a method cannot take them.
    """
    from dprepro.cli.options import ABOUT_ROWS, warn
    from dprepro.data.dataset import UnavailableError
    from dprepro.experiment import display
    from dprepro.experiment.forecast import forecast
    from dprepro.experiment.run import look_ahead, try_rows, workers_of

    outlook = look_ahead(config, options)
    ahead = forecast(outlook.todo, options.results, builtin("results"))
    jobs = workers_of(options, ahead.tasks) if options.address is None else None
    console.print(display.pending_table(config, outlook, ahead))
    for line in display.forecast_lines(ahead, jobs, options.results):
        console.print(line)
    if not outlook.todo:
        console.print("Nothing is left to run.")
        return
    dataset = outlook.todo[0].dataset
    warn(outlook.todo[0].is_private, ABOUT_ROWS)
    try:
        try_rows(config, options, outlook.todo)
    except UnavailableError:
        console.print(
            f"Parameters are checked, and rows are not: {dataset} is not on this machine. "
            f"`dprepro data fetch {shell(config.card)}` gets it; without that, the run does."
        )
        return
    except DpreproError as error:
        raise DpreproError(f"{config.name}: {error}") from None
    console.print(
        f"Checked: the rows of {dataset} have the columns, categories and labels of its card, and "
        "each method takes them and its parameters. Fits move numbers outside of their bounds to "
        "these (`dprepro data check CARD --rows` looks for some). Nothing was fitted."
    )


def run_until_decided(
    config: ExperimentConfig,
    options: Options,
    console: Console,
    most: int,
    run_one: Callable[[ExperimentConfig, Options], int],
) -> int:
    """Run a config, then more splits of its undecided cells in stages.

    Parameters
    ----------
    most
        How many splits a cell gets at most.
    run_one
        Runs one config, and returns the number of failed and unfinished tasks.

    Returns
    -------
    The number of failed and unfinished tasks of all stages.

    Raises
    ------
    DpreproError
        If the config answers to no printed cell, or cannot be given more splits.
    """
    from dprepro.cli.options import read
    from dprepro.experiment.display import duration
    from dprepro.experiment.plan import narrow, plan
    from dprepro.judge.verdicts import doubled, judge_cells, seconds_of_a_split, stage_of
    from dprepro.papers.document import select_documents
    from dprepro.results.margins import margins

    _refuse_unfit(config, options, most)
    assert config.published is not None
    (document,) = select_documents(config.published.paper)
    planned = narrow(plan(config, options.data_dir), None, options.methods, options.epsilons)
    asked = {(p.task.label, p.task.epsilon): config.splits for p in planned if not p.skip}
    dataset = planned[0].task.dataset
    cells = [c for c in document.cells() if (c.method, c.epsilon) in asked and c.dataset == dataset]
    if not cells:
        raise DpreproError(
            f"{config.name}: {document.paper} prints none of its cells, so that no number of "
            f"splits decides anything. `dprepro check --paper {document.paper}` shows what it has"
        )
    needed = max(document.protocol_of(c.table, c.dataset).needed for c in cells)
    if config.splits < needed:
        raise DpreproError(
            f"{config.where('splits')}: a verdict on {document.paper} takes {needed} splits, and "
            f"the config has {config.splits}. Give it {needed}; --until-decided adds more"
        )
    asked = {(c.method, c.epsilon): config.splits for c in cells}
    looks = doubled(config.splits, most)
    more = _with_more_splits(config, looks)
    failed = run_one(config, options)
    known: set[PublishedCell] = set()
    for look, following in zip(looks, (*looks[1:], None), strict=True):
        failed += run_one(more, replace(options, cells=dict(asked), methods=(), epsilons=()))
        results = read(options.results, [config.name, more.name])
        now = stage_of(judge_cells(document, results, margins(), cells), document, looks)
        for cell in (c for c in now.decided if c.published not in known):
            console.print(f"{config.name}: {_said(cell)}", soft_wrap=True)
        known |= {cell.published for cell in now.decided}
        console.print(f"{config.name}: {_progress_in_words(now, look, most)}", soft_wrap=True)
        if following is None or not now.open:
            break
        seconds = seconds_of_a_split(results)
        left = sum(seconds[place] * (most - look) for place in now.places)
        console.print(
            f"{config.name}: on to {following} splits of what is open. All {most} would take "
            f"{duration(left)} of one processor",
            soft_wrap=True,
        )
        asked |= dict.fromkeys(now.places, following)
    return failed


def _refuse_unfit(config: ExperimentConfig, options: Options, most: int) -> None:
    if config.published is None:
        raise DpreproError(
            f"{config.where()}: --until-decided compares with a printed table, and the config "
            "names none. Add `published: {paper: PAPER, table: TABLE}`; `dprepro documents` lists "
            "the papers"
        )
    if config.published.looks:
        raise DpreproError(
            f"{config.where('published', 'looks')}: the config adds splits to those of another, "
            "after a plan of its own. Give --until-decided the config with the printed number"
        )
    if config.seed is None:
        raise DpreproError(
            f"{config.where('seed')}: --until-decided adds splits to those that have run, and "
            "without a seed these are not the first of more. Give the config a seed"
        )
    if options.splits is not None or options.fresh:
        given = "--splits" if options.splits is not None else "--fresh"
        raise DpreproError(
            f"{given} does not go with --until-decided, which goes on from the config's splits. "
            f"Leave {given} out; --most-splits says where to stop"
        )
    if most <= config.splits:
        raise DpreproError(
            f"--most-splits {most}: the config has {config.splits} splits already; give a larger "
            "number, as 400"
        )


def _with_more_splits(config: ExperimentConfig, looks: tuple[int, ...]) -> ExperimentConfig:
    """Return the config of the added splits, which stands under a name of its own."""
    assert config.published is not None
    added = config.model_copy(
        update={
            "splits": looks[-1],
            "published": config.published.model_copy(update={"looks": looks}),
            # One partition has as many folds as the config had splits.
            "folds": config.folds or (config.splits if config.evaluation == "folds" else None),
        }
    )
    return added.renamed(f"{config.name}{ENDING}")


def _said(cell: CellVerdict) -> str:
    from dprepro.results.margins import with_level

    printed = cell.published
    splits = cell.result.splits(printed.metric) if cell.result else 0
    return (
        f"Table {printed.table}, {with_level(printed.method, printed.epsilon)}, {printed.metric}: "
        f"{cell.verdict.value} ({splits} splits)"
    )


def _progress_in_words(now: Stage, look: int, most: int) -> str:
    total = sum(map(len, (now.decided, now.open, now.limited)))
    parts = [f"after {look} splits {len(now.decided)} of {total} printed cells are decided"]
    if now.open:
        parts.append(f"{len(now.open)} open")
    if now.limited:
        parts.append(f"{len(now.limited)} that {most} splits cannot decide")
    return ", ".join(parts)
