"""From a raw table to X and y, as the card says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dprepro.data.card import Card
from dprepro.data.card_parts import Distinct, Source
from dprepro.data.domain import Domain, is_categorical
from dprepro.data.formats import ColumnKind, not_numeric
from dprepro.errors import DpreproError, nearest


def column_kinds(card: Card, source: Source) -> dict[str, ColumnKind]:
    """Return the kinds of columns that the card knows, by their names in this source."""
    kinds: dict[str, ColumnKind] = {
        name: "numeric" if feature.numeric is not None else "text"
        for name, feature in (card.features or {}).items()
    }
    kinds[card.target] = "numeric" if card.task == "regression" else "text"
    if card.unit is not None:
        kinds[card.unit] = "text"
    if card.distinct is None:  # which compares all columns
        kinds |= dict.fromkeys(card.drop, "unused")
    raw_names = {new: old for old, new in source.rename.items()}
    return {raw_names.get(name, name): kind for name, kind in kinds.items()}


class Cleaned(NamedTuple):
    """A clean table: X (n, K), y (n,), the domain and the units, as `Dataset` describes them."""

    X: pd.DataFrame
    y: np.ndarray
    domain: Domain | None
    units: np.ndarray | None


def clean(
    table: pd.DataFrame, card: Card, source: Source
) -> tuple[pd.DataFrame, np.ndarray, Domain | None]:
    """Return X, y and the domain of `clean_with_units`, which raises the same."""
    cleaned = clean_with_units(table, card, source)
    return cleaned.X, cleaned.y, cleaned.domain


def clean_with_units(table: pd.DataFrame, card: Card, source: Source) -> Cleaned:
    """Return a raw table as its card describes it.

    With a public domain the card alone determines types, categories, labels and codes.

    Raises
    ------
    DpreproError
        If a column, label or category is not what the card says. The message names the column and
        the rule. It does not quote values of rows, and does not count rows.
    """
    table = table.rename(columns=source.rename)
    if card.target not in table.columns:
        raise DpreproError(_no_target(table, card))
    if card.unit is not None:  # before features: a wrong name would make its column one
        _require([card.unit], table.columns, "`unit` names")
    if card.distinct is not None:
        table = _distinct_rows(table, card.distinct)
    y = _target(table[card.target], card)
    X = _features(table, _feature_names(table, card), card)
    cleaned = Cleaned(X, y, public_domain(card), _units(table, card))
    return _without_missing(cleaned) if card.complete else cleaned


def _without_missing(cleaned: Cleaned) -> Cleaned:
    """Return the rows in which no feature is missing. Each row decides for itself."""
    X, y, domain, units = cleaned
    kept = X.notna().all(axis=1).to_numpy()
    return Cleaned(
        X[kept].reset_index(drop=True), y[kept], domain, None if units is None else units[kept]
    )


def _distinct_rows(table: pd.DataFrame, distinct: Distinct) -> pd.DataFrame:
    _require(distinct.but_for, table.columns, "`distinct` names")
    compared = [name for name in table.columns if name not in distinct.but_for]
    return table.drop_duplicates(subset=compared, ignore_index=True)


def _units(table: pd.DataFrame, card: Card) -> np.ndarray | None:
    """Return whose row each one is, object (n,) of texts; None if the card does not ask."""
    if card.unit is None:
        return None
    codes, texts = _distinct(table[card.unit])
    if (codes < 0).any() or not set(card.missing).isdisjoint(texts):
        raise DpreproError(
            f"unit column {card.unit!r} is missing in some rows, so nobody knows whose they are: "
            "give each of these rows an owner, or remove them from the file"
        )
    return np.array(texts, dtype=object)[codes]


def public_domain(card: Card) -> Domain | None:
    """Return the domain that the card states; None if it states none."""
    if card.features is None:
        return None
    target = card.public_target or ()
    if card.task != "regression":
        target = tuple(map(str, target))
    return Domain(tuple(f.named(name) for name, f in card.features.items()), target)


def _no_target(table: pd.DataFrame, card: Card) -> str:
    """Return what to do. The columns are named only if the card names one of them.

    If not, the file may have no header, and its first line may be a row.
    """
    names = [str(name) for name in table.columns]
    said = f"no target column {card.target!r}"
    if set(names) & {*(card.features or {}), *card.drop, *card.fill}:
        return f"{said}{nearest(card.target, names) or '.'} The columns are: {', '.join(names)}"
    if len(names) == 1:
        return (
            f"{said}: there is only one column, with another name. If the fields are not separated "
            'by commas, say so: `format: {separator: ";"}`'
        )
    return (
        f"{said} among {len(names)} columns of other names. The first line of the file should "
        "hold the names; if it is a row, say so: `format: {header: false, columns: [...]}`"
    )


def _features(table: pd.DataFrame, names: list[str], card: Card) -> pd.DataFrame:
    kept = table[names]
    is_numeric = all(feature.numeric is not None for feature in (card.features or {}).values())
    if is_numeric and not card.fill and set(kept.dtypes) == {np.dtype(np.uint8)}:
        return kept  # images: as float64 they would be eight times as large
    return pd.DataFrame({name: _feature(kept[name], name, card) for name in names}, copy=False)


def _target(column: pd.Series, card: Card) -> np.ndarray:
    if card.task == "regression":
        y = as_numbers(column, card.target, card.missing).to_numpy()
        missing = np.isnan(y)
    else:
        y = _codes(column, card)
        missing = y < 0
    if missing.any():
        raise DpreproError(
            f"target {card.target!r} is missing in some rows; remove these rows from the file. "
            "Missing is an empty field, or a text that the card lists under `missing`"
        )
    return y


def _codes(column: pd.Series, card: Card) -> np.ndarray:
    """Return int64 codes (n,), -1 for missing."""
    if card.labels is not None:
        named = list(map(str, card.public_target or ()))
        if card.relabel:
            codes, texts = _distinct(column)
            read = [card.relabel.get(text, text) for text in texts] + [None]
            column = pd.Series(np.array(read, dtype=object)[codes], name=column.name)
        codes = _as_categorical(column, named, card.missing, "labels").codes
        return codes.astype(np.int64)
    values = _as_categorical(column, None, card.missing)
    if card.task != "binary":
        return values.codes.astype(np.int64)
    others = other_labels(column, card)
    # A public domain has both labels whether or not both occur.
    if card.features is None and not len(others) == 1 < len(values.categories):
        raise DpreproError(not_two_labels(card))
    codes = np.array([int(label == card.positive) for label in [*values.categories, ""]])
    return np.where(values.codes < 0, -1, codes[values.codes]).astype(np.int64)


def other_labels(column: pd.Series, card: Card) -> set[str]:
    """Return the labels of a binary target but the positive one.

    Raises
    ------
    DpreproError
        If the card has a public domain and there are several.
    """
    others = {text for text in _distinct(column)[1] if text not in (*card.missing, card.positive)}
    if card.features is not None and len(others) > 1:
        raise DpreproError(not_two_labels(card))
    return others


def not_two_labels(card: Card) -> str:
    """Return the message about a binary target with other than two labels; it quotes none read."""
    return (
        f"target {card.target!r} must hold two labels, one of them the card's `positive` "
        f"{card.positive!r}, and does not. Take the labels, as the file spells them, from its "
        "codebook: labels that are read from the rows are not public. If several texts mean one "
        "label, say so on the card with `labels` and `relabel`"
    )


def _feature_names(table: pd.DataFrame, card: Card) -> list[str]:
    others = (*card.drop, card.target, card.unit)
    present = [name for name in table.columns if name not in others]
    if card.features is None:
        _require(card.drop, table.columns, "`drop` names")
        _require(card.fill, present, "`fill` names")
        if not present:
            raise DpreproError("no column is left for the features: all are the target or dropped")
        return present
    _require(card.features, table.columns, "`features` names")
    for name in present:
        if name not in card.features:
            raise DpreproError(
                f"column {name!r} is not in the card{nearest(name, list(card.features))}; "
                "add it under `features` or under `drop`"
            )
    return list(card.features)


def _require(names: Collection[str], columns: Collection[str], what: str) -> None:
    for name in names:
        if name not in columns:
            raise DpreproError(
                f"{what} {name!r}, which is not a column of the table"
                f"{nearest(name, list(columns)) or '.'} The columns are: {', '.join(columns)}"
            )


def _feature(column: pd.Series, name: str, card: Card) -> pd.Series:
    feature = (card.features or {}).get(name)
    if feature is None and is_categorical(column):
        categories = None
    elif feature is None or feature.categories is None:
        return as_numbers(column, name, card.missing, card.fill.get(name))
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


def as_numbers(
    column: pd.Series, name: str, missing: Collection[str], fill: str | None = None
) -> pd.Series:
    """Return a column as float64, (n,); texts in `missing` are NaN, or what `fill` says.

    Raises
    ------
    DpreproError
        If it holds other texts, or infinities. The message quotes none.
    """
    if is_categorical(column) and not pd.api.types.is_bool_dtype(column.dtype):
        column = _parse_numbers(column, name, missing)
    column = column.astype("float64")
    if np.isinf(column.to_numpy()).any():
        raise DpreproError(f"column {name!r} has infinite values; replace them in the file")
    if fill is None:
        return column
    try:
        return column.fillna(float(fill))
    except ValueError as error:
        raise DpreproError(
            f"`fill` of numeric column {name!r}: {fill!r} is not a number"
        ) from error


def _parse_numbers(column: pd.Series, name: str, missing: Collection[str]) -> pd.Series:
    codes, texts = _distinct(column)
    blank = np.array([text in missing for text in texts], dtype=bool)
    values = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=float)
    if (np.isnan(values) & ~blank).any():
        raise DpreproError(not_numeric(name))
    return pd.Series(np.append(np.where(blank, np.nan, values), np.nan)[codes], name=name)


def _as_categorical(
    column: pd.Series,
    categories: Sequence[str] | None,
    missing: Collection[str],
    called: str = "categories",
) -> pd.Categorical:
    codes, texts = _distinct(column)
    if categories is None:
        categories = sorted({text for text in texts if text not in missing})
    position = {category: code for code, category in enumerate(categories)}
    if any(text not in position and text not in missing for text in texts):
        raise DpreproError(
            f"column {column.name!r} holds a value that is not among the card's {called}. "
            f"Allowed: {', '.join(categories)}. Look in the codebook for what is missing from "
            "this list, and add it to the card: a list made from the rows is not public"
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
