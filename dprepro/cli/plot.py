"""`dprepro plot`: pictures of results and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.options import (
    DEFAULT_FOLDER,
    SHOWS_SCORES,
    AllowTunedSplits,
    ConfigName,
    Configs,
    DataDir,
    Datasets,
    Dpi,
    Font,
    Formats,
    Levels,
    Methods,
    Paper,
    ResultsFolder,
    Shipped,
    ShownMethods,
    Size,
    Split,
    endings_of,
    method_titles,
    one_level,
    read,
    sheet_of,
    warn,
)
from dprepro.cli.streams import say
from dprepro.report.sheet import DPI
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import owner_only
from dprepro.runtime.text import file_names

Output = Annotated[Path, typer.Option(help="Folder of the pictures.")]
DEFAULT_OUTPUT = Path("out/figures")

# So many files are named one a line; of more, the folder and the number.
_MOST_NAMED = 12

_GREY = (
    "Of more than eight methods, the others are grey: --highlight chooses those in colour, "
    "--name-grey names the grey ones, --method draws only some"
)

plot = typer.Typer(
    no_args_is_help=True,
    help="Draw results and models. Pictures need `pip install 'dprepro\\[plot]'`.\n\n"
    "Example: dprepro plot curves --metric auc",
)


def say_written(paths: list[Path]) -> None:
    """Say which files were written; of many, where they are and how many."""
    if len(paths) <= _MOST_NAMED:
        for path in paths:
            say(path)
    else:
        first, last = paths[0], paths[-1]
        say(f"{first.parent}: {len(paths)} files, from {first.name} to {last.name}")


_RELEASES = (
    "PRIVATE DATA: {} model(s) are fitted for this picture. Each is one more release of the rows, "
    "and no budget book lists it. --model FILE draws a model that you have and costs nothing."
)


@plot.command()
def curves(
    metric: Annotated[
        str | None,
        typer.Option(help="auc, rmse, accuracy, ...; default: that of the printed table."),
    ] = None,
    dataset: Datasets = None,
    method: ShownMethods = None,
    highlight: Annotated[
        list[str] | None,
        typer.Option(
            "--highlight",
            metavar="TEXT",
            help="These methods in colour, at most eight, the others grey; repeatable, or a list "
            "with commas. Default: those with printed numbers, then the best.",
        ),
    ] = None,
    name_grey: Annotated[
        bool, typer.Option("--name-grey", help="Name the grey lines in the legend, too.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="One picture for each dataset instead of panels.")
    ] = False,
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    size: Size = None,
    font: Font = None,
    dpi: Dpi = DPI,
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    shipped: Shipped = False,
    paper: Paper = None,
) -> None:
    """Draw the metric against epsilon: one picture for each table, a panel for each dataset.

    Filled markers and lines are measured values, rings are published ones. Bars are standard
    deviations over splits. At most eight methods have a colour; a method and its variants share a
    hue. Where good methods lie close together, a second panel shows them closer. Without privacy
    is at the right edge, at epsilon ∞.

    Names of files say document, table, dataset and metric. With --size, panels that have no room on
    one picture get pictures of their own.

    Example: dprepro plot curves --metric auc --output out/figures --format svg

    Example: dprepro plot curves --dataset adult --size 3.3x2.4 --font 8 --format pdf
    """
    from dprepro.cli import options
    from dprepro.cli.streams import Patience
    from dprepro.papers.document import select_documents
    from dprepro.report.draw.pages import write_figures
    from dprepro.report.draw.panels import build_panels, methods_to_colour, most_methods
    from dprepro.report.draw.style import MOST_COLOURED
    from dprepro.report.layout import build_tables
    from dprepro.results.margins import find_metric
    from dprepro.runtime.terminal import counted

    metric = find_metric(metric).name if metric else None
    endings = endings_of(format)
    with Patience() as patience:
        patience.step("reading the journals")
        held = read(results, config, shipped)
        tables = build_tables(
            held,
            select_documents(paper),
            metric,
            dataset or (),
            compare=True,
            unprinted=paper is None,
            titles=method_titles(),
        )
        panels = build_panels(tables, method or ())
        coloured = methods_to_colour(tables, highlight or ())
        options.warn(held.is_private, options.SHOWS_SCORES)
        patience.step(f"drawing {counted(len(panels), 'panel')}")
        with owner_only(held.is_private):
            paths = write_figures(
                panels, output, endings, sheet_of(size, font, dpi), coloured, name_grey, each
            )
    say_written(paths)
    if most_methods(panels) > MOST_COLOURED and not (highlight or name_grey):
        say(_GREY, err=True)


@plot.command()
def shapes(
    config: Annotated[
        str | None,
        typer.Argument(help="Built-in name or path of the config whose models are fitted."),
    ] = None,
    method: Methods = None,
    epsilon: Levels = None,
    model: Annotated[
        list[Path] | None, typer.Option(help="Also draw this saved model; repeatable.")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Only this feature; repeatable.")
    ] = None,
    numeric: Annotated[bool, typer.Option("--numeric", help="Only numeric features.")] = False,
    own_scale: Annotated[
        bool,
        typer.Option("--own-scale", help="Give each panel its own vertical scale: shows forms."),
    ] = False,
    split: Split = 0,
    name: Annotated[str, typer.Option(help="Beginning of the names of the files.")] = "shapes",
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    size: Size = None,
    font: Font = None,
    dpi: Dpi = DPI,
    data_dir: DataDir = None,
) -> None:
    """Draw shape functions: of one model a grid, of several one row for each feature.

    A model of several classes is drawn as several models are: a column for each class.

    Features are in the order of their importance. Functions that stand side by side have one
    vertical scale, which holds whole bands; --own-scale gives each panel its own.

    Bands are two standard deviations of the noise that boosting added; for DP-EBM+, two posterior
    standard deviations. They do not account for the shrinkage of functions towards 0 where noise is
    large compared with the rows. Grey bars are the density of the rows. If the ledger of a model
    holds, the picture is post-processing of releases; if not, it shows exact functions of the
    training rows.
    The picture of all features fills one page: 20 features of one model, 6 of several. Each feature
    has a picture of its own, but of more than 20 only those that vary most over the rows;
    --feature draws any other.

    Example: dprepro plot shapes adult-shapes --epsilon 4 --epsilon 1 --numeric
    """
    from dprepro.additive.file import load_model
    from dprepro.cli import options
    from dprepro.experiment.config import load_config
    from dprepro.release.fitting import choose_tasks, describe, fit_model, require_shapes
    from dprepro.release.progress import shown_steps
    from dprepro.release.provenance import why_not_for_release
    from dprepro.report.draw.shapes import (
        classes_left_out,
        columns_of,
        left_out,
        most_important,
        require_room,
        select_features,
        write_shapes,
    )

    drawn, tasks, unfit = [], [], []
    if config is not None:
        experiment = load_config(config)
        tasks = choose_tasks(
            experiment, method or [], epsilon or [], split, data_dir, identify=False
        )
        require_shapes(experiment, tasks)
    require_room(len(tasks) + len(model or []))
    if any(task.is_private for task in tasks):
        say(_RELEASES.format(len(tasks)), err=True)
    for task in shown_steps("fitting", tasks, describe):
        fitted = fit_model(experiment, task, data_dir)
        drawn.append((describe(task), fitted))
        unfit.append(bool(why_not_for_release(fitted, task.is_private)))
    for path in model or []:
        loaded = load_model(path)
        drawn.append((path.stem, loaded))
        unfit.append("not_for_release" in loaded.origin_)
    options.warn(
        any(unfit), "the picture shows models without privacy, or with a ledger that does not hold"
    )
    if not drawn:
        raise DpreproError(
            "nothing to draw: name a config whose models are fitted, or a saved --model"
        )
    columns = [column for each in drawn for column in columns_of(*each)]
    require_room(len(columns))
    there = select_features(columns, feature or [], numeric)
    features = there if feature else most_important(columns, there)
    for note in (left_out(len(features), len(there)), *(classes_left_out(m) for _, m in drawn)):
        if note:
            say(note, err=True)
    with owner_only(any(unfit)):
        paths = write_shapes(
            columns,
            features,
            name,
            output,
            endings_of(format),
            own_scale,
            sheet_of(size, font, dpi),
        )
    say_written(paths)


@plot.command()
def filters(
    config: ConfigName,
    method: Methods = None,
    epsilon: Levels = None,
    row: Annotated[
        list[int] | None,
        typer.Option(help="Number of a test row to explain; repeatable; default 0 and 1."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of maps to draw for each row.")] = 3,
    split: Split = 0,
    name: Annotated[str, typer.Option(help="Name of the files.")] = "filters",
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    size: Size = None,
    font: Font = None,
    dpi: Dpi = DPI,
    data_dir: DataDir = None,
) -> None:
    """Draw the filters with the largest weights in the prediction for some test rows.

    Filters of images are drawn as images: blue is evidence for the predicted class, red against
    it. Filters of tables are drawn as bars. For a network (mlp), its integrated gradient and its
    smoothed gradient are drawn.

    Example: dprepro plot filters fashion-mnist --method llm --method mlp --row 0 --row 7
    """
    from dprepro.cli import options
    from dprepro.experiment.config import load_config
    from dprepro.release.fitting import choose_tasks, explain
    from dprepro.report.draw.files import save_figures
    from dprepro.report.draw.filters import draw_filters

    experiment = load_config(config)
    tasks = choose_tasks(experiment, method or [], epsilon or [], split, data_dir, identify=False)
    options.warn(tasks[0].is_private, "the picture shows held-out rows")
    found = explain(experiment, tasks, row or [0, 1], top, data_dir)
    endings = endings_of(format)
    with owner_only(tasks[0].is_private):
        sheet = sheet_of(size, font, dpi)
        paths = save_figures({name: lambda: draw_filters(found)}, output, endings, sheet)
    say_written(paths)


@plot.command()
def margins(
    config: ConfigName,
    method: Annotated[str, typer.Option(help="The method, by name or label.")] = "lazybb-1r",
    epsilon: Annotated[float | None, one_level("Its epsilon.")] = None,
    fits: Annotated[
        int | None, typer.Option(min=1, help="Number of splits to fit; default: all.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the files.")] = "margins",
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    size: Size = None,
    font: Font = None,
    dpi: Dpi = DPI,
    data_dir: DataDir = None,
    allow_tuned_splits: AllowTunedSplits = False,
) -> None:
    """Draw the advantage of each boosting round, and the margins of the training rows.

    Both are exact functions of the training rows: do not release such a picture of private rows.

    Example: dprepro plot margins lazybb-figure1 --epsilon 1
    """
    from dprepro.cli import options
    from dprepro.experiment.config import load_config
    from dprepro.release.fitting import choose_one, run_boosting
    from dprepro.report.draw.files import save_figures
    from dprepro.report.draw.filters import draw_margins

    experiment = load_config(config)
    tasks = [
        choose_one(experiment, method, epsilon, split, data_dir, identify=False)
        for split in range(min(fits or experiment.splits, experiment.splits))
    ]
    options.warn(tasks[0].is_private, "the picture shows exact advantages and margins")
    figure = draw_margins(run_boosting(experiment, tasks, data_dir, allow_tuned_splits))
    endings = endings_of(format)
    with owner_only(tasks[0].is_private):
        paths = save_figures({name: lambda: figure}, output, endings, sheet_of(size, font, dpi))
    say_written(paths)


@plot.command()
def sweep(
    parameter: Annotated[str, typer.Argument(help="The parameter, e.g. n_maps.")],
    metric: Annotated[str, typer.Option(help="auc, rmse, accuracy, ...")] = "accuracy",
    output: Output = DEFAULT_OUTPUT,
    format: Formats = None,
    size: Size = None,
    font: Font = None,
    dpi: Dpi = DPI,
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
) -> None:
    """Draw the metric against a parameter that the `grid` of a config varies.

    There is one picture for each dataset, with one curve for each method and privacy level. Bars
    are standard deviations over splits. A dotted line is the result for the parameter value none.

    Example: dprepro plot sweep n_maps --config mnist-maps --config mnist
    """
    from functools import partial

    from dprepro.report.draw.files import save_figures
    from dprepro.report.draw.sweeps import build_sweeps, draw_sweeps
    from dprepro.results.margins import find_metric

    shown = find_metric(metric)
    held = read(results, config)
    found = build_sweeps(held, parameter, shown, method_titles())
    names = file_names(f"sweep-{parameter}-{dataset}" for dataset in found)
    sheet = sheet_of(size, font, dpi)
    figures = {
        name: partial(draw_sweeps, sweeps, parameter, shown, dataset, sheet)
        for name, (dataset, sweeps) in zip(names, found.items(), strict=True)
    }
    warn(held.is_private, SHOWS_SCORES)
    with owner_only(held.is_private):
        paths = save_figures(figures, output, endings_of(format), sheet, is_fitted=True)
    say_written(paths)
