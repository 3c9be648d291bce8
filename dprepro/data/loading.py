"""Load a dataset: the card's sources in order, cleaned and verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dprepro.data.card import Card, load_card
from dprepro.data.card_parts import Source
from dprepro.data.cleaning import CardError, clean_with_units
from dprepro.data.dataset import Dataset
from dprepro.data.paths import DATA_VARIABLE, file_candidates
from dprepro.data.sources import RawTable, SourceError, read_source
from dprepro.data.verify import check_expectations, values_digest
from dprepro.runtime.errors import DpreproError


class UnavailableError(DpreproError):
    """None of the card's sources has the data at the moment."""


def load(
    name_or_path: str | Path,
    data_dir: Path | None = None,
    online: bool = True,
    with_test: bool = False,
) -> Dataset:
    """Load and verify the dataset of a built-in card or, which is preferred, of the card at a path.

    Parameters
    ----------
    name_or_path
        For example ``"adult"`` or ``"my/card.yaml"``.
    data_dir
        Folder of local files. None means ``$DPREPRO_DATA``, or else ``files`` in the cache.
    online
        Whether missing files may be downloaded.
    with_test
        Whether the published test rows are loaded, too, if the card has them.

    Raises
    ------
    DpreproError
        If the card is not valid, or a local file is not what the card says.
    UnavailableError
        If no source has the data. The message has the reason of each source, and says where to put
        the file by hand.

    Examples
    --------
    >>> from dprepro.data import load
    >>> dataset = load("breast-cancer")  # comes with scikit-learn
    >>> dataset.X.shape, dataset.domain.is_public
    ((569, 30), True)
    """
    card = load_card(name_or_path)
    dataset = load_by(card, data_dir, online)
    if with_test and card.test_card is not None:
        return replace(dataset, test=load_by(card.test_card, data_dir, online))
    return dataset


def load_by(card: Card, data_dir: Path | None = None, online: bool = True) -> Dataset:
    """Load and verify the dataset of a card that has been read; as `load`, without test rows."""
    failures: list[str] = []
    for source in card.sources:
        try:
            return _finish(read_source(source, card, data_dir, online), source, card)
        except SourceError as error:
            failures.append(f"  {source.label}: {error}")
    reasons = "\n".join(failures)
    raise UnavailableError(
        f"dataset {card.name!r}: none of its sources has it:\n{reasons}\n{_advice(card, data_dir)}"
    )


@dataclass(frozen=True)
class Check:
    """The state of a dataset on this machine: "ok", "absent" or "wrong".

    `is_private` says whether the message has the number of private rows.
    """

    name: str
    status: Literal["ok", "absent", "wrong"]
    message: str
    is_private: bool = False


def verify_all(names: Sequence[str], data_dir: Path | None = None) -> list[Check]:
    """Load the datasets, without downloads, and return the state of each."""
    return [_verify(name, data_dir) for name in names]


def _verify(name: str, data_dir: Path | None) -> Check:
    try:
        dataset = load(name, data_dir, online=False, with_test=True)
    except UnavailableError as error:
        return Check(name, "absent", f"{error}\nOr: dprepro data fetch {name}")
    except DpreproError as error:
        return Check(name, "wrong", str(error))
    rows, columns = dataset.X.shape
    test = f" and {len(dataset.test.X):,} of a test set" if dataset.test else ""
    message = f"{rows:,} rows{test}, {columns} columns, from {dataset.source}"
    return Check(name, "ok", message, load_card(name).is_private(data_dir, with_test=True))


def _finish(raw: RawTable, source: Source, card: Card) -> Dataset:
    try:
        X, y, domain, units = clean_with_units(raw.table, card, source)
        check_expectations(X, y, card, units)
    except DpreproError as error:
        said = error.with_lines(raw.line_of) if isinstance(error, CardError) else str(error)
        if not raw.cached:
            raise DpreproError(f"{raw.origin}: {said}") from error
        for path in raw.cached:
            path.unlink(missing_ok=True)  # or every later try would end here again
        raise SourceError(said) from error
    digest = raw.sha256 or values_digest(X, y, units)
    return Dataset(card.name, X, y, card.task, domain, raw.origin, digest, units=units)


def missing_files(card: Card, data_dir: Path | None = None) -> list[Path]:
    """Return where a card's only sources, local files, are looked for and none is; else nothing."""
    files = [part.file for _, part in card.parts]
    places = [
        place
        for file in files
        if file is not None
        for place in file_candidates(file, card.folder, data_dir)
    ]
    is_here = None in files or any(place.is_file() for place in places)
    return [] if is_here else places


def _advice(card: Card, data_dir: Path | None) -> str:
    page = f" ({card.url})" if card.url else ""
    # Only what comes over a network can be there later.
    is_local = all(part.file is not None for _, part in card.parts)
    do = "Put" if is_local else "Try again later, or put"
    for source in card.sources:
        places = [
            f"{file_candidates(part.file, card.folder, data_dir)[0]}"
            + (f" (sha256 {part.sha256})" if part.sha256 and card.is_public else "")
            for part in source.files
            if part.file is not None
        ]
        if places:
            return (
                f"{do} the file there by hand{page}: {' and '.join(places)}; or "
                f"set {DATA_VARIABLE} to a folder laid out like that"
            )
    return f"Try again later, or add a `file` source to the card{page}"
