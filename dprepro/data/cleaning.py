"""From a raw table to X and y, as the card asks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.card import Card
from dprepro.data.card_parts import Source
from dprepro.data.domain import Domain, is_categorical
from dprepro.data.formats import ColumnKind
from dprepro.errors import DpreproError, nearest

_SHOWN = 5


def column_kinds(card: Card, source: Source) -> dict[str, ColumnKind]:
    """Return what the card knows of the columns, by their names in this source."""
    kinds: dict[str, ColumnKind] = {
        name: "numeric" if feature.numeric is not None else "text"
        for name, feature in (card.features or {}).items()
    }
    kinds[card.target] = "numeric" if card.task == "regression" else "text"
    raw_names = {new: old for old, new in source.rename.items()}
    return {raw_names.get(name, name): kind for name, kind in kinds.items()}


def clean(
    table: pd.DataFrame, card: Card, source: Source
) -> tuple[pd.DataFrame, np.ndarray, Domain | None]:
    """Return X of shape (n, K), y of shape (n,) and the domain, as `Dataset` describes them.

    Raises
    ------
    DpreproError
        If a column, label or category is not what the card says; the message names it.
    """
    table = table.rename(columns=source.rename)
    if card.target not in table.columns:
        if table.shape[1] == 1:
            raise DpreproError(
                f"no target column {card.target!r}: the only column is {table.columns[0]!r}. If "
                'another sign than the comma parts the fields, say so: `format: {separator: ";"}`'
            )
        raise DpreproError(
            f"no target column {card.target!r}{nearest(card.target, list(table.columns)) or '.'} "
            f"The columns are: {', '.join(table.columns)}"
        )
    y, target = _target(table[card.target], card)
    X = _features(table, _feature_names(table, card), card)
    if card.features is None:
        return X, y, None
    features = tuple(feature.named(name) for name, feature in card.features.items())
    return X, y, Domain(features, target)


def _features(table: pd.DataFrame, names: list[str], card: Card) -> pd.DataFrame:
    kept = table[names]
    is_numeric = all(feature.numeric is not None for feature in (card.features or {}).values())
    if is_numeric and not card.fill and set(kept.dtypes) == {np.dtype(np.uint8)}:
        return kept  # images: eight times the size as float64, and nothing to mend
    return pd.DataFrame({name: _feature(kept[name], name, card) for name in names}, copy=False)


def _target(
    column: pd.Series, card: Card
) -> tuple[np.ndarray, tuple[float, float] | tuple[str, ...]]:
    """Return y, and what is public of it: the card's bounds, or the labels by their codes."""
    if card.task == "regression":
        y = _numeric(column, card.target, card.missing).to_numpy()
        missing = np.isnan(y)
        target: tuple[float, float] | tuple[str, ...] = card.target_bounds or ()
    else:
        labels = _labels(column, card)
        y = _as_categorical(column, labels, card.missing).codes.astype(np.int64)
        missing = y < 0
        target = tuple(labels)
    if missing.any():
        raise DpreproError(
            f"target {card.target!r} is missing in {missing.sum():,} of {len(y):,} rows; "
            "remove these rows from the file"
        )
    return y, target


def _labels(column: pd.Series, card: Card) -> list[str]:
    """Return the card's labels, or those that occur; the positive one last."""
    labels = card.labels or [*_as_categorical(column, None, card.missing).categories]
    if card.task == "binary" and (len(labels) != 2 or card.positive not in labels):
        hint = "" if card.positive in labels else nearest(str(card.positive), labels)
        raise DpreproError(
            f"target {card.target!r} must hold two labels, one of them the card's `positive` "
            f"{card.positive!r}{hint or '.'} It holds {len(labels)}: {_list(labels)}"
        )
    return sorted(labels, key=lambda label: label == card.positive)


def _feature_names(table: pd.DataFrame, card: Card) -> list[str]:
    present = [name for name in table.columns if name not in (*card.drop, card.target)]
    if card.features is None:
        _require(card.drop, table.columns, "`drop` names")
        _require(card.fill, present, "`fill` names")
        if not present:
            raise DpreproError("no column is left for the features: only target and dropped ones")
        return present
    _require(card.features, table.columns, "`features` names")
    for name in present:
        if name not in card.features:
            raise DpreproError(
                f"column {name!r} is not on the card{nearest(name, list(card.features))}; "
                "add it under `features` or under `drop`"
            )
    return list(card.features)


def _require(names: Collection[str], columns: Collection[str], what: str) -> None:
    for name in names:
        if name not in columns:
            raise DpreproError(
                f"{what} {name!r}, no column of the table{nearest(name, list(columns)) or '.'} "
                f"The columns are: {', '.join(columns)}"
            )


def _feature(column: pd.Series, name: str, card: Card) -> pd.Series:
    feature = (card.features or {}).get(name)
    if feature is None and is_categorical(column):
        categories = None
    elif feature is None or feature.categories is None:
        return _numeric(column, name, card.missing, card.fill.get(name))
    else:
        categories = feature.categories
    values = _as_categorical(column, categories, card.missing)
    if name in card.fill:
        fill = card.fill[name]
        if fill not in values.categories:
            raise DpreproError(f"`fill` of {name!r}: {fill!r} is not one of its categories")
        codes = np.where(values.codes < 0, list(values.categories).index(fill), values.codes)
        values = pd.Categorical.from_codes(codes, dtype=values.dtype)
    return pd.Series(values, name=name)


def _numeric(
    column: pd.Series, name: str, missing: Collection[str], fill: str | None = None
) -> pd.Series:
    if is_categorical(column) and not pd.api.types.is_bool_dtype(column.dtype):
        column = _parse_numbers(column, name, missing)
    column = column.astype("float64")
    infinite = int(np.isinf(column.to_numpy()).sum())
    if infinite:
        raise DpreproError(
            f"column {name!r} has {infinite:,} infinite values; replace them in the file"
        )
    if fill is None:
        return column
    try:
        return column.fillna(float(fill))
    except ValueError as error:
        raise DpreproError(f"`fill` of numeric column {name!r}: {fill!r} is no number") from error


def _parse_numbers(column: pd.Series, name: str, missing: Collection[str]) -> pd.Series:
    codes, texts = _distinct(column)
    blank = np.array([text in missing for text in texts], dtype=bool)
    values = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=float)
    wrong = [
        text
        for text, value, ok in zip(texts, values, blank, strict=True)
        if not ok and np.isnan(value)
    ]
    if wrong:
        raise DpreproError(
            f"column {name!r} is numeric on the card but holds {_list(wrong)}; if that stands for "
            "a missing value, list it under `missing`"
        )
    return pd.Series(np.append(np.where(blank, np.nan, values), np.nan)[codes], name=name)


def _as_categorical(
    column: pd.Series, categories: Sequence[str] | None, missing: Collection[str]
) -> pd.Categorical:
    codes, texts = _distinct(column)
    if categories is None:
        categories = sorted({text for text in texts if text not in missing})
    position = {category: code for code, category in enumerate(categories)}
    unknown = [text for text in texts if text not in position and text not in missing]
    if unknown:
        raise DpreproError(
            f"column {column.name!r} holds {_list(unknown)}, not among the card's categories"
            f"{nearest(unknown[0], list(categories)) or '.'} Allowed: {', '.join(categories)}"
        )
    of_text = np.array([position.get(text, -1) for text in texts] + [-1], dtype=np.int64)
    dtype: pd.CategoricalDtype = pd.CategoricalDtype(list(categories))
    return pd.Categorical.from_codes(of_text[codes], dtype=dtype)


def _distinct(column: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return codes of shape (n,), -1 for missing, and the text of each code without blanks."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), [_text(value) for value in column.cat.categories]
    codes, values = pd.factorize(column)
    return codes, [_text(value) for value in values]


def _text(value: Any) -> str:
    # A label that some format stores as a number reads as in a text file: 1, not 1.0.
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def _list(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(map(repr, texts[:_SHOWN])) + more
