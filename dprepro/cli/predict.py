"""`dprepro predict`: what a saved model says of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.models import ModelFile
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel


def predict(
    model: ModelFile,
    table: Annotated[
        Path,
        typer.Argument(help="New rows: a CSV or parquet file, or a folder of parquet files."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Where to write: a .csv or .parquet file, which is replaced if it exists, in a "
            "folder that is made if there is none; - is CSV on standard output.",
        ),
    ],
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Write what each feature and pair adds, and what the model does not know.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse a table with values that the model does not know."),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="COVERAGE",
            help="Write prediction intervals, too, that hold this share of the targets, such as "
            "0.9: from 0.5 to 0.99. For regression by dp-ebm-plus.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="Carry this column along, such as an identifier. Repeat it for several.",
        ),
    ] = None,
    card: Annotated[
        str | None,
        typer.Option(
            help="Card that says how the CSV is written, and which texts mean a missing value.",
            show_default="commas, a header, and the missing texts '', ?, NA, NaN, nan, null",
        ),
    ] = None,
) -> None:
    """Predict new rows with a saved model; the rows need not fit into memory.

    Columns are found by their names, in any order; others are ignored. For classification the file
    gets `prediction`, the label as the data call it, and `probability`, that of the positive label;
    of several classes `probability of LABEL` for each. For regression it gets `prediction`.

    Rows are read as in training. A number outside its bounds falls into the first or the last bin,
    as if it were the bound. A category that the model does not know counts as "(other)". A missing
    value goes into the bin that missing values had, or that of the card's `fill`. Where there is no
    such bin, the feature adds 0. Standard error names the features with unknown categories, numbers
    outside bounds, or missing values without a bin, and counts these. --strict refuses a table that
    has any: it writes nothing, and the exit code is 2.

    --interval 0.9 adds `lower` and `upper`: the target lies between them in about 90 % of rows like
    those that the model was fitted to. A model of dp-ebm-plus for regression knows them from what
    it released, so they cost no budget.

    --explain adds `log_odds` (regression: `sum`), `intercept`, and `contribution of FEATURE` for
    each feature and each pair of features. Intercept and contributions add up to it, but for
    rounding below 1e-12 of the largest. The probability is 1 / (1 + exp(-log_odds)), but of several
    classes they are of the predicted one over the geometric mean of all; the prediction
    of a regression is the sum, clipped to the range of the target where the model has one. The last
    column is `notes`: the features of the row whose value the model does not know, such as "age:
    above its bounds; sex: unknown category".

    Example: dprepro predict model.json new.csv --output predictions.csv --explain --keep id

    With a check: dprepro predict model.json new.csv --output predictions.csv --strict
    """
    from dprepro.additive.file import load_model
    from dprepro.data.card import load_card
    from dprepro.release.predicting import Wanted, predict_table
    from dprepro.release.progress import shown_progress
    from dprepro.runtime.terminal import error_console

    target = None if output == "-" else Path(output)
    if target is not None and target.resolve() == model.resolve():
        raise DpreproError(f"{output} is the model file: name another place for the predictions")
    loaded = load_model(model)
    wanted = Wanted(explain, tuple(keep or ()), interval, strict)
    with shown_progress(error_console()):
        unknown = predict_table(
            loaded, table, target, wanted, None if card is None else load_card(card)
        )
    for line in unknown.lines():
        say(line, err=True)
    if target is not None:
        say(f"{output}: {_summary(loaded)}")


def _summary(model: AdditiveModel) -> str:
    from dprepro.additive.model import AdditiveClassifier

    of_target = "" if model.target_name_ is None else f" of {model.target_name_!r}"
    if isinstance(model, AdditiveClassifier) and not model.several_classes:
        return f"predictions{of_target}; `probability` is that of {model.class_names[1]!r}"
    return f"predictions{of_target}"
