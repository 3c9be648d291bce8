"""Which rows of a unit of privacy train, where it owns more than the card allows."""

from __future__ import annotations

import hashlib
import hmac
import secrets

import numpy as np
import pandas as pd

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
    digests = _digests(X.iloc[crowded], y[crowded], units[crowded], key)
    order = np.lexsort((digests, owners[crowded]))  # stable: of equal ones the first stays first
    sorted_owners = owners[crowded][order]
    place = np.arange(len(order)) - np.searchsorted(sorted_owners, sorted_owners)
    is_kept = ~is_crowded
    is_kept[crowded[order[place < most]]] = True
    return np.flatnonzero(is_kept)


def _digests(X: pd.DataFrame, y: np.ndarray, units: np.ndarray, key: bytes) -> np.ndarray:
    """Return the digest of each row, uint64 (n,)."""
    # Of the values and texts themselves, so that no code that depends on other rows takes part.
    values = pd.util.hash_pandas_object(X, index=False).to_numpy("<u8")
    targets = np.ascontiguousarray(y, dtype="<f8")
    texts = (
        b"\0".join([row.tobytes(), target.tobytes(), unit.encode()])
        for row, target, unit in zip(values, targets, units, strict=True)
    )
    digests = [int.from_bytes(hmac.digest(key, text, "sha256")[:8], "big") for text in texts]
    return np.array(digests, dtype=np.uint64)
