"""`dprepro compare`: two methods on the same splits."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import (
    DEFAULT_FOLDER,
    Configs,
    Datasets,
    ResultsFolder,
    read,
    repeated_levels,
    warn,
)
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin

if TYPE_CHECKING:
    from dprepro.results.folder import Results


class CompareFormat(str, Enum):
    """How to write a comparison."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def compare(
    first: Annotated[str, typer.Argument(help="A label of a config, or the name of a method.")],
    second: Annotated[str, typer.Argument(help="The method to compare it with.")],
    dataset: Datasets = None,
    config: Configs = None,
    metric: Annotated[
        str | None,
        typer.Option(help="auc, rmse, brier_score, a scorer, ...; default: that of the config."),
    ] = None,
    epsilon: Annotated[
        list[float] | None, repeated_levels("Only this privacy level (repeatable).")
    ] = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    format: Annotated[CompareFormat, typer.Option(help="Output format.")] = CompareFormat.TABLE,
    per_split: Annotated[
        bool,
        typer.Option("--per-split", help="Write the values of each split; for csv and json."),
    ] = False,
) -> None:
    """Compare two methods on the same splits: difference, interval, p-value and wins.

    The difference is FIRST minus SECOND. Results of one config are compared. On a dataset where no
    config has both methods, results of two configs are, if these split the same rows in the same
    way. A method followed by (shipped run) means its results that come with dprepro.

    Example: dprepro compare dp-ebm-plus dp-ebm-gdp --epsilon 1
    """
    from dprepro.judge.comparing import compare_methods
    from dprepro.report.comparing import (
        comparison_rows,
        csv_rows,
        json_comparison,
        render_comparison,
        split_rows,
    )
    from dprepro.results.margins import find_metric
    from dprepro.runtime.terminal import console

    if per_split and format is CompareFormat.TABLE:
        raise DpreproError("--per-split is for files: add --format csv or --format json")
    for value in epsilon or ():
        if not value > 0:
            raise DpreproError(
                f"--epsilon {value:g} is not a privacy level. Allowed: numbers above 0, and inf "
                "for methods without privacy. Leave it out to compare at all levels"
            )
    if metric is not None:
        find_metric(metric)
    first, second, held = _held(results, first, second, config, dataset or ())
    found = compare_methods(
        held.of_datasets(dataset) if dataset else held, first, second, metric, epsilon or ()
    )
    cells = [cell for row in found.rows for cell in (row.pair.first, row.pair.second)]
    if format is CompareFormat.TABLE:
        console().print(render_comparison(found))
    elif format is CompareFormat.JSON:
        typer.echo(json_comparison(found, per_split))
    else:
        # Click would leave out what looks like a colour.
        typer.echo(csv_rows(split_rows(found) if per_split else comparison_rows(found)), color=True)
    warn(any(cell.task.is_private for cell in cells), "exact scores")


def _held(
    folder: Path, first: str, second: str, config: list[str] | None, datasets: Sequence[str]
) -> tuple[str, str, Results]:
    """Return both names as they are meant, and the results that hold them, of either side."""
    from dprepro.experiment.method_names import any_name_meant
    from dprepro.judge.comparing import refuse_unknown
    from dprepro.results.cell import MARK, is_shipped
    from dprepro.results.folder import assemble, beside, holding_both, is_mentioned, tasks_held

    meant = []
    sides: dict[bool, list[str]] = {False: [], True: []}
    folders = {False: folder, True: builtin("results")}
    tasks = {side: tasks_held(folders[side]) for side in set(map(is_shipped, (first, second)))}
    for given in (first, second):
        there = tasks[is_shipped(given)]
        name = given.removesuffix(MARK)
        name = name if is_mentioned(there, name) else any_name_meant(name)
        if not (config or is_mentioned(there, name)):  # before the journals are read
            found = chain.from_iterable(there.values())
            refuse_unknown(name, (n for task in found for n in (task.label, task.method)))
        sides[is_shipped(given)].append(name)
        meant.append(f"{name}{MARK}" if is_shipped(given) else name)
    own, others = (
        read(folders[side], config or holding_both(tasks[side], names[0], names[-1], datasets))
        if names
        else assemble([])
        for side, names in sides.items()
    )
    return meant[0], meant[1], beside(own, others) if sides[True] else own
