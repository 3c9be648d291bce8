"""`dprepro tune`: run the grids of a config and keep the best setting at each privacy level."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.options import DataDir, Levels, Methods
from dprepro.cli.streams import say
from dprepro.runtime.files import owner_only

# Not in the folder of results: tables do not show trials.
_TRIALS = Path("out/trials")


def tune(
    config: Annotated[
        str, typer.Argument(help="Built-in name or path of a config that has a `grid`.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The config to write.")],
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Worker processes.", show_default="one a core"),
    ] = None,
    method: Methods = None,
    epsilon: Levels = None,
    results: Annotated[Path, typer.Option(help="Folder of the journal of trials.")] = _TRIALS,
    data_dir: DataDir = None,
) -> None:
    """Try every setting of a config's `grid`; write a config with the best one at each epsilon.

    The choice reads the rows and is not covered by epsilon; the new config says so. Trials that
    have finished before are not run again, whichever part of the grid they were run for.

    Example: dprepro tune lazybb-tune --output tuned.yaml
    """
    from dprepro.cli.run import run_one
    from dprepro.data.card import load_card
    from dprepro.experiment.config import load_config
    from dprepro.experiment.run import Options
    from dprepro.judge.tuning import (
        NOT_COVERED,
        check_tunable,
        choose_settings,
        part_of,
        tuned_config,
    )
    from dprepro.results.folder import read_results
    from dprepro.runtime.terminal import BareTable, console

    experiment = load_config(config)
    part = part_of(experiment, method or (), epsilon or ())
    check_tunable(part)
    terminal = console()
    options = Options(
        jobs=jobs,
        methods=tuple(setting.label for entry in part.methods for setting in entry.expanded),
        epsilons=tuple(epsilon or ()),
        results=results,
        data_dir=data_dir,
    )
    run_one(experiment, options, terminal, dry_run=False, profile=False)
    tried = read_results(results, [experiment.name])
    choices = choose_settings(part, tried)
    heads = ["epsilon", experiment.metric, "of settings"]
    table = BareTable(["method", "best"], heads, wraps=True)
    for choice in choices:
        best = ", ".join(f"{name} {value}" for name, value in choice.params.items())
        figures = f"{choice.epsilon:g}", f"{choice.mean:.4f}", str(choice.tried)
        table.add_row(choice.label, best, *figures)
    terminal.print(table)
    dataset = load_card(experiment.card).name
    with owner_only(tried.is_private):
        output.write_text(tuned_config(part, choices, dataset), encoding="utf-8", newline="\n")
    say(f"{NOT_COVERED}\n{output}")
