"""Where a dataset can come from: local files, http, OpenML, scikit-learn, a generator.

Also where its rows stand in these files.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import logit, ndtri

from dprepro.data.card import Card
from dprepro.data.card_parts import Source, Synthetic
from dprepro.data.cell_values import convert, holds
from dprepro.data.cleaning import column_kinds
from dprepro.data.files import cached_file, extract_member, file_candidates, find_file
from dprepro.data.formats import is_parquet, line_of_row, read_table
from dprepro.data.network import SourceError, download, download_openml
from dprepro.runtime.errors import DpreproError


def stand_in(shape: Synthetic, target: str, labels: Sequence[str]) -> pd.DataFrame:
    """Return a table with features x1, x2, ... and a target, all drawn from the shape's seed.

    Numeric features are standard normal numbers with two decimals, half of them skewed; binary
    ones are 0 or 1, the latter in 5 to 50 % of the rows. Each row has a score: the sum of one
    linear or U-shaped effect of every feature, and logistic noise. The rows with the highest scores
    are the positives.

    Parameters
    ----------
    target
        Name of the target's column.
    labels
        The negative and the positive label.

    Notes
    -----
    The table is the same on every machine: only uniform numbers are drawn, whose stream NumPy does
    not change from release to release, and values are rounded.
    """
    rng = np.random.default_rng(shape.seed)
    normal = ndtri(_uniform(rng, shape.rows, shape.numeric))
    skewed = np.arange(shape.numeric) % 2 == 1
    numeric = np.round(np.where(skewed, np.exp(normal), normal), 2)
    rates = 0.05 + 0.45 * rng.random(shape.binary)
    binary = (_uniform(rng, shape.rows, shape.binary) < rates).astype(float)
    effects = np.column_stack([_effects(normal), binary - rates])
    weights = rng.random(effects.shape[1]) - 0.25
    odds = effects @ weights + logit(_uniform(rng, shape.rows, 1)[:, 0])
    is_positive = np.zeros(shape.rows, dtype=int)
    is_positive[np.argsort(-odds, kind="stable")[: shape.positives]] = 1
    names = [f"x{k + 1}" for k in range(shape.numeric + shape.binary)]
    table = pd.DataFrame(np.column_stack([numeric, binary]), columns=names)
    table[target] = np.asarray(labels, dtype=object)[is_positive]
    return table


def _uniform(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw from the open interval (0, 1); NumPy's own includes 0."""
    return np.maximum(rng.random((rows, columns)), 2.0**-53)


def _effects(normal: np.ndarray) -> np.ndarray:
    is_u_shaped = np.arange(normal.shape[1]) % 3 == 2
    return np.where(is_u_shaped, (normal**2 - 1) / np.sqrt(2), normal)


_DOWNLOAD = ".download-"
"""How the names of folders begin into which something is downloaded."""


class RawFile(NamedTuple):
    """A file whose rows stand one below the other in a table.

    `line_of` returns the line in which a row of it begins; None of a file that has no lines.
    """

    origin: str
    rows: int
    line_of: Callable[[int], int | None]


@dataclass(frozen=True)
class RawTable:
    """A table as it comes from its source.

    Attributes
    ----------
    table
        The parsed table, before cleaning: of Arrow, which has no index that could align anything.
    origin
        Where it came from: a path, a URL, or a name.
    sha256
        The digest of the file. For a pool or a join it is the digest of the files' digests; it is
        empty if there is no file.
    is_compared
        Whether the card has the checksum of every file, so that it was compared.
    differs
        Says that a checksum is another than that of the card; empty if none is. Such a table is
        the right one only if its values are.
    downloads
        The paths of the downloaded files that it was read from.
    fresh
        Those of them that were downloaded for it.
    files
        The files whose rows these are, in their order; empty if a row comes from several.
    """

    table: pa.Table
    origin: str
    sha256: str = ""
    is_compared: bool = False
    differs: str = ""
    downloads: tuple[Path, ...] = ()
    fresh: tuple[Path, ...] = ()
    files: tuple[RawFile, ...] = ()

    def __repr__(self) -> str:
        return f"RawTable(origin={self.origin!r})"

    def line_of(self, row: int) -> int | None:
        """Return the line in which a row begins; None if there is not one file of lines."""
        return self.files[0].line_of(row) if len(self.files) == 1 else None

    def refusal(self, problem: object) -> Exception:
        """Return the error to raise of a table that is not what the card says.

        It is a SourceError if files were downloaded: others may be right. Those that were
        downloaded now are removed, so that nobody takes them for the data. A file that somebody
        put there is to be looked at, and the error is a DpreproError.
        """
        said = f"{self.differs}. And {problem}" if self.differs else str(problem)
        for path in self.fresh:
            path.unlink(missing_ok=True)
        return SourceError(said) if self.downloads else DpreproError(f"{self.origin}: {said}")


def read_source(source: Source, card: Card, data_dir: Path | None, online: bool) -> RawTable:
    """Return the raw table of one of the card's sources.

    Where the card has a checksum of its values, the bytes of a file need not be those of `sha256`,
    and a file can be Parquet whatever the card says: the caller compares the values.

    Raises SourceError if this source does not have the data, or needs the network and `online` is
    False. Raises DpreproError if a local file is there but is not what the card says.
    """
    if len(source.files) > 1:
        # The names of a pool or a join are those of its parts.
        parts = [part.model_copy(update={"rename": source.rename}) for part in source.files]
        combine = _pooled if source.pool else _joined
        raw = _combined(combine, [read_source(part, card, data_dir, online) for part in parts])
        return raw if source.pool else replace(raw, files=())
    if source.synthetic is not None:
        return _generated(source.synthetic, card)
    if source.kind == "sklearn":
        return _bundled(source, card)
    if source.kind == "file":
        return _local(source, card, data_dir)
    return _remote(source, card, online)


def _pooled(parts: list[RawTable]) -> pa.Table:
    first = parts[0]
    for part in parts[1:]:
        if part.table.column_names != first.table.column_names:
            # The names are not quoted: if a file has no header, they are its first row.
            raise DpreproError(
                f"{part.origin}: its columns are not those of {first.origin}, in name, number or "
                "order; pooled files must agree. Compare their first lines"
            )
    names = first.table.column_names
    columns = [
        _stacked([part.table.column(k) for part in parts], names[k]) for k in range(len(names))
    ]
    return pa.table(columns, names=names)


def _stacked(columns: list[pa.ChunkedArray], name: str) -> pa.ChunkedArray:
    """Return columns one below the other: as they are, if all have one type.

    Raises DpreproError if one holds text and another something else.
    """
    if len({column.type for column in columns}) == 1:
        return pa.chunked_array([c for column in columns for c in column.chunks], columns[0].type)
    kinds = {holds(column.type) for column in columns} - {"nothing"}
    if kinds <= {"numbers", "booleans"}:
        wanted = pa.float64()
    elif kinds == {"text"}:
        wanted = pa.string()
    else:
        raise DpreproError(
            f"column {name!r} is of another type in each of the pooled files: write it as one type"
        )
    chunks = [convert(chunk, wanted) for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, wanted)


def _joined(parts: list[RawTable]) -> pa.Table:
    first = parts[0]
    for part in parts[1:]:
        if part.table.num_rows != first.table.num_rows:
            raise DpreproError(
                f"{part.origin} has another number of rows than {first.origin}; joined files "
                "must agree"
            )
    # By position: what one row of each file says is one row.
    columns = [column for part in parts for column in part.table.columns]
    names = [name for part in parts for name in part.table.column_names]
    return pa.table(columns, names=names)


def _combined(combine: Callable[[list[RawTable]], pa.Table], parts: list[RawTable]) -> RawTable:
    whole = RawTable(
        pa.table({}),
        " + ".join(part.origin for part in parts),
        _digest(" ".join(part.sha256 for part in parts).encode()),
        all(part.is_compared for part in parts),
        "; ".join(f"{part.origin}: {part.differs}" for part in parts if part.differs),
        tuple(path for part in parts for path in part.downloads),
        tuple(path for part in parts for path in part.fresh),
        tuple(file for part in parts for file in part.files),
    )
    try:
        return replace(whole, table=combine(parts))
    except DpreproError as error:
        if whole.downloads:
            raise whole.refusal(error) from error
        raise


def _generated(shape: Synthetic, card: Card) -> RawTable:
    labels = sorted(card.labels or [], key=lambda label: label == card.positive)
    origin = (
        f"a SYNTHETIC stand-in drawn with seed {shape.seed}, not the real data: "
        "results on it say nothing about the printed ones"
    )
    return RawTable(_as_arrow(stand_in(shape, card.target, labels)), origin)


def _as_arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def _bundled(source: Source, card: Card) -> RawTable:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{source.sklearn}")(as_frame=True)
    target = bunch.target
    if card.task != "regression":
        target = target.map(dict(enumerate(map(str, bunch.target_names))))
    return RawTable(_as_arrow(bunch.data.assign(target=target)), "scikit-learn")


def _local(source: Source, card: Card, data_dir: Path | None) -> RawTable:
    path = find_file(str(source.file), card.folder, data_dir)
    if path is None:
        places = file_candidates(str(source.file), card.folder, data_dir)
        raise SourceError(f"no file at {' or '.join(map(str, places))}")
    try:
        file = _File.of(_unpacked(path.read_bytes(), source), source, card)
        file.require()
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DpreproError as error:
        raise DpreproError(f"{path}: {error}") from error
    return _parsed(file, source, card, str(path))


def _remote(source: Source, card: Card, online: bool) -> RawTable:
    path = cached_file(source.kind, card.name, source.filename)
    origin = str(source.http) if source.http else f"OpenML {source.openml}"
    try:
        file = _cached(path, source, card)
        if file is not None and (file.is_stated or not online):
            return _parsed(file, source, card, origin, (path,))
        if not online:
            raise SourceError("not downloaded yet")
        # What is there may be right. But then nobody asks with `online` set: see `load_by`.
        return _parsed(_fetch(source, card, path, file), source, card, origin, (path,), (path,))
    except OSError as error:
        raise SourceError(f"cannot use the cache: {error}") from error
    except DpreproError as error:
        raise SourceError(str(error)) from error


def _parsed(
    file: _File,
    source: Source,
    card: Card,
    origin: str,
    downloads: tuple[Path, ...] = (),
    fresh: tuple[Path, ...] = (),
) -> RawTable:
    """Return the table of a file. Raises the `refusal` of one that cannot be read."""
    settings = card.format_of(source)
    if card.expect.values_sha256 is not None and is_parquet(file.data):
        settings = settings.model_copy(update={"kind": "parquet"})
    first, stop = source.rows or (0, None)
    raw = RawTable(
        pa.table({}), origin, file.sha256, source.sha256 is not None, file.differs, downloads, fresh
    )
    try:
        table = read_table(file.data, settings, column_kinds(card, source), card.missing)
    except OSError as error:  # of Arrow, about a damaged Parquet file
        raise raw.refusal(f"cannot be read: {error.strerror or error}") from error
    except DpreproError as error:
        raise raw.refusal(error) from error
    table = table.slice(first, None if stop is None else stop - first)

    def line_of(row: int) -> int | None:
        return line_of_row(file.data, settings, first + row)

    return replace(raw, table=table, files=(RawFile(origin, table.num_rows, line_of),))


def _cached(path: Path, source: Source, card: Card) -> _File | None:
    """Return what was downloaded before, unless it cannot be what the card says."""
    if not path.is_file():
        return None
    file = _File.of(path.read_bytes(), source, card)
    return file if file.is_acceptable else None


def _fetch(source: Source, card: Card, path: Path, seen: _File | None) -> _File:
    """Download a file, unless another process does so in the meantime.

    It waits for that one, and removes what killed ones have left. `seen` was there before.
    """
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.parent / ".lock")
    with ExitStack() as stack:
        # A file system without locks raises one or the other; it gets on without.
        with suppress(NotImplementedError, OSError):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                print(f"waiting for another process that downloads {card.name}", file=sys.stderr)
                lock.acquire()
            stack.callback(lock.release)
            for left in path.parent.glob(f"{_DOWNLOAD}*"):
                shutil.rmtree(left, ignore_errors=True)
        file = _cached(path, source, card)
        is_new = file is not None and (seen is None or file.sha256 != seen.sha256)
        return file if file is not None and is_new else _download(source, card, path)


def _download(source: Source, card: Card, path: Path) -> _File:
    """Download into a temporary folder; move only a complete and acceptable file to `path`."""
    place = source.http or f"OpenML, dataset {source.openml}"
    print(f"downloading {card.name} from {place}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=_DOWNLOAD) as folder:
        if source.http is not None:
            found = download(source.http, Path(folder))
        else:
            assert source.openml is not None
            knows_values = card.expect.values_sha256 is not None
            found = download_openml(source.openml, Path(folder), any_encoding=knows_values)
        file = _File.of(_unpacked(found.read_bytes(), source), source, card)
        file.require()
        whole = Path(folder) / "whole"
        whole.write_bytes(file.data)
        whole.replace(path)
    return file


def _unpacked(data: bytes, source: Source) -> bytes:
    return extract_member(data, source.member) if source.member else data


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, repr=False)
class _File:
    """The bytes of a source, or of the member of its archive, compared with the card.

    Attributes
    ----------
    is_stated
        Whether the card has this checksum.
    is_acceptable
        Whether it can be what the card says: also if nothing is known of its bytes.
    differs
        Says that the card has another checksum; else empty.
    """

    data: bytes
    sha256: str
    is_stated: bool
    is_acceptable: bool
    differs: str

    @classmethod
    def of(cls, data: bytes, source: Source, card: Card) -> _File:
        """Return the file with these bytes."""
        found = _digest(data)
        if source.sha256 in (None, found):
            return cls(data, found, source.sha256 == found, True, "")
        # A person who knows all private rows but one could find that one by a digest. The card's
        # digest is not shown either, since it can be that of another state of the same rows.
        seen = (
            f" ({len(data):,} bytes): sha256 expected {source.sha256}, found {found}"
            if card.is_public
            else ": the sha256 is not the one that the card expects"
        )
        differs = f"wrong checksum{seen}; the file is damaged or another version"
        return cls(data, found, False, card.expect.values_sha256 is not None, differs)

    def require(self) -> None:
        """Raise DpreproError unless it is acceptable."""
        if not self.is_acceptable:
            raise DpreproError(self.differs)


class Place(NamedTuple):
    """A file, and the rows of a dataset that come from it.

    Attributes
    ----------
    origin
        Where the file is: a path or a URL.
    rows
        The numbers of these rows in the dataset, from 0.
    lines : int64 (len(rows),), or None
        The line in which each of them begins, from 1. None if the file has no lines, or if they do
        not follow each other without a gap, as where a text has a line break.
    """

    origin: str
    rows: range
    lines: np.ndarray | None

    def __repr__(self) -> str:
        return f"Place({len(self.rows)} rows)"


def places_of(raw: RawTable, records: np.ndarray) -> list[Place]:
    """Return where rows stand; nothing if that is not known, as of files that are joined.

    Parameters
    ----------
    records : int64 (n,)
        Which rows of the raw table they are, ascending.
    """
    places, first = [], 0
    for file in raw.files:
        start, stop = np.searchsorted(records, [first, first + file.rows])
        begin = _first_line(file)
        lines = None if begin is None else begin + records[start:stop] - first
        places.append(Place(file.origin, range(start, stop), lines))
        first += file.rows
    return places


def _first_line(file: RawFile) -> int | None:
    """Return the line of the first row, if every row takes one line, and none is between them."""
    begin, end = (file.line_of(row) if file.rows else None for row in (0, file.rows - 1))
    # Each row begins after the one before, so n rows in n lines have a line each.
    return begin if begin is not None and end == begin + file.rows - 1 else None
