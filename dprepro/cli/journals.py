"""What the commands that read journals share: their options, and what the configs ask for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from dprepro.report.results import Plan, Results

ResultsFolder = Annotated[Path, typer.Option("--results", help="Folder of the journals.")]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", help="Only the journals of these configs (repeatable)."),
]
Paper = Annotated[
    str | None,
    typer.Option("--paper", help="Only this document; the beginning will do, e.g. dp-ebm."),
]
Tolerances = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance", help="Override a tolerance, e.g. auc=0.02,2sd or rmse=10% (repeatable)."
    ),
]
DEFAULT_FOLDER = Path("results")

# Wide enough for six methods; a terminal uses its own width.
_FILE_WIDTH = 180


def read(folder: Path, configs: list[str] | None = None) -> Results:
    """Read the journals of `folder` with what their configs ask for; print what was left out."""
    from dprepro.report.results import journal_paths, read_results

    paths = journal_paths(folder, configs or [])
    results = read_results(folder, configs or [], _plans(paths))
    for note in results.notes:
        typer.echo(note, err=True)
    return results


def _plans(journals: Iterable[Path]) -> dict[str, Plan]:
    """Return the plan of each journal whose config is built in; others stay unknown."""
    from dprepro.config import config_names, load_config
    from dprepro.report.results import Plan

    plans = {}
    for name in {path.stem for path in journals} & set(config_names()):
        config = load_config(name)
        published = config.published
        plans[name] = (
            Plan(config.splits, published.paper, published.table)
            if published
            else Plan(config.splits, None)
        )
    return plans


def method_titles() -> dict[str, str]:
    """Return the titles of all methods by name; none where a method of one's own is broken."""
    from dprepro.errors import DpreproError
    from dprepro.methods.registry import all_methods

    try:
        return {name: method.title for name, method in all_methods().items()}
    except DpreproError as error:
        typer.echo(f"methods are shown by name: {error}", err=True)
        return {}


def console() -> Console:
    """Return a console that does not wrap tables when the output goes to a file or a pipe."""
    from rich.console import Console

    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=_FILE_WIDTH)
