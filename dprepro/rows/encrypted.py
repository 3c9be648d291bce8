"""The rows of a fit on disk, encrypted with a key that is nowhere but in memory.

Each chunk of a column is a record: a random nonce of 96 bits, the ciphertext, and its tag
(AES-256-GCM, NIST SP 800-38D). The number of rows in each cell and the answers are in memory alone.
Names and lengths of files are not hidden: they tell the number of rows. No fit can go on with what
a process leaves that was killed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from dprepro.rows.folder import Folder, StoreError, disk_errors
from dprepro.rows.ingest import ChunkStore, Filled, Source, fill
from dprepro.rows.store import warn_of_lost_key
from dprepro.runtime.errors import DpreproError

_NONCE_BYTES = 12
_ADDED_BYTES = _NONCE_BYTES + 16
"""What a record is longer than the chunk in it: by nonce and tag."""


class EncryptedStore(ChunkStore):
    """Columns of rows in encrypted files. To be made by `open`; see `Store`."""

    def __init__(self, folder: Folder, cipher: Any) -> None:
        super().__init__(folder, Filled([], []))
        self._cipher = cipher
        self._followed: list[int] = []

    @classmethod
    def open(cls, folder: Folder, source: Source) -> EncryptedStore:
        """Return a new store, filled with the rows.

        Raises
        ------
        DpreproError
            If the package `cryptography` is missing.
        StoreError
            If a fit without encryption can go on with what the folder holds, or the files do not
            fit on the disk.
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
                append("scores", chunk, np.zeros(values.size, np.int32))

        with self._folder.filling():
            with disk_errors(self._folder.path):
                self._folder.write_manifest({"encrypted": True})
            self.filled = fill(source, append)
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
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise DpreproError(
            "to encrypt the rows of a fit needs the package cryptography: pip install "
            "'dprepro[encrypted]', or leave encryption out"
        ) from None
    return AESGCM(AESGCM.generate_key(256))
