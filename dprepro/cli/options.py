"""Options and warnings that several commands share, and the journals that options name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprepro.cli.streams import say
from dprepro.report.sheet import DPI, Sheet
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin

if TYPE_CHECKING:
    from dprepro.judge.forensics import Judgement
    from dprepro.papers.document import Document
    from dprepro.results.aggregation import JournalPlan
    from dprepro.results.folder import Results

AllowTunedSplits = Annotated[
    bool,
    typer.Option(
        "--allow-tuned-splits",
        help="Score a config of `dprepro tune` on the splits that chose its parameters.",
    ),
]


_ALLOWED = "Allowed are numbers above 0, such as 0.5, 1 or 8"

SHOWS_SCORES = "the picture shows exact scores"

ABOUT_ROWS = "what is said of the rows depends on them"

DEFAULT_FOLDER = Path("results")

SHIPPED = Path("shipped")
"""The name that means the folder of the runs that come with dprepro."""


def one_level(help: str) -> Any:
    """Return the option of a command that takes one level at a time."""
    return _option(help, "This command takes one level at a time: --epsilon {first}")


def repeated_levels(help: str) -> Any:
    """Return the option of a command that takes several levels."""
    return _option(help, "Give the option for each level: {each}")


def _option(help: str, advice: str) -> Any:
    return typer.Option("--epsilon", parser=_reader(advice), metavar="<float>", help=help)


def _reader(advice: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        number = _number(str(text))
        if number is not None:
            return number
        parts = [part.strip() for part in str(text).replace(";", ",").split(",")]
        if len(parts) < 2 or any(_number(part) is None for part in parts):
            raise typer.BadParameter(f"{text!r} is not a number. {_ALLOWED}.")
        if len(parts) == 2 and parts[0] == "0":
            raise typer.BadParameter(
                f"{text!r} is not a number. A fraction has a point: 0.{parts[1]}."
            )
        said = advice.format(first=parts[0], each=" ".join(f"--epsilon {part}" for part in parts))
        raise typer.BadParameter(f"{text!r} is not one number. {said}.")

    return read


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def warn(is_private: bool, what: str) -> None:
    """Print to standard error that `what` is not for release, if the rows are private."""
    if is_private:
        typer.echo(f"PRIVATE DATA: {what}, not covered by epsilon: keep it to yourself", err=True)


def _folder_meant(context: typer.Context, folder: Path) -> Path:
    """Return the folder of the shipped runs where it is named, or no run was here."""
    if context.resilient_parsing:  # completion in a shell
        return folder
    from dprepro.experiment.journal import journal_files

    come_with = builtin("results")
    if folder == SHIPPED and not folder.exists():
        return come_with
    if folder != DEFAULT_FOLDER or not come_with.is_dir() or _is_one(folder, come_with):
        return folder
    if not journal_files(folder):
        say(
            "There are no journals in the folder `results` here: these are the shipped runs, which "
            "come with dprepro. `dprepro run CONFIG` makes your own",
            err=True,
        )
        return come_with
    _say_whose(context)
    return folder


def _say_whose(context: typer.Context) -> None:
    """Say that the shipped runs are left out, unless some are asked for beside one's own."""
    from dprepro.results.result_cell import MARK

    given = context.params
    asked = [name for name in given.get("methods") or () if name.endswith(MARK)]
    if given.get("shipped") or asked:
        return
    if not sys.stdout.isatty():  # who reads the lines elsewhere has asked for nothing else
        return
    ways = {"shipped": "--shipped", "methods": f'"METHOD{MARK}"'}
    parameters = {parameter.name for parameter in context.command.params}
    beside = [way for name, way in ways.items() if name in parameters]
    also = f"; beside yours: {beside[0]}" if beside else ""
    say(f"Your own runs. Those that come with dprepro: --results shipped{also}", err=True)


def _is_one(folder: Path, other: Path) -> bool:
    return folder.resolve() == other.resolve()


class FigureFormat(str, Enum):
    """File formats of pictures."""

    PDF = "pdf"
    SVG = "svg"
    PNG = "png"


def endings_of(format: list[FigureFormat] | None) -> list[str]:
    """Return the endings of the files to write: those chosen, or PNG and SVG."""
    return [chosen.value for chosen in format or (FigureFormat.PNG, FigureFormat.SVG)]


_SMALLEST_SIDE, _LARGEST_SIDE = 1.0, 40.0  # inches


def _inches(text: str) -> tuple[float, float]:
    sides = [_number(part) for part in str(text).lower().replace("×", "x").split("x")]
    if len(sides) != 2 or not all(s and _SMALLEST_SIDE <= s <= _LARGEST_SIDE for s in sides):
        raise typer.BadParameter(
            f"{text!r} is not a size. Allowed are width and height in inches, each from "
            f"{_SMALLEST_SIDE:g} to {_LARGEST_SIDE:g}: 3.3x2.4"
        )
    return float(sides[0] or 0.0), float(sides[1] or 0.0)


Formats = Annotated[
    list[FigureFormat] | None, typer.Option(help="File format (repeatable); default: PNG and SVG.")
]
Size = Annotated[
    tuple | None,
    typer.Option(
        "--size",
        parser=_inches,
        metavar="WxH",
        help="Width and height of a picture in inches, such as 3.3x2.4 for a column of a paper.",
    ),
]
Font = Annotated[
    float | None,
    typer.Option(
        "--font", min=4, max=30, help="Points of the labels of axes; other letters go with them."
    ),
]
Dpi = Annotated[int, typer.Option("--dpi", min=50, max=1200, help="Dots per inch of PNG files.")]


def sheet_of(size: tuple[float, float] | None, font: float | None, dpi: int = DPI) -> Sheet:
    """Return what pictures are drawn on, as the options say."""
    width, height = size or (None, None)
    return Sheet(width, height, font, dpi)


ConfigName = Annotated[str, typer.Argument(help="Built-in name or path of a config.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of datasets.", show_default="$DPREPRO_DATA"),
]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FOLDER",
        help="Where the rows of --table are kept as whole numbers until the end.",
        show_default="OUTPUT.store",
    ),
]
Encrypt = Annotated[
    bool,
    typer.Option("--encrypt", help="Encrypt them there; what is interrupted then cannot go on."),
]
Datasets = Annotated[
    list[str] | None, typer.Option("--dataset", help="Only these datasets (repeatable).")
]
ShownDatasets = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        "--datasets",
        metavar="TEXT",
        help="Only these datasets, in this order; repeatable, or a list with commas.",
    ),
]
ShownMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        "--method",
        metavar="TEXT",
        help="Only these methods, by label or heading, in this order; repeatable, or a list with "
        "commas.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "--methods",
        metavar="TEXT",
        help="Only these methods, by name, label or heading; repeatable, or a list with commas.",
    ),
]
Levels = Annotated[list[float] | None, repeated_levels("Only this epsilon; repeatable.")]
Split = Annotated[int, typer.Option("--split", min=0, help="Fit to this split's training rows.")]
OwnFolder = Annotated[Path, typer.Option("--results", help="Folder of the journals.")]
ResultsFolder = Annotated[
    Path,
    typer.Option(
        "--results",
        help="Folder of the journals; without any in it, or by the name shipped, the runs that "
        "come with dprepro.",
        callback=_folder_meant,
    ),
]
Shipped = Annotated[
    bool,
    typer.Option(
        "--shipped",
        help="Add the runs that come with dprepro, marked (shipped run).",
        is_eager=True,  # before --results, which says that they are left out
    ),
]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", help="Only the journals of these configs (repeatable)."),
]
Paper = Annotated[
    str | None,
    typer.Option(
        "--paper",
        help="Only this document: its name, the beginning of it (dp-ebm), or the folder of a paper "
        "of your own (./mypaper).",
    ),
]
Margins = Annotated[
    list[str] | None,
    typer.Option(
        "--margin",
        help="Largest difference that counts as equivalent, e.g. auc=0.01 or rmse=5% (repeatable).",
    ),
]


def own_papers(found: Results) -> list[str]:
    """Say of each config that answers to a paper of a user's own how `--paper` names it."""
    from dprepro.papers.document import load_documents
    from dprepro.papers.folders import folder_beside
    from dprepro.runtime.text import in_short, shell

    configs: dict[str, list[str]] = {}
    for name, plan in found.plans.items():
        if plan.paper is not None and plan.paper not in load_documents():
            configs.setdefault(plan.paper, []).append(name)
    said = []
    for paper, names in configs.items():
        folder = folder_beside(paper)
        way = f"--paper {shell(f'./{folder}')}" if folder else "--paper and the path of its folder"
        answer = "answers" if len(names) == 1 else "answer"
        said.append(f"{in_short(names)} {answer} to {paper}, a paper of your own: add {way}")
    return said


def read(
    folder: Path,
    configs: Sequence[str] | None = None,
    shipped: bool = False,
    come_with: Path | None = None,
) -> Results:
    """Read the journals that `shown_journals` names: of each, what its plan asks for.

    With `shipped`, the runs that come with dprepro follow, marked; a config may be in either. A
    line on standard error says of how many tasks both have a record, and whether these agree.
    `come_with` is the folder of those runs, if it is not that of the documents.
    """
    from dprepro.results.folder import beside, read_results

    come_with = come_with or builtin("results")
    if not shipped or _is_one(folder, come_with):
        return read_results(folder, configs or (), assumed_plan, only_usual=not configs)
    own, others = _one_side(folder, come_with, configs), _one_side(come_with, folder, configs)
    _say_of_both(own, others)
    return beside(own, others)


def _one_side(folder: Path, other: Path, configs: Sequence[str] | None) -> Results:
    """Read what `folder` holds of `configs`; what neither it nor the other has is an error."""
    from dprepro.experiment.journal import journal_files
    from dprepro.results.folder import assemble

    here, there = journal_files(folder), journal_files(other)
    named = [name for name in configs or () if name in here or name not in there]
    return read(folder, named) if named or not configs else assemble([])


def _say_of_both(own: Results, others: Results) -> None:
    from dprepro.judge.rerun import compare_records
    from dprepro.results.folder import in_both

    ours, theirs = in_both(own, others)
    if not ours:
        return
    differing = {found.record.task.key for found in compare_records(ours, theirs).mismatches}
    metrics = (
        f"{len(differing):,} with other metrics, as other versions of libraries can make them"
        if differing
        else "with equal metrics"
    )
    say(f"{len(ours):,} of your tasks are among the shipped runs: {metrics}", err=True)


def shown_journals(folder: Path, configs: Sequence[str] | None = None) -> list[str]:
    """Return the names of the journals to show: those of `configs`, or all but hypotheses.

    Journals of hypotheses (the key `hypotheses` of a config) are for `dprepro forensics`. They are
    shown if their configs are named, or if there are no others.
    """
    from dprepro.results.folder import journal_paths, usual

    paths = journal_paths(folder, configs or ())
    return [path.stem for path in (paths if configs else (one.path for one in usual(paths)))]


def read_held_out(folder: Path, found: Results, documents: Sequence[Document]) -> list[Judgement]:
    """Judge the settings that were chosen by looking at printed numbers where they were not chosen.

    Parameters
    ----------
    found
        What `read` found in `folder`. The journals of hypotheses are read besides.
    """
    from dprepro.judge.forensics import judge_held_out
    from dprepro.papers.hypotheses import load_held_out, load_hypotheses
    from dprepro.results.folder import journal_paths, read_journals

    own = [document for document in documents if document.chosen]
    others = [path.stem for path in journal_paths(folder) if path.stem not in found.journals]
    if not own:
        return []
    if others:
        found = found.joined(read_journals(folder, others, assumed_plan))
    return judge_held_out(load_held_out(), load_hypotheses(), own, found)


def assumed_plan(name: str) -> JournalPlan | None:
    """Return the plan of the built-in config of a journal's name; None where there is none.

    It is without its tasks where these depend on absent data.
    """
    from dprepro.experiment.config import config_names, load_config
    from dprepro.experiment.plan import plan
    from dprepro.experiment.plan_record import state_plan
    from dprepro.results.aggregation import JournalPlan

    if name not in config_names():
        return None
    try:
        config = load_config(name)
    except DpreproError:  # it only includes others, and a journal has its name by chance
        return None
    try:
        return JournalPlan.stated(state_plan(config, (planned.task for planned in plan(config))))
    except DpreproError:
        return replace(JournalPlan.stated(state_plan(config, ())), cells=None)


def method_titles() -> dict[str, str]:
    """Return the titles of all methods by name; none if a method of the user is broken."""
    from dprepro.methods.registry import all_methods

    try:
        return {name: method.title for name, method in all_methods().items()}
    except DpreproError as error:
        say(f"methods are shown by name: {error}", err=True)
        return {}
