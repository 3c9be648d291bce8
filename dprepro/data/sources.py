"""The places a dataset can come from: local files, http, OpenML, scikit-learn, a generator."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from dprepro.data.card import Card
from dprepro.data.card_parts import Source, Synthetic
from dprepro.data.cleaning import column_kinds
from dprepro.data.columns import convert, holds
from dprepro.data.formats import line_of_row, read_table
from dprepro.data.network import SourceError, download
from dprepro.data.packed import extract_member
from dprepro.data.places import cached_file, file_candidates, find_file
from dprepro.data.synthetic import stand_in
from dprepro.errors import DpreproError

_DOWNLOAD = ".download-"
"""How the names of folders begin into which something is downloaded."""


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
    cached
        The downloaded files that it was read from.
    line_of
        Returns the line of the file in which a row begins; None where there are no lines.
    """

    table: pa.Table
    origin: str
    sha256: str = ""
    cached: tuple[Path, ...] = ()
    line_of: Callable[[int], int | None] = lambda row: None

    def __repr__(self) -> str:
        return f"RawTable(origin={self.origin!r})"


def read_source(source: Source, card: Card, data_dir: Path | None, online: bool) -> RawTable:
    """Return the raw table of one of the card's sources.

    Raises
    ------
    SourceError
        If this source does not have the data, or needs the network and `online` is False.
    DpreproError
        If a local file is there but is not what the card says.
    """
    if len(source.files) > 1:
        # The names of a pool or a join are those of its parts.
        parts = [part.model_copy(update={"rename": source.rename}) for part in source.files]
        combine = _pooled if source.pool else _joined
        return combine([read_source(part, card, data_dir, online) for part in parts])
    if source.synthetic is not None:
        return _generated(source.synthetic, card)
    if source.kind == "sklearn":
        return _bundled(source, card)
    if source.kind == "file":
        return _local(source, card, data_dir)
    return _remote(source, card, online)


def _pooled(parts: list[RawTable]) -> RawTable:
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
    return _combined(pa.table(columns, names=names), parts)


def _stacked(columns: list[pa.ChunkedArray], name: str) -> pa.ChunkedArray:
    """Return columns one below the other: as they are, if all have one type.

    Raises
    ------
    DpreproError
        If one holds text and another something else.
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


def _joined(parts: list[RawTable]) -> RawTable:
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
    return _combined(pa.table(columns, names=names), parts)


def _combined(table: pa.Table, parts: list[RawTable]) -> RawTable:
    return RawTable(
        table,
        " + ".join(part.origin for part in parts),
        _digest(" ".join(part.sha256 for part in parts).encode()),
        tuple(path for part in parts for path in part.cached),
    )


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
        data = _unpacked(path.read_bytes(), source)
        digest = _check_sha256(data, source, card)
        table = _parse(data, source, card)
        return RawTable(table, str(path), digest, line_of=_lines(data, source, card))
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DpreproError as error:
        raise DpreproError(f"{path}: {error}") from error


def _remote(source: Source, card: Card, online: bool) -> RawTable:
    path = cached_file(source.kind, card.name, source.filename)
    try:
        data = _cached(path, source)
        if data is None:
            if not online:
                raise SourceError("not downloaded yet")
            data = _fetch(source, card, path)
        origin = str(source.http) if source.http else f"OpenML {source.openml}"
        table = _parse(data, source, card)
        return RawTable(table, origin, _digest(data), (path,), _lines(data, source, card))
    except OSError as error:
        raise SourceError(f"cannot use the cache: {error}") from error
    except DpreproError as error:
        path.unlink(missing_ok=True)
        raise SourceError(str(error)) from error


def _cached(path: Path, source: Source) -> bytes | None:
    if not path.is_file():
        return None
    data = path.read_bytes()
    return data if source.sha256 in (None, _digest(data)) else None


def _fetch(source: Source, card: Card, path: Path) -> bytes:
    """Download a file, unless another process does so in the meantime.

    It waits for that one, and removes what killed ones have left.
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
        data = _cached(path, source)
        return _download(source, card, path) if data is None else data


def _download(source: Source, card: Card, path: Path) -> bytes:
    """Download into a temporary folder; move only a complete and correct file to `path`."""
    place = source.http or f"OpenML, dataset {source.openml}"
    print(f"downloading {card.name} from {place}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=_DOWNLOAD) as folder:
        if source.http is not None:
            data = _unpacked(download(source.http, Path(folder)).read_bytes(), source)
        else:
            from dprepro.data.openml_source import download_arff

            assert source.openml is not None
            data = download_arff(source.openml, Path(folder))
        _check_sha256(data, source, card)
        whole = Path(folder) / "whole"
        whole.write_bytes(data)
        whole.replace(path)
    return data


def _unpacked(data: bytes, source: Source) -> bytes:
    return extract_member(data, source.member) if source.member else data


def _parse(data: bytes, source: Source, card: Card) -> pa.Table:
    kinds = column_kinds(card, source)
    table = read_table(data, card.format_of(source), kinds, card.missing)
    if source.rows is None:
        return table
    start, stop = source.rows
    return table.slice(start, stop - start)


def _lines(data: bytes, source: Source, card: Card) -> Callable[[int], int | None]:
    first = 0 if source.rows is None else source.rows[0]
    return lambda row: line_of_row(data, card.format_of(source), first + row)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_sha256(data: bytes, source: Source, card: Card) -> str:
    found = _digest(data)
    if source.sha256 not in (None, found):
        # A person who knows all private rows but one could find that one by a digest. The card's
        # digest is not shown either, since it can be that of another state of the same rows.
        seen = (
            f" ({len(data):,} bytes): sha256 expected {source.sha256}, found {found}"
            if card.is_public
            else ": the sha256 is not the one that the card expects"
        )
        raise DpreproError(f"wrong checksum{seen}; the file is damaged or another version")
    return found
