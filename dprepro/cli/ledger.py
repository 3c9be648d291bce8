"""`dprepro ledger`: what a config or a fitted model spends. No private row is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.models import model_file
from dprepro.cli.options import DataDir, Levels, Methods
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.report.ledgers import Words


def ledger(
    config: Annotated[
        str,
        typer.Argument(
            help="Built-in name or path of a config, a model file, or a folder of `dprepro "
            "release`.",
        ),
    ],
    method: Methods = None,
    epsilon: Levels = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the full ledgers as JSON.")
    ] = False,
    data_dir: DataDir = None,
    audits: Annotated[
        Path, typer.Option(help="Folder of results of `dprepro audit`, for methods of your own.")
    ] = Path("results"),
) -> None:
    """Show every noisy answer of private methods of a config, or of a fitted model, and its budget.

    Of a model file it is the ledger in that file. Of a config it is that of fits to random rows of
    the public domain, so no private row is read. The noise of a fit to your rows can differ: some
    methods first release the number of rows, with noise, and divide their budget by it. With
    --method and --epsilon a config's ledger is shown in full. The ledger of a method of your own is
    its author's word; what audits say of its code is shown beside it. The exit code is 2 if there
    is no ledger to show, or if a method that --method names fails.

    Example: dprepro ledger adult --method dp-ebm-gdp --epsilon 1
    """
    from dprepro.experiment.config import load_config
    from dprepro.release.planning import ROWS, planned_ledgers
    from dprepro.report import ledgers as render
    from dprepro.results.audits import WordsOf
    from dprepro.runtime.terminal import PlainConsole

    words = WordsOf(audits).of
    if (model := _model_file(config)) is not None:
        if method or epsilon:
            raise DpreproError(f"{model} has one ledger: leave out --method and --epsilon")
        _show_model(model, as_json, words)
        return
    experiment = load_config(config)
    found = planned_ledgers(experiment, tuple(method or ()), tuple(epsilon or ()), data_dir)
    screen = PlainConsole()
    if as_json:
        fitted_to = {"fitted_to": f"{ROWS} random rows of the public domain"}
        ledgers = [render.ledger_json(planned) | fitted_to for planned in found]
        typer.echo(json.dumps(ledgers, indent=1))
    else:
        screen.print(
            f"Ledgers of fits to {ROWS} random rows of the public domain. `dprepro ledger MODEL` "
            "shows that of a fitted model.\n"
        )
        if method and epsilon:
            for planned in found:
                screen.print(render.detail(planned, words))
        else:
            screen.print(render.ledger_overview(found, words))
            screen.print("\nTo see a ledger in full, give both --method and --epsilon.")
    if method and any(planned.error for planned in found):
        raise typer.Exit(2)


def _model_file(name: str) -> Path | None:
    """Return the model file that is meant: the file itself, or that of a release folder."""
    found = model_file(Path(name))
    return found if found.suffix == ".json" and not found.is_dir() else None


def _show_model(path: Path, as_json: bool, words: Words) -> None:
    from dprepro.additive.file import load_model
    from dprepro.estimators.contract import ledger_of
    from dprepro.release.folder import unit_title_beside
    from dprepro.release.guarantee_words import titled
    from dprepro.report import ledgers as render
    from dprepro.runtime.terminal import PlainConsole

    model = load_model(path)
    found = ledger_of(model)
    if found is None:
        raise DpreproError(f"{path} has no ledger: it promises no privacy")
    if as_json:
        typer.echo(json.dumps({"model": str(path)} | render.ledger_values(found), indent=1))
        return
    shown = titled(found, unit_title_beside(path))
    word = words(str(model.origin_.get("method", "")), found.code)
    PlainConsole().print(render.ledger_in_full(shown, str(path), ", as stated in the file", word))
