"""`dprepro run`: run the tasks of configs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import AllowTunedSplits, repeated_levels

if TYPE_CHECKING:
    from rich.console import Console

    from dprepro.experiment.config import ExperimentConfig
    from dprepro.experiment.run import Options

INTERRUPTED = 130


class ExecutorName(str, Enum):
    """Where to run."""

    LOCAL = "local"
    DASK = "dask"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


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
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method or label; repeatable.")
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        repeated_levels(
            "Only this epsilon; repeatable. Methods without a privacy budget run anyway."
        ),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided", help="Then more splits of the printed cells that these can decide."
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
        bool, typer.Option("--dry-run", help="Count the tasks and run nothing.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin a new journal; the old one is renamed to .bak.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed tasks again.")
    ] = False,
    results: Annotated[Path, typer.Option(help="Folder of the journals.")] = Path("results"),
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of datasets.", show_default="$DPREPRO_DATA")
    ] = None,
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

    With --until-decided, cells of the printed table whose verdict is open get twice as many splits,
    again and again, until they are decided or --most-splits are reached. The added splits are in
    results/CONFIG-until-decided.jsonl. The errors of all looks keep to the level of one.

    Exit code: 0 all well, 1 a task failed or could not be finished, 2 a mistake that you can
    correct, 130 interrupted.

    Example: dprepro run adult telco --jobs 4 --splits 5

    Example: dprepro run telco --until-decided --most-splits 100 --method dp-ebm-gdp-2021
    """
    is_here = executor is ExecutorName.LOCAL and not (dry_run or until_decided)
    with _worker_ahead(configs[0], results, fresh, method or ()) if is_here else nullcontext():
        from dprepro.cli.until_decided import MOST, run_until_decided
        from dprepro.experiment.config import load_experiments
        from dprepro.experiment.executors import NowhereToRunError
        from dprepro.experiment.run import Options
        from dprepro.runtime.errors import DpreproError
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
    from dprepro.runtime.files import builtin

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
    from dprepro.experiment.run import journal_path, look_ahead
    from dprepro.experiment.run import run as run_config

    if options.splits is not None and options.splits > config.splits:
        note = f"{config.name}: it has {config.splits} splits, so --splits {options.splits} is all"
        console.print(note, soft_wrap=True)
    if dry_run:
        console.print(display.outlook_table(config, look_ahead(config, options)))
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
