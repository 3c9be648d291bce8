"""`dprepro tree`: a decision tree as text, as a picture, or for use without this package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.export import NEW_ROWS, Database, refuse_of_query, require_dialect
from dprepro.cli.options import AllowTunedSplits, ConfigName, DataDir, Split, one_level
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import appearing_complete, owner_only, require_writable

if TYPE_CHECKING:
    from dprepro.methods.privatree.estimator import PrivaTreeClassifier

_PICTURES = (".svg", ".png", ".pdf")
_ENDINGS = (".txt", *_PICTURES, ".sql", ".onnx", ".py")


def tree(
    config: ConfigName,
    method: Annotated[str, typer.Option(help="The method, by name or label.")] = "privatree-sound",
    epsilon: Annotated[float | None, one_level("Its epsilon.")] = None,
    split: Split = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A file, whose ending says what it is to hold. Default: text is printed.",
            show_default=False,
        ),
    ] = None,
    dialect: Annotated[
        Database | None, typer.Option(help="For .sql: the database.", show_default=False)
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="For .sql: the table of new rows, by one name, without a schema.",
            show_default=NEW_ROWS,
        ),
    ] = None,
    data_dir: DataDir = None,
    allow_tuned_splits: AllowTunedSplits = False,
) -> None:
    """Fit a decision tree and show it: its questions, and the label at the end of each path.

    Questions that change no prediction are left out. --output writes the text (.txt), a picture
    (.svg, .png, .pdf), or the tree for use without this package, as `dprepro export` does with
    other models: one SELECT (.sql, with --dialect), a Python module (.py), an ONNX graph (.onnx).
    They give the label and the number of the leaf.

    Example: dprepro tree privatree-nursery --epsilon 1
    """
    from dprepro.cli import options
    from dprepro.experiment.config import load_config
    from dprepro.methods.privatree.rules import to_text
    from dprepro.release.fitting import choose_one, describe, fit_tree

    _check(output, dialect, table)
    experiment = load_config(config)
    task = choose_one(experiment, method, epsilon, split, data_dir, identify=False)
    model, metrics = fit_tree(experiment, task, data_dir, allow_tuned_splits)
    title = f"{describe(task)} on {task.dataset}"
    if output is None:
        typer.echo(f"{title}\n\n{to_text(model)}")
    else:
        content = _content(model, output.suffix, title, table or NEW_ROWS, dialect)
        with owner_only(task.is_private), appearing_complete(output) as unfinished:
            unfinished.write_bytes(content)
        say(f"{output}: {title}")
    options.warn(task.is_private, "the accuracy is exact")
    say(f"accuracy {metrics['accuracy']:.3f} on the test rows of split {split}")


def _check(output: Path | None, dialect: Database | None, table: str | None) -> None:
    if output is not None and output.suffix not in _ENDINGS:
        raise DpreproError(f"--output {output}: allowed endings are {', '.join(_ENDINGS)}")
    ending = "" if output is None else output.suffix
    if ending == ".sql":
        require_dialect(dialect)
    else:
        form = f"a file that ends in {ending}" if ending else "the text"
        refuse_of_query(form, dialect, table)
    if output is not None:
        require_writable(output)


def _content(
    model: PrivaTreeClassifier, ending: str, title: str, table: str, dialect: Database | None
) -> bytes:
    from dprepro.methods.privatree import export, rules

    if ending in _PICTURES:
        from dprepro.report.draw.files import contents
        from dprepro.report.draw.tree import draw_tree

        figure = draw_tree(rules.questions(model), title, str(model.domain_.target[1]))
        (drawn,) = contents(lambda: figure, [ending[1:]])
        return drawn
    if ending == ".onnx":
        return bytes(export.to_onnx(model).SerializeToString())
    if ending == ".sql":
        return export.to_sql(model, table, require_dialect(dialect)).encode()
    text = export.to_python(model) if ending == ".py" else f"{title}\n\n{rules.to_text(model)}"
    return text.encode()
