"""The rows of a fit as whole numbers on disk, so that they need not fit into memory.

A file holds a column: the cells or bins of a feature, the targets, or the scores. It is mapped into
memory, and read and written in chunks of rows. A process that is killed leaves the files, and
another can go on with them.

Behind a column of cells, bins or targets stand the checksums (CRC-32) of its chunks. They are
looked at when a fit goes on. Scores change with every pass and have none: of their file the length
alone is checked. After a restart of the machine they are made anew.

An `EncryptedStore` has a key that is nowhere but in memory. Each chunk of a column is a record: a
random nonce of 96 bits, the ciphertext, and its tag (AES-256-GCM, NIST SP 800-38D). The number of
rows in each cell and the answers are in memory alone. Names and lengths of files are not hidden:
they tell the number of rows. No fit can go on with what a process leaves that was killed.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
import warnings
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dprepro import __version__
from dprepro.rows.answer_log import KeptAnswers
from dprepro.rows.folder import Folder, StoreError, StoreWarning, disk_errors, synced
from dprepro.rows.ingest import ChunkStore, Ingested, Source, ingest
from dprepro.rows.partition import MOVING
from dprepro.runtime.extras import needs_extra

RESIDENT_BYTES = 2**26
"""Files that are larger together are taken out of memory chunk by chunk."""

_POPULATE_READ, _POPULATE_WRITE = 22, 23
"""Advice of Linux from 5.14 on, which `mmap` does not name: map all pages at once."""

_CHECK = np.dtype(np.uint32)
_ANSWERS_MARK = 0
"""The first mark is how many answers are kept; those of the chunks follow."""

WORD = np.dtype(np.uint64)
_LOW = 2**32 - 1


class ChunkProgress:
    """Numbers below 2^32 - 1, of which each is written at once and is known to be whole.

    They say how far a fit has come with each chunk: what a process that is killed leaves.

    Parameters
    ----------
    words : uint64 (n,)
        Mapped from the file. A word holds the number and, above it, its complement.
    """

    def __init__(self, words: np.ndarray) -> None:
        self._words = words

    def __getitem__(self, place: int) -> int | None:
        """Return a number, or None if it was taken away, never set or is damaged."""
        word = int(self._words[place])
        return word & _LOW if word >> 32 == ~word & _LOW else None

    def __setitem__(self, place: int, number: int | None) -> None:
        self._words[place] = 0 if number is None else number | (~number & _LOW) << 32


class Store(ChunkStore):
    """Columns of rows in the files of a folder. To be made by `open`."""

    def __init__(self, folder: Folder, filled: Ingested) -> None:
        super().__init__(folder, filled)
        self._files: dict[str, tuple[mmap.mmap, np.ndarray]] = {}
        self._mapping = threading.Lock()
        self._marks = ChunkProgress(self._map("marks")[1])

    @classmethod
    def open(cls, folder: Folder, source: Source) -> Store:
        """Return the store in a folder; where there is no whole one, fill it.

        Raises StoreError if the folder holds the store of another fit, a file of it is damaged, or
        the files do not fit on the disk.
        """
        identity = _identity_of(source)
        with disk_errors(folder.path):
            manifest = folder.read_manifest()
        if manifest is not None and "encrypted" in manifest:
            warn_of_lost_key(folder)
            manifest = None
        if manifest is None:
            return cls._filled(folder, identity, source)
        with disk_errors(folder.path):
            _refuse_other_fit(folder, manifest, identity)
            counts = [np.array(numbers, np.int64) for numbers in manifest["counts"]]
            filled = Ingested(manifest["ends"], counts, manifest.get("scores", 1))
            store = cls(folder, filled)
            store._check()
            if manifest["boot"] != (boot := _boot()) or not boot:
                # What was written last may be lost with the machine's memory.
                for chunk in range(len(store.filled.ends)):
                    store.set_followed(chunk, MOVING)
                folder.write_manifest(manifest | {"boot": boot})
            return store

    @classmethod
    def _filled(cls, folder: Folder, identity: Any, source: Source) -> Store:
        checks: dict[str, list[int]] = {}

        def write(name: str, _: int, values: np.ndarray) -> None:
            checks.setdefault(name, []).append(_check_of(values))
            with disk_errors(folder.path), folder.open_file(name, "ab") as file:
                file.write(values.data.cast("B"))

        with folder.filling():
            filled = ingest(source, Ingested([], []), write)
            with disk_errors(folder.path):
                return cls._finished(folder, identity, filled, checks)

    @classmethod
    def _finished(
        cls, folder: Folder, identity: Any, filled: Ingested, checks: Mapping[str, list[int]]
    ) -> Store:
        """Return the store of columns that are written, once a fit can go on from it."""
        for name, found in checks.items():
            with folder.open_file(name, "ab") as file:
                file.write(np.array(found, _CHECK).tobytes())
                synced(file)
        folder.reserve("scores", filled.n_rows * filled.dtype("scores").itemsize)
        folder.reserve("marks", (1 + len(filled.ends)) * WORD.itemsize)
        store = cls(folder, filled)
        store._marks[_ANSWERS_MARK] = 0
        store._map("marks")[0].flush()
        counts = [numbers.tolist() for numbers in filled.counts]
        folder.write_manifest(
            {
                "identity": identity,
                "ends": filled.ends,
                "counts": counts,
                "scores": filled.n_scores,
                "boot": _boot(),
            }
        )
        return store

    def answers(self) -> KeptAnswers:
        """Return the answers that this fit has had.

        Raises StoreError if some are missing or damaged.
        """
        kept = self._marks[_ANSWERS_MARK]
        if kept is None:
            raise self._folder.damaged(self._folder.path / "marks")

        def mark(number: int) -> None:
            self._marks[_ANSWERS_MARK] = number

        return KeptAnswers(self._folder, kept, mark)

    def read(self, name: str, chunk: int) -> np.ndarray:
        """See `ChunkStore`."""
        mapped, column = self._map(name)
        if self._is_large and sys.platform == "linux":
            # Page by page, on first touch, would take longer than the pass itself.
            how = _POPULATE_WRITE if name == "scores" else _POPULATE_READ
            self._advise(mapped, column, chunk, how)
        return column[self.filled.rows(chunk)]

    def write(self, name: str, chunk: int, values: np.ndarray) -> None:
        """Write a chunk of a column, which gets its name when it is whole: see `finish`."""
        new = f"{name}.new"
        mapped, column = self._map(new, is_new=True)
        column[self.filled.rows(chunk)] = values
        self._checks(mapped, column)[chunk] = _check_of(values)
        self.let_go(chunk, {new: values})

    def finish(self, feature: int) -> None:
        """Let the codes of a feature take the place of its cells: all chunks are written."""
        codes, cells = f"codes-{feature}", f"cells-{feature}"
        with disk_errors(self._folder.path):
            if f"{codes}.new" in self._files:
                self._files.pop(f"{codes}.new")[0].flush()
                (self._folder.path / f"{codes}.new").replace(self._folder.path / codes)
                self._folder.sync()
            self._files.pop(cells, None)
            (self._folder.path / cells).unlink(missing_ok=True)

    def let_go(self, chunk: int, columns: Mapping[str, np.ndarray]) -> None:
        """Take rows out of memory, if the files are large. What was written is in the files."""
        if self._is_large and hasattr(mmap, "MADV_DONTNEED"):
            for name in columns:
                self._advise(*self._files[name], chunk, mmap.MADV_DONTNEED)

    def followed(self, chunk: int) -> int:
        """See `ChunkStore`."""
        moves = self._marks[1 + chunk]
        return MOVING if moves is None else moves

    def set_followed(self, chunk: int, moves: int) -> None:
        """See `ChunkStore`."""
        self._marks[1 + chunk] = None if moves == MOVING else moves

    def close(self, finished: bool) -> None:
        """Let others use the files; delete them if the fit has `finished` or none can go on."""
        # A mapping goes with the last array that looks at it; Windows deletes no file before.
        self._files.clear()
        self._marks = ChunkProgress(np.empty(0, WORD))
        self._folder.end(finished)

    def _check(self) -> None:
        """Raise StoreError unless all files are as they were written, as far as this is known."""
        path = self._folder.path
        for left in path.glob("codes-*.new"):
            left.unlink()
        codes = [f"codes-{k}" for k in range(self.features)]
        cells = [f"cells-{k}" for k in range(self.features)]
        told = [one if self.has(one) else other for one, other in zip(codes, cells, strict=True)]
        self._map("scores")
        for name in ("targets", *told):
            mapped, column = self._map(name)
            for chunk, check in enumerate(self._checks(mapped, column).tolist()):
                values = column[self.filled.rows(chunk)]
                if _check_of(values) != check:
                    raise self._folder.damaged(path / name)
                self.let_go(chunk, {name: values})

    @property
    def _is_large(self) -> bool:
        return sum(len(mapped) for mapped, _ in list(self._files.values())) > RESIDENT_BYTES

    def _advise(self, mapped: mmap.mmap, column: np.ndarray, chunk: int, how: int) -> None:
        rows, size = self.filled.rows(chunk), column.strides[0]
        start = rows.start * size // mmap.PAGESIZE * mmap.PAGESIZE
        with suppress(OSError):  # advice that an older Linux does not know
            mapped.madvise(how, start, rows.stop * size - start)

    def _map(self, name: str, is_new: bool = False) -> tuple[mmap.mmap, np.ndarray]:
        """Return a file of the store, mapped into memory, and the column in it.

        A new file is made before it is mapped for the first time.

        Raises StoreError if it is not there, or not as long as it should be.
        """
        with self._mapping, disk_errors(self._folder.path):
            if name not in self._files:
                path, size = self._folder.path / name, self._size(name)
                if is_new:  # once, for all threads
                    self._folder.reserve(name, size)
                if not path.is_file() or path.stat().st_size != size:
                    raise self._folder.damaged(path)
                with path.open("r+b") as file:
                    mapped = mmap.mmap(file.fileno(), size)
                dtype, rows = self._shape(name)
                self._files[name] = mapped, np.frombuffer(mapped, dtype, rows)
            return self._files[name]

    def _shape(self, name: str) -> tuple[np.dtype, int]:
        if name == "marks":
            return WORD, 1 + len(self.filled.ends)
        return self.filled.dtype(name), self.filled.n_rows

    def _size(self, name: str) -> int:
        dtype, rows = self._shape(name)
        has_checks = name not in ("marks", "scores")
        return dtype.itemsize * rows + has_checks * _CHECK.itemsize * len(self.filled.ends)

    def _checks(self, mapped: mmap.mmap, column: np.ndarray) -> np.ndarray:
        return np.frombuffer(mapped, _CHECK, len(self.filled.ends), offset=column.nbytes)


def _identity_of(source: Source) -> Any:
    """Return what tells a fit from others, as JSON gives it back."""
    return json.loads(json.dumps({"dprepro": __version__, **source.identity}))


def _refuse_other_fit(folder: Folder, manifest: Mapping[str, Any], identity: Any) -> None:
    """Raise StoreError unless a store is of this fit."""
    if manifest["identity"] != identity:
        raise StoreError(
            f"{folder.path} holds the rows of another fit: another table or target, a table that "
            "has changed, other parameters, or another version of dprepro. Name another folder, "
            "or delete this one"
        )


def warn_of_lost_key(folder: Folder) -> None:
    """Say that a fit which was interrupted left encrypted files."""
    warnings.warn(
        f"{folder.path} is left of an encrypted fit that was interrupted. Its key is lost, so no "
        "fit can go on from there: it is deleted, and all rows are read again",
        StoreWarning,
        stacklevel=2,
    )


def _check_of(values: np.ndarray) -> int:
    return zlib.crc32(values.data.cast("B"))


def _boot() -> str:
    """Return what changes with every start of the machine, or "" where that is not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


_NONCE_BYTES = 12
_ADDED_BYTES = _NONCE_BYTES + 16
"""What a record is longer than the chunk in it: by nonce and tag."""


# --- encrypted ------------------------------------------------------------------------------------


class EncryptedStore(ChunkStore):
    """Columns of rows in encrypted files. To be made by `open`; see `Store`."""

    def __init__(self, folder: Folder, cipher: Any) -> None:
        super().__init__(folder, Ingested([], []))
        self._cipher = cipher
        self._followed: list[int] = []

    @classmethod
    def open(cls, folder: Folder, source: Source) -> EncryptedStore:
        """Return a new store, filled with the rows.

        Raises DpreproError if the package `cryptography` is missing. Raises StoreError if a fit
        without encryption can go on with what the folder holds, or the files do not fit on the
        disk.
        """
        store = cls(folder, _cipher())
        with disk_errors(folder.path):
            manifest = folder.read_manifest()
            if manifest is not None and "encrypted" not in manifest:
                raise StoreError(
                    f"{folder.path} holds rows that are not encrypted, of a fit that was "
                    "interrupted: go on without encryption, or delete the folder"
                )
        if manifest is not None:
            warn_of_lost_key(folder)
        store._fill(source)
        return store

    def read(self, name: str, chunk: int) -> np.ndarray:
        """See `ChunkStore`."""
        from cryptography.exceptions import InvalidTag

        start, length = self._place(name, chunk)
        with disk_errors(self._folder.path), self._folder.open_file(name, "rb") as file:
            file.seek(start)
            record = file.read(length)
        try:
            nonce, sealed = record[:_NONCE_BYTES], record[_NONCE_BYTES:]
            opened = self._cipher.decrypt(nonce, sealed, _label(name, chunk))
        except (InvalidTag, ValueError):
            raise self._folder.damaged(self._folder.path / name) from None
        return np.frombuffer(bytearray(opened), self.filled.dtype(name))

    def write(self, name: str, chunk: int, values: np.ndarray) -> None:
        """See `ChunkStore`."""
        start, _ = self._place(name, chunk)
        self._write_at(name, chunk, start, values)

    def finish(self, feature: int) -> None:
        """Let the codes of a feature take the place of its cells: all chunks are written."""
        with disk_errors(self._folder.path):
            codes = self._folder.path / f"codes-{feature}"
            codes.with_name(f"{codes.name}.new").replace(codes)
            (self._folder.path / f"cells-{feature}").unlink()

    def let_go(self, chunk: int, columns: Mapping[str, np.ndarray]) -> None:
        """Write the scores, if they were read; forget the rest."""
        if "scores" in columns:
            self.write("scores", chunk, columns["scores"])

    def followed(self, chunk: int) -> int:
        """See `ChunkStore`."""
        return self._followed[chunk]

    def set_followed(self, chunk: int, moves: int) -> None:
        """See `ChunkStore`."""
        self._followed[chunk] = moves

    def close(self, finished: bool) -> None:
        """Delete the files, whether the fit has `finished` or not."""
        self._folder.delete()

    def _fill(self, source: Source) -> None:
        lengths: dict[str, int] = {}

        def append(name: str, chunk: int, values: np.ndarray) -> None:
            start = lengths.get(name, 0)
            self._write_at(name, chunk, start, values)
            lengths[name] = start + values.nbytes + _ADDED_BYTES
            if name == "targets":
                scores = self.filled.dtype("scores")
                append("scores", chunk, np.zeros(values.size, scores))

        with self._folder.filling():
            with disk_errors(self._folder.path):
                self._folder.write_manifest({"encrypted": True})
            ingest(source, self.filled, append)
        self._followed = [0] * len(self.filled.ends)

    def _write_at(self, name: str, chunk: int, start: int, values: np.ndarray) -> None:
        # A counter would go on alike in a forked process, which has the same key.
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, values.data.cast("B"), _label(name, chunk))
        with disk_errors(self._folder.path):
            file_name = f"{name}.new" if name.startswith("codes") else name
            with self._folder.open_file(file_name, "r+b") as file:
                file.seek(start)
                file.write(nonce + sealed)

    def _place(self, name: str, chunk: int) -> tuple[int, int]:
        """Return where a record starts, and how long it is."""
        rows, size = self.filled.rows(chunk), self.filled.dtype(name).itemsize
        length = (rows.stop - rows.start) * size + _ADDED_BYTES
        return rows.start * size + chunk * _ADDED_BYTES, length


def _label(name: str, chunk: int) -> bytes:
    """Return what a record is bound to: none can stand in another's place."""
    return f"{name}/{chunk}".encode()


def _cipher() -> Any:
    purpose = "to encrypt the rows of a fit needs the package cryptography"
    with needs_extra("encrypted", purpose, ", or leave encryption out"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    return AESGCM(AESGCM.generate_key(256))
