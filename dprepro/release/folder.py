"""The folder of a release: rehearsed, written as a whole or not at all, and checked by anybody.

The model of the rehearsal is the largest that domain and settings allow, of no row, so that what
fails for it, or does not fit on the disk, is found while nothing is spent.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy, deepcopy
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

from dprepro import __version__
from dprepro.additive.editing import note_edits
from dprepro.additive.export.dialects import TESTED_DIALECTS
from dprepro.additive.export.onnx import to_onnx
from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.additive.file import MAX_BYTES, LoadedClassifier, LoadedRegressor, load_model
from dprepro.additive.model import AdditiveModel
from dprepro.privacy.ledger import Ledger
from dprepro.release.registry import texts_for_others
from dprepro.release.statement import Publisher, Statement, as_json, state
from dprepro.release.statement_pages import as_html, as_markdown
from dprepro.runtime import files
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import sync_file, sync_folder

MODEL, STATEMENT, PAGE = "model.json", "statement.json", "model.html"

Page = Callable[[LoadedClassifier | LoadedRegressor, Publisher], str]
"""Makes the page of a loaded model, from what its publisher says."""

_SPARE_BYTES = 4 * 2**20
"""Held beside what a release takes up: for folders, and for the budget book."""
_CLOSE = 1e-5
"""By how much, relative, an epsilon may differ that another release of the accountant adds up."""


def unit_title_beside(model: Path) -> str:
    """Return what the statement beside a model file calls its unit; empty if it does not say."""
    try:
        said = json.loads((model.parent / STATEMENT).read_bytes())
        title = said["publisher"]["unit_title"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return title if isinstance(title, str) else ""


class StagingFolder:
    """A folder beside the place of a release, where it is made ready; a context manager.

    It holds on to as much of the disk as a release takes, from `hold` on. So a full disk, or a
    place where nothing can be written, is found before any budget is spent. What is not published
    goes away at the end, unless it `is_kept`.

    Attributes
    ----------
    folder
        Of this process alone; `publish` moves it to its place. Known after entering.
    is_published
        Whether it was moved there.
    is_kept
        Whether the folder stays if it is not published: its model has spent its budget.

    Raises
    ------
    DpreproError
        On entering, if `place` exists, or nothing can be written beside it.
    """

    folder: Path
    is_published = False
    is_kept = False

    def __init__(self, place: Path, page: Page) -> None:
        self.place = place
        self.page = page
        self._own: Path | None = None

    def __enter__(self) -> StagingFolder:
        refuse_existing(self.place)
        try:
            self._make()
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_published or not self.is_kept:
            self._clear()

    def write(self, name: str, text: str) -> None:
        """Write a file of the release. Raises DpreproError."""
        with _said(self.place):
            (self.folder / name).write_text(text, encoding="utf-8", newline="\n")

    def state(self, publisher: Publisher) -> Statement:
        """Write the statement of the model that lies here, and its page. Raises DpreproError."""
        path = self.folder / MODEL
        model = load_model(path)
        statement = state(model, path.read_bytes(), publisher)
        for name, text in _texts(statement).items():
            self.write(name, text)
        self.write(PAGE, self.page(model, publisher))
        return statement

    def publish(self) -> None:
        """Move the folder to its place, with all files on the disk. Raises DpreproError."""
        with _said(self.place):
            self.make_way()
            for path in self.folder.iterdir():
                sync_file(path)
            sync_folder(self.folder)
            refuse_existing(self.place)
            self.folder.rename(self.place)
            self.is_published = True
            sync_folder(self.place.parent)

    def hold(self) -> None:
        """Hold on to as much of the disk as the files of a rehearsal take up, in their place.

        Raises DpreproError if there is not so much.
        """
        with _said(self.place):
            files = [path for path in self.folder.iterdir() if path != self._ballast]
            size = sum(path.stat().st_size for path in files)
            for path in files:
                path.unlink()
            self._fill(size)

    def make_way(self) -> None:
        """Let go of the disk, for the files of the release. Raises DpreproError."""
        with _said(self.place):
            self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.folder / ".room"

    def _make(self) -> None:
        with _said(self.place):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            # Nobody else may read what mkdtemp makes, so the release is a folder in it.
            self._own = Path(mkdtemp(prefix=f".{self.place.name}.", dir=self.place.parent))
            self.folder = self._own / self.place.name
            self.folder.mkdir()
            self._fill(0)

    def _fill(self, size: int) -> None:
        with self._ballast.open("wb") as file:
            for left in range(size + _SPARE_BYTES, 0, -_SPARE_BYTES):
                file.write(b"\0" * min(left, _SPARE_BYTES))
            file.flush()
            os.fsync(file.fileno())

    def _clear(self) -> None:
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)


def refuse_existing(place: Path) -> None:
    """Raise DpreproError if there is anything at the place of a release."""
    if place.exists() or place.is_symlink():
        raise DpreproError(
            f"{place} exists already, and a release replaces nothing: choose another --output"
        )


@contextmanager
def _said(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DpreproError(f"cannot write {place}: {error.strerror or error}") from error


def _texts(statement: Statement) -> dict[str, str]:
    return {
        STATEMENT: as_json(statement),
        "statement.md": as_markdown(statement),
        "statement.html": as_html(statement),
        **texts_for_others(statement),
    }


def differences(folder: Path, page: Page) -> list[str]:
    """Return in words where the folder of a release is not what follows from its model.

    The statement is derived anew from the model's ledger, but for what the publisher says.

    Raises
    ------
    DpreproError
        If a file is missing or is not what it should be.
    """
    path = folder / MODEL
    model = load_model(path)
    try:
        said = Statement.model_validate_json(read_text(folder / STATEMENT))
    except ValueError as error:
        raise DpreproError(f"{folder / STATEMENT}: not a statement of `dprepro release`") from error
    texts = {name: read_text(folder / name) for name in _texts(said)}
    derived = state(model, path.read_bytes(), said.publisher)
    found = []
    if said.model != derived.model:
        found.append("model.json: not the file that the statement names (its SHA-256 differs)")
    of = said.publisher
    if of.earlier and len(of.earlier) != of.earlier_releases:
        found.append(
            f"statement.json: it counts {of.earlier_releases} earlier release(s), and lists "
            f"{len(of.earlier)}"
        )
    unlike = [*_unlike(said.model_dump(), derived.model_dump())]
    found += [f"statement.json: {place}" for place in unlike if not place.startswith("model.")]
    found += [
        f"{name}: not the text of statement.json, as dprepro {__version__} writes it"
        for name, text in _texts(said).items()
        if texts[name] != text
    ]
    if read_text(folder / PAGE) != page(model, said.publisher):
        found.append(f"{PAGE}: not the page of model.json, as dprepro {__version__} draws it")
    return found


def read_text(path: Path) -> str:
    """Return the text of a file of a release. Raises DpreproError."""
    return files.read_text(path, MAX_BYTES)


def _unlike(said: object, derived: object, place: str = "") -> Iterator[str]:
    """Yield where two values differ, with what was said and what follows from the model."""
    if isinstance(said, Mapping) and isinstance(derived, Mapping):
        for key in said:
            yield from _unlike(said[key], derived[key], f"{place}.{key}".lstrip("."))
    elif isinstance(said, list) and isinstance(derived, list) and len(said) == len(derived):
        for k, (one, other) in enumerate(zip(said, derived, strict=True)):
            yield from _unlike(one, other, f"{place}[{k}]")
    elif isinstance(said, float) and isinstance(derived, float):
        if abs(said - derived) > _CLOSE * abs(derived):
            yield f"{place} says {said:g}, and the model's ledger gives {derived:g}"
    elif said != derived:
        yield f"{place} does not agree with the model"


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
    folder: StagingFolder, save: Callable[[], object], publisher: Publisher, exports: bool
) -> None:
    """Write a release into its folder, verify it, and hold on to as much of the disk instead.

    Parameters
    ----------
    save
        Writes the model.
    publisher
        What the statement says beside it.
    exports
        Whether each form of `dprepro export` has to be possible; ONNX only where it is installed.

    Raises
    ------
    DpreproError
        If any of it fails. Nothing is spent then.
    """
    try:
        save()
        folder.state(publisher)
        if found := differences(folder.folder, folder.page):
            raise DpreproError(f"the release would not be what `dprepro verify` wants: {found[0]}")
        if exports:
            _require_exports(load_model(folder.folder / MODEL))
        folder.hold()
    except DpreproError as error:
        raise DpreproError(f"{error}. Nothing was spent and nothing was written") from error


def _require_exports(model: AdditiveModel) -> None:
    forms: dict[str, Callable[[], object]] = {
        "python": lambda: to_python(model),
        "sql": lambda: [to_sql(model, "new_rows", dialect) for dialect in TESTED_DIALECTS],
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
