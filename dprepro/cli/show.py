"""`dprepro show`: a saved model on one HTML page."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dprepro.cli.models import ModelFile, refuse_in_release
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError

_ENDINGS = (".html", ".htm")


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("show")(show)


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
    change the functions there and download the edited model, whose ledger names the edits.

    Example: dprepro show model.json
    """
    from dprepro.additive.file import load_model
    from dprepro.report.model_page import model_page
    from dprepro.runtime.files import owner_only

    target = output or model.with_suffix(".html")
    if target.suffix not in _ENDINGS:
        raise DpreproError(f"--output {target}: allowed endings are {' and '.join(_ENDINGS)}")
    if target.resolve() == model.resolve():
        raise DpreproError(f"{target} is the model itself; name the page with --output")
    refuse_in_release(target)
    loaded = load_model(model)
    written = model_page(loaded, title_of(loaded.origin_, model.stem), model.name).encode()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with owner_only("not_for_release" in loaded.origin_):
            target.write_bytes(written)
    except OSError as error:
        raise DpreproError(f"{target}: cannot be written: {error.strerror}") from error
    say(f"{target}: {len(loaded.term_names)} functions, {len(written) / 1e6:.2f} MB")
    if open_it and not webbrowser.open(target.resolve().as_uri()):
        raise DpreproError(f"no browser could be started; open {target} in one")


def title_of(origin: Mapping[str, Any], name: str) -> str:
    """Return a heading from what a model file says of its origin: method and dataset, or `name`."""
    task = origin.get("task")
    known = {**origin, **task} if isinstance(task, Mapping) else origin
    method, dataset = known.get("label") or known.get("method"), known.get("dataset")
    return f"{method} on {dataset}" if method and dataset else name
