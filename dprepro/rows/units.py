"""Which rows of a table in chunks train, where the card names whose rows they are.

The rows of one unit can lie in any chunk. So the table is read twice: first for the owner and the
keyed digest of each row, of which the smallest of each owner are kept, then for the kept rows. The
choice is that of `dprepro.data.dataset.kept_rows` for the same rows and the same key: a fit to the
table is a fit to these rows in memory, to the last bit, and keeps the same guarantee for a unit.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from dprepro.data.dataset import bounding_key, have_smallest, keyed_digests
from dprepro.rows.folder import MANIFEST, value_of

_NAME, _KEY = "units", "key"


@dataclass(frozen=True, repr=False)
class UnitBound:
    """At most so many rows of each unit train.

    Attributes
    ----------
    most
        How many, 1 or more.
    key
        See `kept_rows`; None is one of the operating system.
    """

    most: int
    key: bytes | None = None

    def drawn(self, store: Path | None) -> UnitBound:
        """Return the same with a key: that of the fit which was interrupted in a store, or new.

        Answers that a store keeps are about the rows that its key chose. The key goes with the
        store, which holds these very rows; an encrypted one does not hold it.
        """
        if self.key is not None:
            return self
        kept = None
        if store is not None:
            with suppress(OSError, ValueError, KeyError, TypeError):
                manifest = value_of((store / MANIFEST).read_bytes())
                kept = bytes.fromhex(manifest["identity"]["table"][_NAME][_KEY])
        return UnitBound(self.most, kept or bounding_key())

    def identity(self) -> dict[str, object]:
        """Return what tells one choice of rows from others, JSON-able: private."""
        return {_NAME: {"most": self.most, _KEY: (self.key or b"").hex()}}


@dataclass(repr=False)
class Owners:
    """Owners and digests of the rows read so far: 16 bytes for each row, and each name once."""

    bound: UnitBound
    _numbers: dict[str, int] = field(default_factory=dict)
    _owners: list[np.ndarray] = field(default_factory=list)
    _digests: list[np.ndarray] = field(default_factory=list)

    def add(self, X: pd.DataFrame, y: np.ndarray, units: np.ndarray) -> None:
        """Add the rows of a chunk, X (n, K), y (n,) and the names of their units, object (n,)."""
        numbers = self._numbers
        self._owners.append(np.array([numbers.setdefault(u, len(numbers)) for u in units], "i8"))
        self._digests.append(keyed_digests(X, y, units, self.bound.key or b""))

    def kept(self) -> np.ndarray:
        """Return which of all rows train, bool (n,), in the order in which they were added."""
        if not self._owners:
            return np.zeros(0, dtype=bool)
        owners, digests = np.concatenate(self._owners), np.concatenate(self._digests)
        return have_smallest(owners, digests, self.bound.most)
