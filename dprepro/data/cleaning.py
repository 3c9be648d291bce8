"""From a raw table to X and y, as the card says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from dprepro.data.card import Card
from dprepro.data.card_parts import Distinct, Source
from dprepro.data.cell_values import (
    CellError,
    Marks,
    NotNumericError,
    Spelling,
    distinct,
    holds,
    read_categories,
    read_numbers,
    text_of,
)
from dprepro.data.domain import Domain
from dprepro.data.formats import ColumnKind
from dprepro.runtime.errors import DpreproError, nearest

_Read = TypeVar("_Read")


def column_kinds(card: Card, source: Source) -> dict[str, ColumnKind]:
    """Return the kinds of columns that the card knows, by their names in this source."""
    kinds: dict[str, ColumnKind] = {
        name: "numeric" if feature.numeric is not None and feature.date is None else "text"
        for name, feature in (card.features or {}).items()
    }
    kinds[card.target] = "numeric" if card.task == "regression" else "text"
    if card.unit is not None:
        kinds[card.unit] = "text"
    if card.distinct is None:  # which compares all columns
        kinds |= dict.fromkeys(card.drop, "unused")
    raw_names = {new: old for old, new in source.rename.items()}
    return {raw_names.get(name, name): kind for name, kind in kinds.items()}


class CardError(DpreproError):
    """Rows are not what their card says. `problems` has what is wrong, one column after another."""

    def __init__(self, problems: Sequence[DpreproError]) -> None:
        self.problems = list(problems)
        super().__init__(self.said([""] * len(self.problems)))

    def with_lines(self, line_of: Callable[[int], int | None], before: int = 0) -> str:
        """Return the message, with the first line that has each problem, where that is known.

        `line_of` says where a row begins; `before` rows of the file come before those of the table.
        """
        rows = [p.row if isinstance(p, CellError) else None for p in self.problems]
        lines = [None if row is None else line_of(before + row) for row in rows]
        return self.said(["" if line is None else f" (first in line {line})" for line in lines])

    def said(self, places: Sequence[str]) -> str:
        """Return the message, with where each problem was met."""
        texts = [f"{problem}{place}" for problem, place in zip(self.problems, places, strict=True)]
        if len(texts) == 1:
            return texts[0]
        return "\n  ".join([f"{len(texts)} columns are not as the card says:", *texts])


class Cleaned(NamedTuple):
    """A clean table: X (n, K), y (n,), the domain and the units, as `Dataset` describes them.

    `records` says which row of the raw table each one is, int64 (n,).
    """

    X: pd.DataFrame
    y: np.ndarray
    domain: Domain | None
    units: np.ndarray | None
    records: np.ndarray

    def __repr__(self) -> str:
        return f"Cleaned({self.X.shape[1]} features)"


def clean(
    table: pa.Table, card: Card, source: Source
) -> tuple[pd.DataFrame, np.ndarray, Domain | None]:
    """Return X, y and the domain of `clean_with_units`, which raises the same."""
    cleaned = clean_with_units(table, card, source)
    return cleaned.X, cleaned.y, cleaned.domain


def clean_with_units(table: pa.Table, card: Card, source: Source) -> Cleaned:
    """Return a raw table as its card describes it.

    With a public domain the card alone determines types, categories, labels and codes.

    Raises DpreproError if a column, label or category is not what the card says. The message names
    every such column and the rule. It does not quote values of rows, and does not count rows.

    Parameters
    ----------
    table
        Of Arrow, which has no index: what stands at one position of all columns is one row.
    """
    names = [source.rename.get(name, name) for name in table.column_names]
    _refuse_repeated(names, card)
    table = table.rename_columns(names)
    if card.target not in names:
        raise DpreproError(_no_target(names, card))
    if card.unit is not None:  # before features: a wrong name would make its column one
        _require([card.unit], names, "`unit` names")
    records = np.arange(table.num_rows)
    if card.distinct is not None:
        is_first = _is_first(table, card, card.distinct)
        records, table = np.flatnonzero(is_first), table.filter(pa.array(is_first))
    features = _feature_names(names, card)
    problems: list[DpreproError] = []

    def read(what: Callable[..., _Read], *arguments: Any) -> _Read | None:
        try:
            return what(*arguments)
        except DpreproError as error:
            problems.append(error)
            return None

    marks = marks_of(card, source)
    y = read(_target, table[card.target], card, marks)
    columns = _features(table, features, card, marks, read)
    units = None if card.unit is None else read(_units, table[card.unit], card, marks)
    if problems or y is None:
        raise CardError(problems)
    X = pd.DataFrame(columns, columns=features, copy=False)
    cleaned = Cleaned(X, y, public_domain(card), units, records)
    return _without_missing(cleaned) if card.complete else cleaned


def spelling_of(card: Card, source: Source) -> Spelling:
    """Return how numbers are written in a source."""
    settings = source.format or card.format
    return Spelling(settings.decimal, settings.thousands)


def marks_of(card: Card, source: Source) -> Marks:
    """Return what stands for a missing value in a source."""
    return Marks(card.missing, spelling_of(card, source))


def _refuse_repeated(names: Sequence[str], card: Card) -> None:
    """Refuse names that repeat, unless all columns of such a name are dropped unread."""
    unread = set(card.drop) if card.distinct is None else set()
    repeated = [name for name in names if names.count(name) > 1 and name not in unread]
    if repeated:
        raise DpreproError(repeated_names(names, repeated))


def repeated_names(names: Sequence[str], repeated: Collection[str]) -> str:
    """Return what to say of names that repeat: by positions, as the names may be a row's values."""
    places = [str(k + 1) for k, name in enumerate(names) if name in repeated]
    return (
        f"column names repeat: those of columns {', '.join(places)}; rename them in the file, or "
        "give all columns names on the card: `format: {columns: [...]}`. If its first line is a "
        "row, say so: `format: {header: false, columns: [...]}`"
    )


def _without_missing(cleaned: Cleaned) -> Cleaned:
    """Return the rows in which no feature is missing. Each row decides for itself."""
    X, y, domain, units, records = cleaned
    kept = X.notna().all(axis=1).to_numpy()
    units = None if units is None else units[kept]
    return Cleaned(X[kept].reset_index(drop=True), y[kept], domain, units, records[kept])


def _is_first(table: pa.Table, card: Card, distinct_rows: Distinct) -> np.ndarray:
    """Return whether no row before has the same values, bool (n,)."""
    names = table.column_names
    _require(distinct_rows.but_for, names, "`distinct` names")
    kinds = column_kinds(card, card.sources[0].model_copy(update={"rename": {}}))
    values = pd.DataFrame(
        {
            name: _comparable(table[name], kinds.get(name))
            for name in names
            if name not in distinct_rows.but_for
        }
    )
    is_first: np.ndarray = ~values.duplicated().to_numpy()
    return is_first


def _comparable(column: pa.ChunkedArray, kind: ColumnKind | None) -> np.ndarray:
    """Return numbers by which equal values are found: of a column that is one, its numbers."""
    if kind != "text":
        try:
            return read_numbers(column, "", Marks(()))
        except CellError:
            pass
    codes: np.ndarray = distinct(column)[0]
    return codes


def _units(column: pa.ChunkedArray, card: Card, marks: Marks) -> np.ndarray:
    """Return whose row each one is, object (n,) of texts."""
    codes, values = distinct(column)
    absent = np.array([marks.have_value(value) for value in values] + [True])[codes]
    if absent.any():
        raise CellError(
            f"unit column {card.unit!r} is missing in some rows, so nobody knows whose they are: "
            "give each of these rows an owner, or remove them from the file",
            int(np.argmax(absent)),
        )
    return np.array([text_of(value) for value in values], dtype=object)[codes]


def public_domain(card: Card) -> Domain | None:
    """Return the domain that the card states; None if it states none."""
    if card.features is None:
        return None
    target = card.public_target or ()
    if card.task != "regression":
        target = tuple(map(str, target))
    return Domain(tuple(f.named(name) for name, f in card.features.items()), target)


def _no_target(names: Sequence[str], card: Card) -> str:
    """Return what to do. The columns are named only if the card names one of them.

    If not, the file may have no header, and its first line may be a row.
    """
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


def _features(
    table: pa.Table,
    names: Sequence[str],
    card: Card,
    marks: Marks,
    read: Callable[..., Any],
) -> Any:
    kept = [table[name] for name in names]
    is_numeric = all(feature.numeric is not None for feature in (card.features or {}).values())
    if is_numeric and not card.fill and {column.type for column in kept} == {pa.uint8()}:
        # Images: as float64 they would be eight times as large.
        return np.column_stack([column.to_numpy() for column in kept])
    return {name: read(_feature, table[name], name, card, marks) for name in names}


def _target(column: pa.ChunkedArray, card: Card, marks: Marks) -> np.ndarray:
    if card.task == "regression":
        y = read_numbers(column, card.target, marks, marks.spelling)
        missing = np.isnan(y)
    else:
        y = _codes(column, card, marks)
        missing = y < 0
    if missing.any():
        raise CellError(
            f"target {card.target!r} is missing in some rows; remove these rows from the file. "
            "Missing is an empty field, or a text that the card lists under `missing`",
            int(np.argmax(missing)),
        )
    if card.target_transform == "log":
        not_positive = y <= 0
        if not_positive.any():
            raise CellError(
                f"target {card.target!r} has values that are not positive, and "
                "`target_transform: log` needs positive ones",
                int(np.argmax(not_positive)),
            )
        y = _logarithm(y, card)
    return y


def _logarithm(y: np.ndarray, card: Card) -> np.ndarray:
    """Return logarithms; those of values within the bounds are within the bounds' logarithms.

    NumPy and Python differ in the last digit of some.
    """
    logarithms: np.ndarray = np.log(y)
    if card.target_bounds is None:
        return logarithms
    lower, upper = map(float, card.public_target or ())
    inside = (y >= card.target_bounds[0]) & (y <= card.target_bounds[1])
    return np.where(inside, np.clip(logarithms, lower, upper), logarithms)


def _codes(column: pa.ChunkedArray, card: Card, marks: Marks) -> np.ndarray:
    """Return int64 codes (n,), -1 for missing."""
    if card.labels is not None:
        named = list(map(str, card.public_target or ()))
        found = read_categories(column, card.target, named, marks, card.relabel, "labels")
        return found.codes.astype(np.int64)
    values = read_categories(column, card.target, None, marks)
    if card.task != "binary":
        return values.codes.astype(np.int64)
    others = other_labels(column, card, marks)
    # A public domain has both labels whether or not both occur.
    if card.features is None and not len(others) == 1 < len(values.categories):
        raise DpreproError(not_two_labels(card))
    codes = np.array([int(label == card.positive) for label in [*values.categories, ""]])
    return np.where(values.codes < 0, -1, codes[values.codes]).astype(np.int64)


def other_labels(column: pa.ChunkedArray, card: Card, marks: Marks) -> set[str]:
    """Return the labels of a binary target but the positive one.

    Raises DpreproError if the card has a public domain and there are several.
    """
    present = {text_of(value) for value in distinct(column)[1] if not marks.have_value(value)}
    others = present - {card.positive}
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


def _feature_names(names: Sequence[str], card: Card) -> list[str]:
    others = (*card.drop, card.target, card.unit)
    present = [name for name in names if name not in others]
    if card.features is None:
        _require(card.drop, names, "`drop` names")
        _require(card.fill, present, "`fill` names")
        if not present:
            raise DpreproError("no column is left for the features: all are the target or dropped")
        return present
    _require(card.features, names, "`features` names")
    if unknown := [name for name in present if name not in card.features]:
        raise DpreproError("\n  ".join(_not_in_card(name, card) for name in unknown))
    return list(card.features)


def _not_in_card(name: str, card: Card) -> str:
    return (
        f"column {name!r} is not in the card{nearest(name, list(card.features or ()))}; "
        "add it under `features` or under `drop`"
    )


def _require(names: Collection[str], columns: Sequence[str], what: str) -> None:
    for name in names:
        if name not in columns:
            raise DpreproError(
                f"{what} {name!r}, which is not a column of the table"
                f"{nearest(name, list(columns)) or '.'} The columns are: {', '.join(columns)}"
            )


def _feature(
    column: pa.ChunkedArray, name: str, card: Card, marks: Marks
) -> np.ndarray | pd.Categorical:
    feature = (card.features or {}).get(name)
    fill = card.fill.get(name)
    if feature is None:
        values = _inferred(column, name, marks)
    elif feature.categories is None:
        values = read_numbers(column, name, marks, marks.spelling, feature.date)
    else:
        values = read_categories(column, name, feature.categories, marks, feature.category_of)
    if fill is None:
        return values
    if isinstance(values, pd.Categorical):
        if fill not in values.categories:
            raise DpreproError(f"`fill` of {name!r}: {fill!r} is not one of its categories")
        codes = np.where(values.codes < 0, list(values.categories).index(fill), values.codes)
        return pd.Categorical.from_codes(codes, dtype=values.dtype)
    try:
        return np.where(np.isnan(values), float(fill), values)
    except ValueError as error:
        raise DpreproError(
            f"`fill` of numeric column {name!r}: {fill!r} is not a number"
        ) from error


def _inferred(column: pa.ChunkedArray, name: str, marks: Marks) -> np.ndarray | pd.Categorical:
    """Return numbers if a column holds nothing else, else categories that are the texts it holds.

    So a Boolean, a date or a time is the text that it was in the file.
    """
    if holds(column.type) == "numbers":
        return read_numbers(column, name, marks)
    if holds(column.type) == "text":
        try:
            numbers = read_numbers(column, name, marks, marks.spelling)
        except NotNumericError:
            pass
        else:
            if not np.isnan(numbers).all():
                return numbers
    return read_categories(column, name, None, marks)
