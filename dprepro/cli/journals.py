"""What the commands that read journals share: their options, and the plans of the configs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dprepro.report.read.plans import JournalPlan
    from dprepro.report.read.results import Results

ResultsFolder = Annotated[Path, typer.Option("--results", help="Folder of the journals.")]
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
DEFAULT_FOLDER = Path("results")


def read(folder: Path, configs: Sequence[str] | None = None) -> Results:
    """Read the journals of `folder`: of each, what its plan asks for.

    Those of hypotheses are read only if their configs are named, or there are no others: see
    `dprepro forensics`.
    """
    from dprepro.report.read.mentions import usual_journals
    from dprepro.report.read.results import read_results

    names = configs or [path.stem for path in usual_journals(folder)]
    return read_results(folder, names, assumed_plans(folder, names))


def assumed_plans(folder: Path, configs: Sequence[str]) -> dict[str, JournalPlan]:
    """Return, for each journal that states no plan, that of the built-in config of its name."""
    from dprepro.config import config_names
    from dprepro.experiment.journal import states_plan
    from dprepro.report.read.results import journal_paths

    builtin = set(config_names())
    paths = [path for path in journal_paths(folder, configs) if path.stem in builtin]
    return {path.stem: _assumed(path.stem) for path in paths if not states_plan(path)}


def _assumed(name: str) -> JournalPlan:
    """Return the plan of a built-in config; without its tasks where these depend on absent data."""
    from dprepro.config import load_config
    from dprepro.errors import DpreproError
    from dprepro.experiment.plan import plan
    from dprepro.experiment.stated import state_plan
    from dprepro.report.read.plans import JournalPlan

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
        typer.echo(f"methods are shown by name: {error}", err=True)
        return {}
