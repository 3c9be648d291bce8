"""The rehearsal of a release: it is written, verified and exported before its budget is booked.

The model of the rehearsal is the largest that domain and settings allow, of no row, so that what
fails for it, or does not fit on the disk, is found while nothing is spent.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from importlib.util import find_spec

from dprepro.additive.editing import note_edits
from dprepro.additive.export.onnx import to_onnx
from dprepro.additive.export.python import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.additive.file import load_model
from dprepro.additive.model import AdditiveModel
from dprepro.errors import DpreproError
from dprepro.privacy.ledger import Ledger
from dprepro.release.folder import MODEL, Room


def with_ledger(model: object, ledger: Ledger) -> AdditiveModel:
    """Return the model of a rehearsal with the ledger that is planned.

    Raises
    ------
    DpreproError
        If it is no additive model.
    """
    if not isinstance(model, AdditiveModel):
        raise DpreproError("the fit to drawn rows gave no additive model, so none can be released")
    model = copy(model)
    model.ledger_ = deepcopy(ledger)
    note_edits(model)
    return model


def rehearse(
    room: Room, write: Callable[[], object], differences: Callable[[], list[str]], exports: bool
) -> None:
    """Write a release into its room, verify it, and hold on to as much of the disk instead.

    Parameters
    ----------
    write
        Writes the files into the folder of the room.
    differences
        Says in words what `dprepro verify` would find there.
    exports
        Whether each form of `dprepro export` has to be possible; ONNX only where it is installed.

    Raises
    ------
    DpreproError
        If any of it fails. Nothing is spent then.
    """
    try:
        write()
        if found := differences():
            raise DpreproError(f"the release would not be what `dprepro verify` wants: {found[0]}")
        if exports:
            _require_exports(load_model(room.folder / MODEL))
        room.hold()
    except DpreproError as error:
        raise DpreproError(f"{error}. Nothing was spent and nothing was written") from error


def _require_exports(model: AdditiveModel) -> None:
    forms: dict[str, Callable[[], object]] = {
        "python": lambda: to_python(model),
        "sql": lambda: to_sql(model, "new_rows"),
    }
    if find_spec("onnx") is not None:
        forms["onnx"] = lambda: to_onnx(model)
    for form, export in forms.items():
        try:
            export()
        except DpreproError as error:
            raise DpreproError(
                f"the model could not be exported to {form}: {error}. Or accept that with "
                "--allow-no-export"
            ) from error
