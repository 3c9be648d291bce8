"""The rows of a fit as whole numbers on disk, so that they need not fit into memory.

A file holds a column: the cells or bins of a feature, the targets, or the scores. It is mapped into
memory, and read and written in chunks of rows. A process that is killed leaves the files, and
another can go on with them.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import threading
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np

from dprepro.errors import DpreproError
from dprepro.rows.partition import MOVING, SortedRows

RESIDENT_BYTES = 2**27
"""Files that are larger together are taken out of memory chunk by chunk."""

_MANIFEST = "store.json"
ANSWERS = "answers.jsonl"
_OWN = re.compile(rf"{_MANIFEST}|{ANSWERS}|lock|targets|scores|followed|(cells|codes)-\d+|.*\.new")
_CODES = np.dtype(np.uint8)
_NUMBERS = np.dtype(np.int32)


class StoreError(DpreproError):
    """The folder cannot keep the rows of this fit."""


class Store:
    """Columns of rows in the files of a folder. To be made by `open`.

    Attributes
    ----------
    folder
        Where the files are.
    ends : list of int
        Where each chunk of rows ends.
    counts : list of int64 (cells,)
        Rows in each cell, of each feature: private.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.ends: list[int] = manifest["ends"]
        self.counts = [np.array(counts, np.int64) for counts in manifest["counts"]]
        self._cell_types = [np.dtype(name) for name in manifest["cells"]]
        self._files: dict[str, tuple[mmap.mmap, np.ndarray]] = {}
        self._mapping = threading.Lock()
        self.followed = self._map("followed", np.dtype(np.int64), len(self.ends))
        if manifest["boot"] != _boot():
            # What was written last may be lost with the machine's memory.
            self.followed[:] = MOVING
            _write_manifest(folder, manifest | {"boot": _boot()})

    @classmethod
    def open(cls, folder: Path, identity: Any, sort: Any, chunks: Iterable[Any]) -> Store:
        """Return the store in a folder; where there is none yet, fill it with chunks of rows.

        Parameters
        ----------
        folder
            It is made if it is not there.
        identity
            What tells this fit and its rows from others, JSON-able.
        sort
            Makes `SortedRows` of a chunk.
        chunks
            They are read if the store is not there, or not complete.

        Raises
        ------
        StoreError
            If the folder holds the store of another fit, or anything else.
        OSError
            If the files do not fit on the disk.
        """
        identity = json.loads(json.dumps(identity))
        manifest = _read_manifest(folder)
        if manifest is None:
            _refuse_strange_files(folder)
            manifest = _fill(folder, identity, sort, chunks)
        elif manifest["identity"] != identity:
            raise StoreError(
                f"{folder} holds the rows of another fit: other rows, other parameters, or another "
                "version of dprepro. Name another folder, or delete this one"
            )
        return cls(folder, manifest)

    @property
    def n_rows(self) -> int:
        """How many rows there are: private, unless the ledger takes it as public."""
        return self.ends[-1]

    def columns(self) -> list[StoredColumns]:
        """Return the columns of every chunk."""
        starts = [0, *self.ends[:-1]]
        return [
            StoredColumns(self, k, slice(start, stop))
            for k, (start, stop) in enumerate(zip(starts, self.ends, strict=True))
        ]

    def array(self, name: str) -> np.ndarray:
        """Return a whole column, mapped into memory: "targets", "scores", "cells-K", "codes-K"."""
        if name.startswith("cells"):
            return self._map(name, self._cell_types[int(name.partition("-")[2])], self.n_rows)
        return self._map(name, _CODES if name.startswith("codes") else _NUMBERS, self.n_rows)

    def has(self, name: str) -> bool:
        """Whether a column is there."""
        return (self.folder / name).is_file()

    def remove(self, name: str) -> None:
        """Delete a column."""
        self._close(name)
        (self.folder / name).unlink(missing_ok=True)

    def finish(self, name: str) -> None:
        """Give a column that was written as ``NAME.new`` its name."""
        self._files[f"{name}.new"][0].flush()
        self._close(f"{name}.new")
        (self.folder / f"{name}.new").replace(self.folder / name)

    def let_go(self, rows: slice) -> None:
        """Take rows out of memory, if the files are large. What was written is in the files."""
        if sum(array.nbytes for _, array in self._files.values()) <= RESIDENT_BYTES:
            return
        for mapped, array in self._files.values():
            start = rows.start * array.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
            stop = min(rows.stop * array.itemsize, len(mapped))
            if array.size == self.n_rows and stop > start and hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def delete(self) -> None:
        """Delete all files, and the folder if nothing else is in it."""
        for name in list(self._files):
            self._close(name)
        for path in _own_files(self.folder):
            path.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _map(self, name: str, dtype: np.dtype, size: int) -> np.ndarray:
        with self._mapping:
            return self._map_once(name, dtype, size)

    def _map_once(self, name: str, dtype: np.dtype, size: int) -> np.ndarray:
        if name not in self._files:
            path = self.folder / name
            bytes_needed = max(size * dtype.itemsize, 1)
            if not path.is_file():
                _reserve(path, bytes_needed)
            if path.stat().st_size != bytes_needed:
                raise StoreError(f"{path} is not whole: delete {self.folder} and start again")
            with path.open("r+b") as file:
                mapped = mmap.mmap(file.fileno(), bytes_needed)
            self._files[name] = mapped, np.frombuffer(mapped, dtype, size)
        return self._files[name][1]

    def _close(self, name: str) -> None:
        # The mapping goes with the last array that looks at it.
        self._files.pop(name, None)


class StoredColumns:
    """The columns of one chunk of a store; see `dprepro.rows.partition.Columns`."""

    def __init__(self, store: Store, number: int, rows: slice) -> None:
        self._store, self._number, self._rows = store, number, rows
        self.cells: MutableMapping[int, np.ndarray] = _ChunkOf(store, "cells", rows)
        self.codes: MutableMapping[int, np.ndarray] = _ChunkOf(store, "codes", rows)

    @property
    def targets(self) -> np.ndarray:
        """See `Columns`."""
        return self._store.array("targets")[self._rows]

    @property
    def scores(self) -> np.ndarray:
        """See `Columns`."""
        return self._store.array("scores")[self._rows]

    @property
    def followed(self) -> int:
        """See `Columns`."""
        return int(self._store.followed[self._number])

    @followed.setter
    def followed(self, moves: int) -> None:
        self._store.followed[self._number] = moves

    def let_go(self) -> None:
        """See `Columns`."""
        self._store.let_go(self._rows)


class _ChunkOf(MutableMapping[int, np.ndarray]):
    """One chunk of the columns of all features that are there."""

    def __init__(self, store: Store, kind: str, rows: slice) -> None:
        self._store, self._kind, self._rows = store, kind, rows

    def __getitem__(self, feature: int) -> np.ndarray:
        if not self._store.has(f"{self._kind}-{feature}"):
            raise KeyError(feature)
        return self._store.array(f"{self._kind}-{feature}")[self._rows]

    def __setitem__(self, feature: int, values: np.ndarray) -> None:
        self._store.array(f"{self._kind}-{feature}.new")[self._rows] = values

    def __delitem__(self, feature: int) -> None:
        """Leave it to the holder, who deletes the cells of all chunks at once."""

    def __iter__(self) -> Iterator[int]:
        return (k for k in range(len(self._store.counts)) if self._store.has(f"{self._kind}-{k}"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _fill(folder: Path, identity: Any, sort: Any, chunks: Iterable[Any]) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in _own_files(folder):
        path.unlink()
    (folder / f"{_MANIFEST}.new").touch()
    ends: list[int] = []
    counts: list[np.ndarray] = []
    types: list[str] = []
    files: dict[str, Any] = {}
    try:
        for chunk in chunks:
            rows: SortedRows = sort(chunk)
            cells = {k: narrowed(c, rows.counts[k].size) for k, c in rows.cells.items()}
            columns = {"targets": rows.targets} | {f"cells-{k}": c for k, c in cells.items()}
            for name, column in columns.items():
                if name not in files:
                    files[name] = (folder / name).open("wb")
                files[name].write(np.ascontiguousarray(column).data.cast("B"))
            counts = counts or [np.zeros_like(column) for column in rows.counts]
            counts = [a + b for a, b in zip(counts, rows.counts, strict=True)]
            types = [cells[k].dtype.name for k in sorted(cells)]
            ends.append((ends[-1] if ends else 0) + rows.targets.size)
    finally:
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
    _reserve(folder / "scores", max(ends[-1], 1) * _NUMBERS.itemsize)
    manifest = {
        "identity": identity, "ends": ends, "cells": types, "boot": _boot(),
        "counts": [column.tolist() for column in counts],
    }  # fmt: skip
    _write_manifest(folder, manifest)
    return manifest


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    with (folder / f"{_MANIFEST}.new").open("w") as file:
        json.dump(manifest, file)
        file.flush()
        os.fsync(file.fileno())
    (folder / f"{_MANIFEST}.new").replace(folder / _MANIFEST)


def narrowed(cells: np.ndarray, n_cells: int) -> np.ndarray:
    """Return cells as uint8 if there are so few that they fit."""
    return cells.astype(np.uint8) if n_cells <= 256 else cells


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / _MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text())
        return {name: manifest[name] for name in ("identity", "ends", "cells", "counts", "boot")}
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{path} is damaged: delete {folder} and start again") from None


def _own_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if _OWN.fullmatch(path.name)]


def _refuse_strange_files(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file: name a folder for the rows of the fit")
    if folder.is_dir() and len(_own_files(folder)) < sum(1 for _ in folder.iterdir()):
        raise StoreError(f"{folder} holds other files: name a folder of its own for the rows")


def _reserve(path: Path, size: int) -> None:
    """Make a file of zeros that has its place on the disk: writing to a mapping cannot fail."""
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)


def _boot() -> str:
    """Return what changes with every start of the machine, or "" where that is not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
