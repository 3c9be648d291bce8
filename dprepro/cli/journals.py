"""What the commands that read journals share: their options, and the plans of the configs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.streams import say

if TYPE_CHECKING:
    from dprepro.report.read.plans import JournalPlan
    from dprepro.report.read.results import Results

DEFAULT_FOLDER = Path("results")


def _published_where_none(context: typer.Context, folder: Path) -> Path:
    """Return the folder of our published runs where nobody named one, and no run was here."""
    if context.resilient_parsing:  # completion in a shell
        return folder
    from dprepro.experiment.journal import journal_files
    from dprepro.resources import builtin

    published = builtin("results")
    if folder != DEFAULT_FOLDER or journal_files(folder) or not published.is_dir():
        return folder
    say(
        "There are no journals in the folder `results` here: these are the published runs that "
        "come with dprepro. `dprepro run CONFIG` makes your own",
        err=True,
    )
    return published


OwnFolder = Annotated[Path, typer.Option("--results", help="Folder of the journals.")]
ResultsFolder = Annotated[
    Path,
    typer.Option(
        "--results",
        help="Folder of the journals; without any in it, our published runs.",
        callback=_published_where_none,
    ),
]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", help="Only the journals of these configs (repeatable)."),
]
Paper = Annotated[
    str | None,
    typer.Option(
        "--paper", help="Only this document; the beginning of its name is enough, e.g. dp-ebm."
    ),
]
Margins = Annotated[
    list[str] | None,
    typer.Option(
        "--margin",
        help="Largest difference that counts as equivalent, e.g. auc=0.01 or rmse=5% (repeatable).",
    ),
]


def read(folder: Path, configs: Sequence[str] | None = None) -> Results:
    """Read the journals that `shown_journals` names: of each, what its plan asks for."""
    from dprepro.report.read.results import read_results

    return read_results(folder, shown_journals(folder, configs), assumed_plan)


def shown_journals(folder: Path, configs: Sequence[str] | None = None) -> list[str]:
    """Return the names of the journals to show: those of `configs`, or all but hypotheses.

    Journals of hypotheses (the key `hypotheses` of a config) are for `dprepro forensics`. They are
    shown if their configs are named, or if there are no others.
    """
    from dprepro.report.read.mentions import usual_journals
    from dprepro.report.read.results import journal_paths

    paths = journal_paths(folder, configs) if configs else usual_journals(folder)
    return [path.stem for path in paths]


def assumed_plan(name: str) -> JournalPlan | None:
    """Return the plan of the built-in config of a journal's name; None where there is none.

    It is without its tasks where these depend on absent data.
    """
    from dprepro.config import config_names, load_config
    from dprepro.errors import DpreproError
    from dprepro.experiment.plan import plan
    from dprepro.experiment.stated import state_plan
    from dprepro.report.read.plans import JournalPlan

    if name not in config_names():
        return None
    config = load_config(name)
    try:
        return JournalPlan.stated(state_plan(config, (planned.task for planned in plan(config))))
    except DpreproError:
        return replace(JournalPlan.stated(state_plan(config, ())), cells=None)


def method_titles() -> dict[str, str]:
    """Return the titles of all methods by name; none if a method of the user is broken."""
    from dprepro.errors import DpreproError
    from dprepro.methods.registry import all_methods

    try:
        return {name: method.title for name, method in all_methods().items()}
    except DpreproError as error:
        say(f"methods are shown by name: {error}", err=True)
        return {}
