"""`dprepro fit`, `edit` and `score`: save a model, change it, score it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.options import AllowTunedSplits, ConfigName, DataDir, Encrypt, Store, one_level
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import require_writable

if TYPE_CHECKING:
    from dprepro.additive.editing import Edit
    from dprepro.additive.model import AdditiveModel
    from dprepro.experiment.record import Task

# As `dprepro.release.folder` and `dprepro.cli.release` name them, without the import of a library.
_MODEL, _PAGE, _STATEMENT = "model.json", "model.html", "statement.json"


def model_file(given: Path) -> Path:
    """Return the model file that is meant: that of a release folder, else what is given."""
    inside = given / _MODEL
    return inside if inside.is_file() else given


ModelFile = Annotated[
    Path,
    typer.Argument(
        help="A model file, from `dprepro release` or `dprepro fit`, or the folder of a release.",
        callback=model_file,
    ),
]


def refuse_in_release(target: Path) -> None:
    """Refuse to replace the model or the page of a release.

    Raises
    ------
    DpreproError
        If `target` is one of them: the statement beside it would no longer be true of the folder.
    """
    if target.name in (_MODEL, _PAGE) and target.with_name(_STATEMENT).is_file():
        raise DpreproError(
            f"{target} belongs to a release: if it changed, `dprepro verify` would fail. Nothing "
            "was written; name another place with --output"
        )


def fit(
    config: ConfigName,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model.")],
    method: Annotated[str, typer.Option(help="The method, by name or label.")],
    epsilon: Annotated[float | None, one_level("Its epsilon.")] = None,
    split: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Fit only to the training rows of this split, so that `score` has test rows.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="PATH",
            help="Fit to all rows of this table, and not to those of the dataset: a parquet file, "
            "a folder of parquet files, or a CSV file.",
        ),
    ] = None,
    store: Store = None,
    encrypt: Encrypt = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Threads that share the rows; they change no result.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Fit one additive model of a config to all rows, and save it as JSON.

    The file holds the shape functions, the edits, the ledger, and an explanation of how to predict
    without this package. A model for release needs `seed: null` in the config: then the noise comes
    from the operating system. With --split and private data, a second file beside it says which
    rows the model was fitted to. That file is not for release.

    With --table the rows come from a file or folder of your own, which is read in chunks. The card
    of the config's dataset says what is in it: features, domain, target and labels. Other columns
    are not read. The rows count as private, whatever the card says of its own files. `dprepro
    methods` says which methods read tables in chunks.

    While the fit lasts, the folder of --store holds the rows, each value as the number of its bin,
    and the noisy answers so far. All of it is private. If the fit is interrupted, the same command
    goes on where it was: no noise is drawn twice. When the model is fitted, the folder is deleted.
    With --encrypt the key is in memory alone, so that what is left of an interrupted fit is of no
    use to anybody, and the same command starts anew.

    Example: dprepro fit adult --method dp-ebm-gdp --epsilon 1 --output model.json

    With a table: dprepro fit mine.yaml --method dp-ebm-gdp --table rows.parquet -o model.json
    """
    from dprepro.additive.file import encoded, rehearsing
    from dprepro.data.card import load_card
    from dprepro.experiment.config import load_config
    from dprepro.experiment.worker import TableRef
    from dprepro.release.fitting import choose_one, describe, fit_model, of_table
    from dprepro.release.progress import shown_progress
    from dprepro.release.provenance import origin_of, save_fitted, take_card
    from dprepro.rows.folder import deletion_at_the_end
    from dprepro.runtime.threads import granted

    experiment = load_config(config)
    # A fit to all rows holds none out, so nothing has to identify its training rows.
    by_split = split is not None
    if by_split and table is not None:
        raise DpreproError(
            "--table fits to all rows of the table, and --split to a part of the dataset's: leave "
            "one of them out"
        )
    if table is None and (store is not None or encrypt):
        raise DpreproError("--store and --encrypt are about the rows of --table: name a table")
    task = choose_one(experiment, method, epsilon, split or 0, data_dir, identify=by_split)
    task = task if table is None else of_table(task)
    given = None
    if table is not None:
        given = TableRef(table, store or output.with_name(f"{output.name}.store"), encrypt)
    require_writable(output)
    card = load_card(experiment.card)

    def try_file(largest: AdditiveModel) -> None:
        take_card(largest, card)
        origin = origin_of(largest, experiment.name, task, not by_split, table is not None)
        encoded(largest, f"cannot save {output}", origin)

    with (
        rehearsing(try_file),
        deletion_at_the_end(),
    ):  # a model that cannot be saved need not be fitted again
        with granted(jobs or 1), shown_progress(first=f"fitting {describe(task)}"):
            model = fit_model(experiment, task, data_dir, not by_split, given)
        notes = save_fitted(model, experiment.name, task, output, not by_split, table is not None)
    rows = f"split {split}" if by_split else "all rows" if table is None else f"rows of {table}"
    say(f"{output}: {describe(task)} on {task.dataset}, {rows}")
    say(_promise(model, task, card.unit_title or ""))
    if notes is not None:
        say(f"{notes}: which rows those are; not for release")


def _promise(model: AdditiveModel, task: Task, unit_title: str) -> str:
    from dprepro.estimators.contract import ledger_of
    from dprepro.privacy.guarantee_status import UNVERIFIED, GuaranteeStatus, status_of

    ledger = ledger_of(model)
    if status_of(task.epsilon, ledger) is GuaranteeStatus.UNVERIFIED:
        return f"{task.method}: {UNVERIFIED}"
    if ledger is None:
        advice = ": the file is not private, keep it to yourself" if task.is_private else ""
        return f"fitted without privacy{advice}"
    from dprepro.experiment.plan import SPLIT
    from dprepro.release.guarantee_words import titled
    from dprepro.report.ledgers import verdict

    of_split = f" (taken as public: {SPLIT})" if SPLIT in ledger.assumed_public else ""
    return f"{verdict(titled(ledger, unit_title))}{of_split}"


def edit(
    model: ModelFile,
    feature: Annotated[
        str | None, typer.Option(help="The feature, or pair of features, to change or to show.")
    ] = None,
    monotone: Annotated[
        str | None, typer.Option(metavar="DIRECTION", help="Make it increasing or decreasing.")
    ] = None,
    interpolate: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="FROM TO", help="Draw a line through this range."),
    ] = None,
    level: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="FROM TO", help="Give this range one value, its weighted mean."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="Bin to set: a number in it, a category, or its label. Cell of a pair: 'X & Y'."
        ),
    ] = None,
    value: Annotated[float | None, typer.Option(help="New value of the bin of --at.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take back the last edit.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save to this file, not to MODEL.")
    ] = None,
) -> None:
    """Change a saved model by hand, or show what is in it.

    Edits cost no privacy if you choose them by the model and by public knowledge, not by private
    rows. The file stores them, and its ledger names them. Without a change the model is shown.

    Example: dprepro edit model.json --feature age --monotone increasing
    """
    from dprepro.additive import editing
    from dprepro.additive.file import load_model, save_model

    loaded = load_model(model)
    setting = at is not None or value is not None
    asked = sum([monotone is not None, interpolate is not None, level is not None, setting, undo])
    if not asked:
        _show(loaded, model, feature)
        return
    if asked > 1 or (feature is None and not undo) or (setting and (at is None or value is None)):
        raise DpreproError(
            "name one change: --undo, or --feature with --monotone DIRECTION, with "
            "--interpolate FROM TO, with --level FROM TO, or with both --at and --value"
        )
    target = output or model
    refuse_in_release(target)
    done: Edit | None
    if undo:
        done = editing.undo(loaded)
    elif monotone is not None:
        done = editing.make_monotone(loaded, str(feature), monotone)
    elif interpolate is not None:
        done = editing.interpolate(loaded, str(feature), *interpolate)
    elif level is not None:
        done = editing.level(loaded, str(feature), *level)
    else:
        done = editing.set_value(loaded, str(feature), str(at), float(value or 0.0))
    if done is not None or output is not None:
        save_model(loaded, target)
    say(_outcome(done, undo, target))


def _outcome(done: Edit | None, undone: bool, target: Path) -> str:
    if done is None:
        return "nothing to change: the function is like that already"
    moved = sum(a != b for a, b in zip(done.before, done.after, strict=True))
    size = max(abs(a - b) for a, b in zip(done.before, done.after, strict=True))
    return (
        f"{target}: {'undone: ' if undone else ''}{done}; "
        f"{moved} of {len(done.after)} bins moved, by up to {size:.3g}"
    )


def _show(model: AdditiveModel, path: Path, feature: str | None) -> None:
    from dprepro.additive.editing import pair_position, position_of
    from dprepro.additive.shapes import shapes_of
    from dprepro.estimators.contract import ledger_of
    from dprepro.report import ledgers as render
    from dprepro.runtime.terminal import console

    shapes = shapes_of(model)
    if feature is not None:
        place = pair_position(model, feature)
        k = position_of(model, feature) if place is None else len(model.bins_) + place
        console().print(render.bins(shapes[k]))
        return
    console().print(
        render.model_overview(shapes, str(path), model.intercept_, map(str, model.edits_))
    )
    if (ledger := ledger_of(model)) is not None:
        from dprepro.release.folder import unit_title_beside
        from dprepro.release.guarantee_words import titled
        from dprepro.report.ledgers import ledger_in_full

        ledger = titled(ledger, unit_title_beside(path))
        console().print(ledger_in_full(ledger, "Ledger", ", as stated in the file"))


def score(
    model: ModelFile,
    config: ConfigName,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data_dir: DataDir = None,
    allow_tuned_splits: AllowTunedSplits = False,
) -> None:
    """Score a saved model on the test rows of its split; the model must come from `fit --split`.

    An edited model is scored with and without its edits. Scores are exact: on private rows they are
    not covered by epsilon.

    Example: dprepro score model.json adult
    """
    from dprepro.additive.editing import undo
    from dprepro.additive.file import load_model, model_from_json, model_to_json
    from dprepro.cli import options
    from dprepro.data import says_private
    from dprepro.experiment.config import load_config
    from dprepro.release.fitting import score_held_out
    from dprepro.release.provenance import trained_on
    from dprepro.report import ledgers as render
    from dprepro.runtime.terminal import console

    loaded = load_model(model)
    experiment = load_config(config)
    trained = trained_on(loaded.origin_, model)
    asked = (trained, experiment, data_dir, allow_tuned_splits)
    scores = {"model": score_held_out(loaded, *asked)}
    if loaded.edits_:
        released = model_from_json(model_to_json(loaded))
        while released.edits_:
            undo(released)
        scores["as released"] = score_held_out(released, *asked)
    options.warn(says_private(str(trained.get("data_fingerprint"))), "these are exact scores")
    if as_json:
        typer.echo(json.dumps(scores, indent=1))
    else:
        console().print(render.scores(scores))
