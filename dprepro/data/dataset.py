"""Datasets: loaded from the sources of a card, and compared with what the card says of them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from dprepro.data.arff import parse_arff
from dprepro.data.card import Card, load_card
from dprepro.data.card_parts import Source, one_line
from dprepro.data.cleaning import CardError, clean_with_units, public_domain, repeated_names
from dprepro.data.delimited import Records
from dprepro.data.domain import Domain, NumericFeature, TaskKind, numbers_of
from dprepro.data.files import DATA_VARIABLE, file_candidates, find_file, unzipped, unzipped_stream
from dprepro.data.fingerprint import SAME_EVERYWHERE
from dprepro.data.formats import dialect_of, index_names, other_kind, parser_problem
from dprepro.data.network import SourceError
from dprepro.data.sources import Place, RawTable, places_of, read_source
from dprepro.runtime.arguments import Instance, OneOf, OrNone, flag, path, text
from dprepro.runtime.arguments import name_or_path as as_name_or_path
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import in_short, shell

_ROWS = Instance(np.ndarray, "an array of NumPy, such as y.to_numpy()")
_FRAME, _DOMAIN = Instance(pd.DataFrame, "a DataFrame of pandas"), Instance(Domain, "a Domain")


@dataclass(frozen=True, repr=False)
class Dataset:
    """A loaded and verified table: what stands at one position of X, y and units is one row.

    Its repr shows no row, and not how many there are.

    Attributes
    ----------
    name
        The card's name, e.g. ``"adult"``.
    X
        DataFrame of shape (n, K). Numeric columns are float64 (NaN where missing), or all uint8 if
        the source has bytes. Categorical columns have dtype ``category`` with string categories
        (missing is NaN unless the card makes it a category).
    y
        Shape (n,). int64 codes 0..C-1 for classification (for binary tasks 1 is the card's
        positive label), float64 for regression.
    task
        "binary", "multiclass" or "regression".
    domain
        The card's public domain, or None if the card has none. A config then needs
        ``domain: observed``.
    source
        Where the data came from: a path, a URL, or "scikit-learn".
    sha256
        Digest of the source files, or of the values if the source has no file.
    test
        The published test rows, or None if they were not asked for or the card has none.
    units
        Whose row each one is, object of shape (n,): texts of the card's `unit`. None if the card
        names none.
    verified
        Which checksums of the card were compared, by their keys: ``"sha256"`` of the files,
        ``"values_sha256"``, both, or none (empty). It also says if the file is another one than
        that of the card, with the same values.

    Raises
    ------
    ValueError
        If X, y and units do not have as many rows, or the labels of X are not 0, 1, ..., n - 1: by
        any others its rows could be put beside those of another table. Also on a field of another
        type.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    task: TaskKind
    domain: Domain | None
    source: str
    sha256: str
    test: Dataset | None = None
    units: np.ndarray | None = None
    verified: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text("name", self.name))
        object.__setattr__(self, "X", _FRAME("X", self.X))
        object.__setattr__(self, "y", _ROWS("y", self.y))
        object.__setattr__(self, "task", OneOf(get_args(TaskKind))("task", self.task))
        object.__setattr__(self, "domain", OrNone(_DOMAIN)("domain", self.domain))
        object.__setattr__(self, "source", text("source", self.source))
        object.__setattr__(self, "sha256", text("sha256", self.sha256))
        object.__setattr__(self, "test", OrNone(Instance(Dataset, "a Dataset"))("test", self.test))
        object.__setattr__(self, "units", OrNone(_ROWS)("units", self.units))
        object.__setattr__(self, "verified", text("verified", self.verified))
        units = self.y if self.units is None else self.units
        whole = pd.RangeIndex(len(self.y))
        is_plain = isinstance(self.X.index, pd.RangeIndex) and self.X.index.equals(whole)
        if not is_plain or len(units) != len(self.y):
            raise ValueError(
                f"dataset {self.name!r}: X, y and units are rows by position: give as many of "
                "each, and X.reset_index(drop=True)"
            )

    def __repr__(self) -> str:
        """Return name, task, names of features and source: notebooks and logs print it."""
        columns = in_short([str(name) for name in self.X.columns])
        return (
            f"Dataset(name={self.name!r}, task={self.task!r}, features={self.X.shape[1]}: "
            f"{columns}, source={self.source!r})"
        )


KEY_BYTES = 32


def bounding_key(*derived_from: object) -> bytes:
    """Return the key by which rows are chosen: derived from these values, or secret without any.

    A derived key makes a fit repeatable. Whoever knows it knows which rows of a unit were kept,
    given all of them; the guarantee holds all the same.
    """
    if not derived_from:
        return secrets.token_bytes(KEY_BYTES)
    return hashlib.sha256(f"rows per unit {derived_from!r}".encode()).digest()


def kept_rows(
    X: pd.DataFrame, y: np.ndarray, units: np.ndarray, most: int, key: bytes
) -> np.ndarray:
    """Return which rows train: all of a unit, or the `most` with the smallest keyed digests.

    The digest of a row is an HMAC-SHA256 of its unit and its values, shortened to 64 bits; of equal
    ones the first row is kept. So the choice among the rows of a unit follows from these rows and
    the key, and from no other row: without one unit, the same rows of all others are kept.

    Parameters
    ----------
    X : (n, K)
        Features.
    y : (n,)
        Codes or float64 targets.
    units : object (n,)
        Whose row each one is.

    Returns
    -------
    int64 (m,)
        Row numbers, ascending.
    """
    owners = pd.factorize(units)[0]
    is_crowded = np.bincount(owners, minlength=1)[owners] > most
    crowded = np.flatnonzero(is_crowded)
    digests = keyed_digests(X.iloc[crowded], y[crowded], units[crowded], key)
    is_kept = ~is_crowded
    is_kept[crowded] = have_smallest(owners[crowded], digests, most)
    return np.flatnonzero(is_kept)


def have_smallest(owners: np.ndarray, digests: np.ndarray, most: int) -> np.ndarray:
    """Return whether each row, bool (n,), has one of the `most` smallest digests of its owner.

    Owners are numbers, int64 (n,); digests are uint64 (n,). Of equal ones the first row counts.
    """
    order = np.lexsort((digests, owners))  # stable: of equal ones the first stays first
    sorted_owners = owners[order]
    place = np.arange(len(order)) - np.searchsorted(sorted_owners, sorted_owners)
    found = np.zeros(len(order), dtype=bool)
    found[order[place < most]] = True
    return found


def keyed_digests(X: pd.DataFrame, y: np.ndarray, units: np.ndarray, key: bytes) -> np.ndarray:
    """Return the digest of each row, uint64 (n,); see `kept_rows`. It follows from its row."""
    # Of the values and texts themselves, so that no code that depends on other rows takes part.
    values = pd.util.hash_pandas_object(X, index=False).to_numpy("<u8")
    targets = np.ascontiguousarray(y, dtype="<f8")
    texts = (
        b"\0".join([row.tobytes(), target.tobytes(), unit.encode()])
        for row, target, unit in zip(values, targets, units, strict=True)
    )
    digests = [int.from_bytes(hmac.digest(key, text, "sha256")[:8], "big") for text in texts]
    return np.array(digests, dtype=np.uint64)


# --- what the card says of values -----------------------------------------------------------------


def values_digest(X: pd.DataFrame, y: np.ndarray, units: np.ndarray | None = None) -> str:
    """Return a sha256 of the values, the same for every source, platform and pandas version.

    It covers the number of rows and, column by column in order, the name and the values:
    little-endian float64 for numbers; for categories the sorted list of those that occur and
    little-endian int32 codes into it (-1 for missing). y comes last, but for the texts of the
    units, where there are any.
    """
    digest = hashlib.sha256(f"rows {len(X)}\n".encode())
    for name in X.columns:
        column = X[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            digest.update(f"categories {name}\n".encode())
            _add_categories(digest, pd.Categorical(column))
        else:
            digest.update(f"numbers {name}\n".encode())
            digest.update(_floats(column.to_numpy()))
    digest.update(b"target\n")
    digest.update(_floats(y) if y.dtype.kind == "f" else np.ascontiguousarray(y, dtype="<i8").data)
    if units is not None:
        digest.update("\0".join(["units", *units]).encode())
    return digest.hexdigest()


def check_expectations(
    X: pd.DataFrame, y: np.ndarray, card: Card, units: np.ndarray | None = None
) -> None:
    """Compare rows, columns, positives, their share and the digest of the values with the card.

    Raises DpreproError if any differs. The message has the expected value and, if the rows are
    public, the found one.
    """
    expect = card.expect
    pairs = [
        ("rows", expect.rows, len(X)),
        ("columns", expect.columns, X.shape[1]),
        ("positives", expect.positives, int((y == 1).sum()) if card.task == "binary" else None),
        ("values_sha256", expect.values_sha256, values_digest(X, y, units)),
    ]
    wrong = [
        (f"{what}: expected {_show(expected)}", _show(found))
        for what, expected, found in pairs
        if expected is not None and expected != found
    ]
    if expect.positive_share is not None:
        low, high = expect.positive_share
        share = float((y == 1).mean())
        if not low <= share <= high:
            wrong.append((f"positive_share: expected {low:.4g} to {high:.4g}", f"{share:.4g}"))
    if wrong:
        # The numbers of rows and of positives of a private table are private, too. A person who
        # knows all rows but one could find that one by a digest.
        shown = card.is_public
        said = [f"{expected}, found {found if shown else 'another'}" for expected, found in wrong]
        raise DpreproError(
            f"these are not the values that card {card.name!r} describes ({'; '.join(said)})"
        )


def _add_categories(digest: hashlib._Hash, column: pd.Categorical) -> None:
    codes = np.asarray(column.codes)
    names = [str(category) for category in column.categories]
    occurring = sorted((names[code], code) for code in np.unique(codes) if code >= 0)
    digest.update(("\0".join(name for name, _ in occurring) + "\n").encode())
    rank = np.full(len(names) + 1, -1, dtype="<i4")  # the last entry serves code -1
    rank[[code for _, code in occurring]] = np.arange(len(occurring))
    digest.update(np.ascontiguousarray(rank[codes]).data)


def _floats(values: np.ndarray) -> Any:
    # Adding 0.0 turns -0.0 into 0.0; one NaN stands for all of them.
    values = np.ascontiguousarray(values, dtype="<f8") + 0.0
    values[np.isnan(values)] = np.nan
    return values.data


def _show(value: int | str | None) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def undeclared_missing(dataset: Dataset) -> list[str]:
    """Return the features with missing values that the card does not allow; none without a domain.

    This reads the rows: say it to their holder only.
    """
    features = dataset.domain.features if dataset.domain else ()
    return [f.name for f in features if not f.missing and dataset.X[f.name].isna().any()]


def names_in_words(names: list[str]) -> str:
    """Say which features lack values that the card promises, and what to do."""
    return (
        f"values are missing in {', '.join(names)}, and the card does not allow it: add "
        f"`missing: true` to the feature, as in {names[0]}: {{..., missing: true}}, or name a "
        "value under `fill`"
    )


def outside_bounds(dataset: Dataset, card: Card) -> list[str]:
    """Return a message for each feature, and for the target, with values outside public bounds.

    This reads the rows: say it to their holder only. No value is quoted and no row is counted.
    """
    found = []
    for feature in dataset.domain.features if dataset.domain else ():
        if isinstance(feature, NumericFeature):
            values, bounds = numbers_of(dataset.X[feature.name]), (feature.lower, feature.upper)
            if _any_outside(values, bounds):
                found.append(_outside(f"feature {feature.name!r}", bounds))
    if card.task == "regression" and card.target_bounds is not None:
        lower, upper = map(float, card.public_target or ())
        if _any_outside(dataset.y, (lower, upper)):
            found.append(_outside(f"target {card.target!r}", card.target_bounds))
    return found


def _any_outside(values: np.ndarray, bounds: tuple[float, float]) -> bool:
    lower, upper = bounds
    with np.errstate(invalid="ignore"):
        return bool(np.any((values < lower) | (values > upper)))


def _outside(what: str, bounds: tuple[float, float]) -> str:
    lower, upper = bounds
    return (
        f"{what} has a value outside its public bounds [{lower:g}, {upper:g}]: correct the "
        "rows, or the card if its bounds were wrong all along, or let the fit move such "
        "values to the bounds, as `dprepro run` and `fit` do, and `dprepro release` with "
        "--clip. Choose bounds by what can be known without these rows"
    )


def refuse_undeclared_missing(dataset: Dataset) -> None:
    """Refuse rows with missing values that the card does not allow.

    Raises DpreproError; the message names the features, and quotes and counts no rows.
    """
    names = undeclared_missing(dataset)
    if names:
        raise DpreproError(f"{dataset.name}: {names_in_words(names)}")


# --- loading --------------------------------------------------------------------------------------


class UnavailableError(DpreproError):
    """None of the card's sources has the data at the moment."""


def load(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    online: bool = True,
    with_test: bool = False,
) -> Dataset:
    """Load and verify the dataset of a built-in card, or of the card at a path.

    Parameters
    ----------
    name_or_path
        For example ``"adult"`` or ``"my/card.yaml"``. A path is preferred to a name.
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
    ValueError
        If a parameter is of another type; the message names it.

    Examples
    --------
    >>> from dprepro import load
    >>> dataset = load("breast-cancer")  # comes with scikit-learn
    >>> dataset.X.shape, dataset.domain.is_public
    ((569, 30), True)
    """
    folder, online = OrNone(path)("data_dir", data_dir), flag("online", online)
    card = load_card(as_name_or_path("name_or_path", name_or_path))
    dataset = load_by(card, folder, online)
    if flag("with_test", with_test) and card.test_card is not None:
        return replace(dataset, test=load_by(card.test_card, folder, online))
    return dataset


def load_domain(name_or_path: str | Path) -> Domain:
    """Return the public domain that a card states, without its rows.

    Parameters
    ----------
    name_or_path
        As of `load`.

    Raises
    ------
    DpreproError
        If there is no such card, it is not valid, or it states no domain (`features`).
    ValueError
        If `name_or_path` is of another type.

    Examples
    --------
    >>> load_domain("breast-cancer").is_public
    True
    """
    card = load_card(as_name_or_path("name_or_path", name_or_path))
    if (domain := public_domain(card)) is None:
        raise DpreproError(
            f"the card of {card.name} states no public domain: add `features` to the card, or "
            "state one of a frame by Domain.from_frame"
        )
    return domain


def load_by(card: Card, data_dir: Path | None = None, online: bool = True) -> Dataset:
    """Load and verify the dataset of a card that has been read; as `load`, without test rows."""
    return _loaded(card, data_dir, online)[0]


def load_with_places(card: Card, data_dir: Path | None = None) -> tuple[Dataset, list[Place]]:
    """Return what `load_by` does, and where in the files its rows stand; see `Place`."""
    dataset, raw, records = _loaded(card, data_dir, online=True)
    return dataset, places_of(raw, records)


def _loaded(
    card: Card, data_dir: Path | None, online: bool
) -> tuple[Dataset, RawTable, np.ndarray]:
    """Return a dataset, the raw table, and which of its rows are those of the dataset."""
    failures: dict[int, str] = {}
    for number, source, may_download in _tries(card, online):
        try:
            raw = read_source(source, card, data_dir, may_download)
            return _finish(raw, source, card)
        except SourceError as error:
            failures[number] = f"  {source.label}: {error}"
    reasons = "\n".join(failures[number] for number in sorted(failures))
    raise UnavailableError(
        f"dataset {card.name!r}: none of its sources has it:\n{reasons}\n{_advice(card, data_dir)}"
    )


def _tries(card: Card, online: bool) -> Iterator[tuple[int, Source, bool]]:
    """Yield the sources in their order, with their numbers, and whether one may download.

    What is on this machine comes first: a server that is down is not asked again for a dataset that
    came from the next one.
    """
    sources = list(enumerate(card.sources))
    if online:
        yield from ((k, s, False) for k, s in sources if s.kind not in SAME_EVERYWHERE)
    yield from ((k, s, online) for k, s in sources)


@dataclass(frozen=True)
class Check:
    """The state of a dataset on this machine: "ok", "absent" or "wrong".

    `is_private` says whether the message has the number of private rows.
    """

    name: str
    status: Literal["ok", "absent", "wrong"]
    message: str
    is_private: bool = False


def check_dataset(
    name: str, data_dir: Path | None = None, online: bool = False, with_test: bool = True
) -> Check:
    """Load a dataset, and return its state. It is downloaded only if `online` is set."""
    try:
        dataset = load(name, data_dir, online, with_test)
    except UnavailableError as error:
        also = "" if online else f"\nOr: dprepro data fetch {shell(name)}"
        return Check(name, "absent", f"{error}{also}")
    except DpreproError as error:
        return Check(name, "wrong", str(error))
    rows, columns = dataset.X.shape
    test = dataset.test
    of_test = f" and {len(test.X):,} of a test set" if test else ""
    parts = [dataset] if test is None else [dataset, test]
    compared = " and ".join(dict.fromkeys(part.verified for part in parts if part.verified))
    said = f"verified by {compared}" if compared else "compared with no checksum"
    origins = " and ".join(part.source for part in parts)
    message = f"{rows:,} rows{of_test}, {columns} columns, {said}, from {origins}"
    return Check(name, "ok", message, load_card(name).is_private(data_dir, with_test))


def _finish(raw: RawTable, source: Source, card: Card) -> tuple[Dataset, RawTable, np.ndarray]:
    try:
        X, y, domain, units, records = clean_with_units(raw.table, card, source)
        check_expectations(X, y, card, units)
    except DpreproError as error:
        said = error.with_lines(raw.line_of) if isinstance(error, CardError) else str(error)
        raise raw.refusal(said) from error
    digest = raw.sha256 or values_digest(X, y, units)
    dataset = Dataset(
        card.name, X, y, card.task, domain, raw.origin, digest, units=units,
        verified=_verified(raw, card),
    )  # fmt: skip
    return dataset, raw, records


def _verified(raw: RawTable, card: Card) -> str:
    """Return which checksums of the card were compared, by its keys; see `Dataset.verified`."""
    knows_values = card.expect.values_sha256 is not None
    if raw.differs:
        return "values_sha256 alone (sha256 is another: the file is written in another way)"
    compared = [("sha256", raw.is_compared), ("values_sha256", knows_values)]
    return " and ".join(key for key, was_compared in compared if was_compared)


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


# --- the header of a file -------------------------------------------------------------------------


def header_names(card: Card, data_dir: Path | None = None) -> list[str] | None:
    """Return the names of the columns of a card's first source, as the card calls them.

    Only the header line of a CSV is read, the header of an ARFF file, or the schema of a parquet
    file.

    Raises DpreproError if the file cannot be read.

    Returns
    -------
    list of str or None
        None if the file is not on this machine, or is in an archive or of another format.
    """
    source = card.sources[0]
    if source.kind not in ("file", "pool", "join"):
        return None
    parts = source.files if source.join else source.files[:1]  # pooled files have the same columns
    names: list[str] = []
    for part in parts:
        found = _names_of(part, card, data_dir)
        if found is None:
            return None
        names += found
    return [source.rename.get(name, name) for name in names]


def check_names(card: Card, names: list[str]) -> None:
    """Refuse a card whose columns are not those of its file.

    Raises DpreproError with a line for each name on the card that the file lacks, and for each
    column of the file that a card with `features` does not mention.

    Parameters
    ----------
    names
        What `header_names` returns.
    """
    problems = list(_problems(card, names))
    if problems:
        raise DpreproError(
            "\n  ".join([f"the card of {card.name} and the header of its file differ:", *problems])
        )


def _problems(card: Card, names: list[str]) -> Iterator[str]:
    roles = {
        "target": [card.target], "unit": [card.unit] if card.unit else [], "drop": card.drop,
        "features": list(card.features or {}), "fill": list(card.fill),
    }  # fmt: skip
    unread = set(card.drop) if card.distinct is None else set()
    if repeated := [n for n in names if names.count(n) > 1 and n not in unread]:
        yield repeated_names(names, repeated)
    said = {name for found in roles.values() for name in found}
    free = [name for name in dict.fromkeys(names) if name not in said]
    for role, found in roles.items():
        for name in found:
            # A column may be dropped from some sources only.
            if name not in names and (role != "drop" or card.features is None):
                yield f"{role}: the file has no column {name!r}{nearest(name, free or names)}"
    for name in free if card.features is not None else ():
        yield (
            f"column {name!r} is not on the card: add it under `features`, or leave it out with "
            "`drop: [...]`"
        )


def _names_of(part: Source, card: Card, data_dir: Path | None) -> list[str] | None:
    if part.file is None or part.member is not None:
        return None
    path = find_file(part.file, card.folder, data_dir)
    settings = card.format_of(part)
    if path is None or settings.kind not in ("csv", "parquet", "arff"):
        return None
    try:
        if settings.kind == "parquet":
            schema = pa.parquet.read_schema(path)
            given = {*(card.features or {}), card.target, card.unit, *card.drop}
            hidden = index_names(schema)
            return [one_line(n) for n in schema.names if n not in hidden or one_line(n) in given]
        with path.open("rb") as opened:
            start = opened.read(64)
            opened.seek(0)
            if said := other_kind(start, settings.kind):
                raise DpreproError(f"not valid {settings.kind}: {said}")
            if settings.kind == "csv":
                file = unzipped_stream(opened)
                return Records(file, dialect_of(settings), block_bytes=2**16).names
            return parse_arff(unzipped(opened.read()), settings.encoding).names
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DpreproError as error:
        raise DpreproError(f"{path}: {error}") from None
    except pa.ArrowException as error:
        raise DpreproError(f"{path}: {parser_problem(error)}") from None
