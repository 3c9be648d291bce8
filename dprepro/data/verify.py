"""Compare loaded values with what the card expects.

Values of rows that their card rules out: missing ones, and those outside of bounds.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.card import Card
from dprepro.data.dataset import Dataset
from dprepro.data.domain import NumericFeature, numbers_of
from dprepro.runtime.errors import DpreproError


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


def undeclared(dataset: Dataset) -> list[str]:
    """Return the features with missing values that the card does not allow; none without a domain.

    This reads the rows: say it to their holder only.
    """
    features = dataset.domain.features if dataset.domain else ()
    return [f.name for f in features if not f.missing and dataset.X[f.name].isna().any()]


def in_words(names: list[str]) -> str:
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
        "rows, or the card if its bounds were wrong all along, or let the fit clip such "
        "values to the bounds with --clip. Choose bounds by what can be known without "
        "these rows"
    )


def refuse_undeclared(dataset: Dataset) -> None:
    """Refuse rows with missing values that the card does not allow.

    Raises
    ------
    DpreproError
        The message names the features, and quotes and counts no rows.
    """
    names = undeclared(dataset)
    if names:
        raise DpreproError(f"{dataset.name}: {in_words(names)}")
