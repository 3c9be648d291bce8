"""`dprepro show` and `votes`: what is in a model."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dprepro.cli.models import ModelFile, refuse_in_release
from dprepro.cli.options import AllowTunedSplits, ConfigName, DataDir, Split, one_level
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import owner_only

_ENDINGS = (".html", ".htm")


def show(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page to write.", show_default="MODEL, ending in .html"
        ),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Show a saved model on one HTML page: functions, predictions, guarantee, and an editor.

    The page is a single file and needs no network. It draws the functions from the most important
    one to the least. It shows what a prediction is made of for values that you type in. You can
    change the functions there and download the edited model, whose ledger names the edits; those of
    several classes are read class by class, and not changed.

    Example: dprepro show model.json
    """
    from dprepro.additive.file import load_model
    from dprepro.release.folder import unit_title_beside
    from dprepro.report.model_page import model_page

    target = output or model.with_suffix(".html")
    check_page(target)
    if target.resolve() == model.resolve():
        raise DpreproError(f"{target} is the model itself; name the page with --output")
    refuse_in_release(target)
    loaded = load_model(model)
    title, whose = title_of(loaded.origin_, model.stem), unit_title_beside(model)
    written = model_page(loaded, title, model.name, unit_title=whose).encode()
    write_page(target, written, "not_for_release" in loaded.origin_)
    say(f"{target}: {len(loaded.term_names)} functions, {len(written) / 1e6:.2f} MB")
    if open_it and not webbrowser.open(target.resolve().as_uri()):
        raise DpreproError(f"no browser could be started; open {target} in one")


def check_page(output: Path) -> None:
    """Raise DpreproError if a page cannot have this name."""
    if output.suffix not in _ENDINGS:
        raise DpreproError(f"--output {output}: allowed endings are {' and '.join(_ENDINGS)}")


def write_page(output: Path, content: bytes, is_private: bool) -> None:
    """Write a page, for its owner alone if it is private. Raises DpreproError."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with owner_only(is_private):
            output.write_bytes(content)
    except OSError as error:
        raise DpreproError(f"{output}: cannot be written: {error.strerror}") from error


def title_of(origin: Mapping[str, Any], name: str) -> str:
    """Return a heading from what a model file says of its origin: method and dataset, or `name`."""
    task = origin.get("task")
    known = {**origin, **task} if isinstance(task, Mapping) else origin
    method, dataset = known.get("label") or known.get("method"), known.get("dataset")
    return f"{method} on {dataset}" if method and dataset else name


def votes(
    config: ConfigName,
    method: Annotated[str, typer.Option(help="The method, by name or label.")] = "lazybb-1r",
    epsilon: Annotated[float | None, one_level("Its epsilon.")] = None,
    split: Split = 0,
    data_dir: DataDir = None,
    allow_tuned_splits: AllowTunedSplits = False,
) -> None:
    """Fit a vote of 1-Rules and show it: the number of votes of each feature and value.

    A row with the value gets that many votes for the positive label; a row without the value
    gets as many for the negative label. A negative number of votes means the opposite.

    Example: dprepro votes lazybb-adult --epsilon 0.4
    """
    from dprepro.cli import options
    from dprepro.experiment.config import load_config
    from dprepro.release.fitting import choose_one, describe, fit_vote
    from dprepro.runtime.terminal import BareTable, console

    experiment = load_config(config)
    task = choose_one(experiment, method, epsilon, split, data_dir, identify=False)
    model, metrics = fit_vote(experiment, task, data_dir, allow_tuned_splits)
    if model.base != "1r":
        raise DpreproError(
            f"{task.method} votes with trees; choose a method with 1-Rules, such as lazybb-1r"
        )
    table = BareTable(["feature", "value"], ["votes"], f"{describe(task)} on {task.dataset}")
    for row in model.votes_.itertuples():
        table.add_row(str(row.feature), str(row.value), f"{row.votes:+d}")
    console().print(table)
    options.warn(task.is_private, "the accuracy is exact")
    say(f"accuracy {metrics['accuracy']:.3f} on the test rows of split {split}")
