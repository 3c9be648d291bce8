"""`dprepro compare`: methods on the same splits, two of them or many ranked."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import (
    DEFAULT_FOLDER,
    Configs,
    Datasets,
    Dpi,
    FigureFormat,
    Font,
    ResultsFolder,
    Size,
    read,
    repeated_levels,
    sheet_of,
    warn,
)
from dprepro.cli.streams import say
from dprepro.report.sheet import DPI
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin

if TYPE_CHECKING:
    from dprepro.judge.comparing import MethodComparison
    from dprepro.judge.ranking import MethodRankings
    from dprepro.report.sheet import Sheet
    from dprepro.results.folder import Results


class CompareFormat(str, Enum):
    """How to write a comparison."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"
    LATEX = "latex"


_PICTURES = sorted(f".{format.value}" for format in FigureFormat)


def compare(
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two methods or more: labels of a config, or names of methods.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="All methods of the journals read; --config chooses these."),
    ] = False,
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
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of three methods or more, also draw the critical-difference diagram to this "
            ".pdf, .png or .svg file, and wins to NAME-wins beside it.",
        ),
    ] = None,
    size: Size = None,
    font: Font = None,
    dpi: Dpi = DPI,
) -> None:
    """Compare methods on the same splits: difference, interval, p-value and wins.

    Of two methods, the difference is the first minus the second. Three or more are ranked over
    datasets at each privacy level and over all levels, with Friedman's test, signed-rank tests of
    all pairs (Holm), and groups of methods that are not shown to differ. What has no results of
    all methods is left out, and named.

    Results of one config are compared. On a dataset where no
    config has both methods, results of two configs are, if these split the same rows in the same
    way. A method followed by (shipped run) means its results that come with dprepro.

    Example: dprepro compare dp-ebm-plus dp-ebm-gdp --epsilon 1

    Example: dprepro compare dp-ebm-plus dp-ebm-gdp dp-ebm-sound --output ranks.pdf --size 3.3x2.4
    """
    from dprepro.judge.ranking import MethodRankings
    from dprepro.runtime.terminal import console

    names = methods or []
    _refuse(names, every, format, per_split, epsilon, output)
    found = compared(results, names, config, dataset or (), metric, epsilon or ())
    if isinstance(found, MethodRankings):
        from dprepro.report.ranking import write_rankings

        cells = [c for r in found.rankings for scores in r.scores for c in scores.cells]
        written = write_rankings(found, format.value, per_split)
    else:
        from dprepro.report.comparing import write_comparison

        cells = [cell for row in found.rows for cell in (row.pair.first, row.pair.second)]
        written = write_comparison(found, format.value, per_split)
    is_private = any(cell.task.is_private for cell in cells)
    if isinstance(written, str):
        # Click would leave out what looks like a colour.
        typer.echo(written, color=True)
    else:
        console().print(written)
    if output is not None and isinstance(found, MethodRankings):
        _draw(found, output, sheet_of(size, font, dpi), is_private)
    warn(is_private, "exact scores")


def compared(
    folder: Path,
    names: Sequence[str],
    configs: Sequence[str] | None,
    datasets: Sequence[str],
    metric: str | None,
    epsilons: Sequence[float],
) -> MethodComparison | MethodRankings:
    """Compare methods by the journals of a folder: two of them, or more ranked.

    Parameters
    ----------
    names
        Labels, or names of methods; none for all methods of the journals.
    configs, datasets, metric, epsilons
        As the options of the command.

    Raises
    ------
    DpreproError
        If a name is not known or given twice, or nothing can be compared; the message says why.
    """
    from dprepro.judge.comparing import compare_methods
    from dprepro.judge.ranking import rank_methods
    from dprepro.results.margins import find_metric

    if metric is not None:
        find_metric(metric)
    is_all = not names
    names, held = (
        _everything(folder, configs, datasets)
        if is_all
        else _held(folder, names, configs, datasets)
    )
    held = held.of_datasets(datasets) if datasets else held
    if len(names) == 2:
        return compare_methods(held, names[0], names[1], metric, epsilons)
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise DpreproError(f"{', '.join(twice)} named more than once: name each method once")
    return rank_methods(held, names, metric, epsilons, is_all)


def _refuse(
    names: Sequence[str],
    every: bool,
    format: CompareFormat,
    per_split: bool,
    epsilon: list[float] | None,
    output: Path | None,
) -> None:
    """Raise DpreproError for options that cannot be meant, before a journal is read."""
    if per_split and format not in (CompareFormat.CSV, CompareFormat.JSON):
        raise DpreproError("--per-split is for files: add --format csv or --format json")
    for value in epsilon or ():
        if not value > 0:
            raise DpreproError(
                f"--epsilon {value:g} is not a privacy level. Allowed: numbers above 0, and inf "
                "for methods without privacy. Leave it out to compare at all levels"
            )
    if every and names:
        raise DpreproError("--all means all methods: leave the names out, or leave --all out")
    if not every and len(names) < 2:
        given = f"one method, {names[0]!r}" if names else "no method"
        raise DpreproError(
            f"{given} to compare: name two methods or more, or give --all for all methods of the "
            "journals. `dprepro methods` lists their names"
        )
    if output is not None and output.suffix.lower() not in _PICTURES:
        raise DpreproError(
            f"--output {output}: not a picture. Allowed endings: {', '.join(_PICTURES)}. Numbers "
            "go to a file by --format csv > FILE"
        )
    if output is not None and len(names) == 2:
        raise DpreproError("--output draws ranks, and two methods have none: name three or more")
    if output is not None:
        import dprepro.report.draw  # noqa: F401  what it needs is missed now, not at the end


def _draw(ranked: MethodRankings, output: Path, sheet: Sheet, is_private: bool) -> None:
    from functools import partial

    from dprepro.report.draw.files import save_figures
    from dprepro.report.draw.ranks import draw_ranks, draw_wins
    from dprepro.runtime.files import owner_only

    figures = {
        output.stem: partial(draw_ranks, ranked.main, sheet),
        f"{output.stem}-wins": partial(draw_wins, ranked.main, sheet),
    }
    with owner_only(is_private):
        ending = output.suffix[1:].lower()
        paths = save_figures(figures, output.parent, [ending], sheet, is_fitted=True)
    for path in paths:
        say(path, err=True)


def _everything(
    folder: Path, config: Sequence[str] | None, datasets: Sequence[str]
) -> tuple[list[str], Results]:
    """Return the labels of all finished results of the configs, and these results."""
    held = read(folder, config)
    shown = held.of_datasets(datasets) if datasets else held
    names = list(dict.fromkeys(cell.task.label for cell in shown.cells if cell.values))
    if len(names) < 2:
        had = f"one method, {names[0]}" if names else "no method"
        raise DpreproError(
            f"the journals read have finished results of {had}: nothing to compare. --config and "
            "--dataset choose others"
        )
    return names, held


def _held(
    folder: Path, methods: Sequence[str], config: Sequence[str] | None, datasets: Sequence[str]
) -> tuple[list[str], Results]:
    """Return the names as they are meant, and the results that hold them, of either side."""
    from dprepro.experiment.method_names import any_name_meant
    from dprepro.judge.comparing import refuse_unknown
    from dprepro.results.folder import assemble, beside, holding_both, is_mentioned, tasks_held
    from dprepro.results.result_cell import MARK, is_shipped

    meant = []
    sides: dict[bool, list[str]] = {False: [], True: []}
    folders = {False: folder, True: builtin("results")}
    tasks = {side: tasks_held(folders[side]) for side in set(map(is_shipped, methods))}
    for given in methods:
        there = tasks[is_shipped(given)]
        name = given.removesuffix(MARK)
        name = name if is_mentioned(there, name) else any_name_meant(name)
        if not (config or is_mentioned(there, name)):  # before the journals are read
            found = chain.from_iterable(there.values())
            refuse_unknown(name, (n for task in found for n in (task.label, task.method)))
        sides[is_shipped(given)].append(name)
        meant.append(f"{name}{MARK}" if is_shipped(given) else name)

    def needed(side: bool, names: Sequence[str]) -> list[str]:
        pairs = combinations(names, 2) if len(names) > 1 else [(names[0], names[0])]
        return sorted({j for a, b in pairs for j in holding_both(tasks[side], a, b, datasets)})

    own, others = (
        read(folders[side], config or needed(side, names)) if names else assemble([])
        for side, names in sides.items()
    )
    return meant, beside(own, others) if sides[True] else own
