"""Compare loaded values with what the card expects."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.card import Card
from dprepro.errors import DpreproError


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

    Raises
    ------
    DpreproError
        If any differs. The message has the expected value and, if the rows are public, the found
        one.
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
