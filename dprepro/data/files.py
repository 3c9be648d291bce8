"""Files of datasets: where they lie on this machine, and what packed ones hold, up to limits.

What an archive says of sizes is not believed: what comes out is counted.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, BinaryIO, cast

from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.files import MEBIBYTE, cache_dir, is_file

GZIP = b"\x1f\x8b"
"""How gzipped files begin."""
# Of damaged archives, and of those that Python cannot read: zipfile raises NotImplementedError for
# an unknown way of packing, and RuntimeError for an encrypted member.
ARCHIVE_FAULTS = (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError)

MOST_TIMES = 200
"""How many times the packed size what is packed can have; tables have 3 to 30 times."""
ALWAYS = 16 * MEBIBYTE
"""Bytes that may come out of any file, however small it is."""
MOST_BYTES = 2**32
"""Bytes that may come out of any file that is read whole."""
MOST_MEMBERS = 10_000


class PackedError(DpreproError):
    """What is packed is beyond the limits."""


def unzipped(data: bytes) -> bytes:
    """Return what a gzipped file holds; any other file as it is.

    Raises DpreproError if the file is not whole; `PackedError` if what it holds is beyond the
    limits.
    """
    if not data.startswith(GZIP):
        return data
    try:
        return _gunzipped(data)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DpreproError(f"not a whole gzip file: {error}") from error


def unzipped_stream(raw: BinaryIO) -> BinaryIO:
    """Return a stream of what an open file holds, gzipped or not; it stands at its beginning.

    It is read block by block, so that only `MOST_TIMES` limits it.
    """
    zipped = raw.read(len(GZIP)) == GZIP
    size = raw.seek(0, os.SEEK_END)
    raw.seek(0)
    return cast(BinaryIO, _Stream(raw, size)) if zipped else raw


class _Stream(gzip.GzipFile):
    """Raises `PackedError` where more than the limit has come out."""

    def __init__(self, raw: BinaryIO, size: int) -> None:
        super().__init__(fileobj=raw)
        self._most = max(ALWAYS, MOST_TIMES * size)

    def read(self, size: int | None = -1) -> bytes:
        part = super().read(size)
        if self.tell() > self._most:
            raise _beyond(self._most)
        return part


def extract_member(data: bytes, member: str) -> bytes:
    """Return the bytes of one member of a zip or gzipped tar file.

    Raises DpreproError if `data` is not a whole archive, has no such member or one that is no file,
    or is beyond the limits.
    """
    read = _tar_member if data.startswith(GZIP) else zip_member
    try:
        return read(data, member)
    except (tarfile.TarError, EOFError, *ARCHIVE_FAULTS) as error:
        kind = "gzipped tar" if data.startswith(GZIP) else "zip"
        raise DpreproError(f"not a whole {kind} file: {error}") from error


def zip_member(data: bytes, member: str) -> bytes:
    """Return the bytes of one member of a zip file; `ARCHIVE_FAULTS` of what is damaged."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if len(names) > MOST_MEMBERS:
            raise _many()
        _require_member(member, names)
        with archive.open(member) as file:
            return _within_limits(file, len(data))


def _tar_member(data: bytes, member: str) -> bytes:
    found: dict[str, tarfile.TarInfo] = {}
    # Unpacked before: tarfile would go through all of a stream that never ends.
    with tarfile.open(fileobj=io.BytesIO(_gunzipped(data)), mode="r:") as archive:
        for place, entry in enumerate(archive):
            if place == MOST_MEMBERS:
                raise _many()
            found[entry.name] = entry  # the last of a name, as tar extracts it
        _require_member(member, list(found))
        # A link could name another file, or itself.
        content = archive.extractfile(found[member]) if found[member].isreg() else None
        if content is None:
            raise DpreproError(
                f"member {member!r} of the archive is no file; name the file itself, not a folder "
                "or a link"
            )
        return _within_limits(content, len(data))


def _gunzipped(data: bytes) -> bytes:
    return _within_limits(gzip.GzipFile(fileobj=io.BytesIO(data)), len(data))


def _within_limits(file: IO[bytes] | io.BufferedIOBase, packed: int) -> bytes:
    most = min(max(ALWAYS, MOST_TIMES * packed), MOST_BYTES)
    read = io.BytesIO()
    while part := file.read(MEBIBYTE):
        if read.tell() + len(part) > most:
            raise _beyond(most)
        read.write(part)
    return read.getvalue()


def _beyond(most: int) -> PackedError:
    return PackedError(
        f"more than {most / MEBIBYTE:,.0f} MiB come out of it, which is more than a packed file "
        f"may hold ({MOST_TIMES} times its own size, and at most {MOST_BYTES // 2**30} GiB where "
        "it is read whole): if you trust it, unpack it yourself and name what comes out"
    )


def _many() -> PackedError:
    return PackedError(
        f"the archive has more than {MOST_MEMBERS:,} members: unpack it, and name the file that is "
        "needed"
    )


def _require_member(member: str, names: list[str]) -> None:
    if member not in names:
        raise DpreproError(
            f"the archive has no member {member!r}{nearest(member, names) or '.'} "
            f"It has: {', '.join(names[:10])}"
        )


DATA_VARIABLE = "DPREPRO_DATA"


def data_folder(data_dir: Path | None = None) -> Path:
    """Return the folder of files that were put there by hand.

    `data_dir` if given, else ``$DPREPRO_DATA``, else the folder ``files`` in the cache (which
    may not exist).

    Raises DpreproError if `data_dir` or the variable names something that is not a folder.
    """
    variable = os.environ.get(DATA_VARIABLE)
    if data_dir is None and not variable:
        return cache_dir() / "files"
    folder = Path(data_dir if data_dir is not None else str(variable)).expanduser()
    if not folder.is_dir():
        origin = "--data-dir" if data_dir is not None else f"${DATA_VARIABLE}"
        raise DpreproError(
            f"{origin} is {str(folder)!r}, which is not a folder; "
            "give an existing one, laid out like adult/adult.data, or leave it out"
        )
    return folder


def cached_file(kind: str, card: str, name: str) -> Path:
    """Return the path of a card's download `name` from a `kind` of source. It may not exist."""
    return cache_dir() / kind / card / name


def file_candidates(name: str, folder: Path | None, data_dir: Path | None) -> list[Path]:
    """Return the paths where the file `name` is searched, in this order.

    `folder` is the card's (None for built-in cards, whose paths start at the data folder).
    """
    path = Path(name).expanduser()
    if path.is_absolute():
        return [path]
    beside = [folder / path] if folder is not None else []
    return [*beside, data_folder(data_dir) / path]


def find_file(name: str, folder: Path | None, data_dir: Path | None) -> Path | None:
    """Return the first of `file_candidates` that exists, or None."""
    found = (path for path in file_candidates(name, folder, data_dir) if is_file(path))
    return next(found, None)
