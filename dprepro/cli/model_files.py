"""The model that a command is given: a file, or the folder of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprepro.errors import DpreproError

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
