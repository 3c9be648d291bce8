"""`dprepro export`: a saved model in the form of other software."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dprepro.cli.models import ModelFile
from dprepro.cli.streams import say


class Form(str, Enum):
    """What a model can be exported to."""

    INTERPRET = "interpret"
    ONNX = "onnx"
    SQL = "sql"
    PYTHON = "python"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("export")(export)


def export(
    model: ModelFile,
    to: Annotated[Form, typer.Option("--to", help="The form to write.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Where to write: a file, which is replaced if it exists, in a folder that is made "
            "if there is none; - is standard output, but for onnx. For python it ends in .py.",
        ),
    ],
    table: Annotated[
        str, typer.Option(help="For sql: the table of new rows, by one name, without a schema.")
    ] = "new_rows",
) -> None:
    """Write a saved model for use without this package.

    onnx: a graph in double precision, with one input for each feature. It needs `pip install
    'dprepro\\[onnx]'`. sql: one SELECT for SQLite, DuckDB and PostgreSQL. python: a module that
    needs nothing but Python; `python FILE new.csv` writes predictions with contributions. interpret
    has no safe file for its models: in Python, `dprepro.load_model(path).to_interpret()` makes one.

    All say what `dprepro predict` says, for missing and unseen values, too. Columns of a database
    may have any type. Texts that stand for a missing value are those that a card has by default.
    What is no number where the model wants one, or infinite, is an error. SQLite, which has none,
    gives NULL, and ONNX gives NaN for an infinite number.

    Example: dprepro export model.json --to sql --output model.sql --table customers
    """
    from dprepro.additive.file import load_model
    from dprepro.runtime.errors import DpreproError
    from dprepro.runtime.files import appearing_complete, owner_only

    if to is Form.INTERPRET:
        raise DpreproError(
            "interpret has no safe file for its models, so the command writes none. In Python: "
            f"dprepro.load_model(pathlib.Path({str(model)!r})).to_interpret()"
        )
    loaded = load_model(model)
    is_private = "not_for_release" in loaded.origin_
    target = None if output == "-" else Path(output)
    if target is not None and target.resolve() == model.resolve():
        raise DpreproError(f"{output} is the model file: name another place for the export")
    if to is Form.PYTHON and target is not None and target.suffix != ".py":
        raise DpreproError(f"{output}: the name of a module ends in .py, such as {target.stem}.py")
    if to is Form.ONNX:
        from dprepro.additive.export.onnx import save_onnx

        if target is None:
            raise DpreproError("an ONNX file is no text: name a file with --output")
        with owner_only(is_private):
            save_onnx(loaded, target)
    else:
        if to is Form.SQL:
            from dprepro.additive.export.sql import to_sql

            text = to_sql(loaded, table)
        else:
            from dprepro.additive.export.plain import to_python

            text = to_python(loaded)
        if target is None:
            typer.echo(text, nl=False, color=True)
            return
        with (
            owner_only("not_for_release" in loaded.origin_),
            appearing_complete(target) as unfinished,
        ):
            unfinished.write_text(text, encoding="utf-8")
    say(f"{output}: the model for {to.value}")
