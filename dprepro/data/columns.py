"""Columns of Arrow to columns of pandas: by their type and by what is asked, never by their rows.

The type of a column is that of the file's schema. So a value reads the same in any chunk.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

Kind = Literal["numeric", "text", "label"]
"""How a column is read: as float64 with NaN where missing, as categories, or as it is stored."""

Holds = Literal["numbers", "booleans", "text", "nothing", "other", "fields"]
"""What a column holds. "nothing": its type is that of missing values. "fields": those of a CSV have
no type, and are read as whatever is asked."""


def holds(stored: pa.DataType) -> Holds:
    """Return what a column of this type holds; dates, times and nested types are "other"."""
    stored = value_type(stored)
    if pa.types.is_boolean(stored):
        return "booleans"
    if pa.types.is_integer(stored) or pa.types.is_floating(stored) or pa.types.is_decimal(stored):
        return "numbers"
    if pa.types.is_null(stored):
        return "nothing"
    return "text" if _is_text(stored) else "other"


def can_be_read(stored: pa.DataType, kind: Kind) -> bool:
    """Whether a column of this type can be read so. Categories can be anything but nested."""
    found = holds(stored)
    if kind == "numeric":
        return found in ("numbers", "booleans", "nothing")
    return found != "other" or (kind == "text" and pa.types.is_temporal(value_type(stored)))


def read_as(stored: pa.DataType, kind: Kind) -> pa.DataType:
    """Return the type that every chunk of a column is converted to."""
    stored = value_type(stored)
    if kind == "numeric" or (kind == "label" and pa.types.is_decimal(stored)):
        return pa.float64()
    if pa.types.is_float16(stored):
        return pa.float32()
    return pa.string() if _is_text(stored) or pa.types.is_null(stored) else stored


def value_type(stored: pa.DataType) -> pa.DataType:
    """Return the type of the values, also of a dictionary's."""
    return stored.value_type if pa.types.is_dictionary(stored) else stored


def label_dtype(stored: pa.DataType) -> np.dtype:
    """Return the dtype of labels, as `to_pandas` gives them where none is missing."""
    if holds(stored) in ("text", "nothing"):
        return np.dtype(object)
    return np.dtype(read_as(stored, "label").to_pandas_dtype())


def convert(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column of another type. Numbers are rounded to the nearest float64.

    Raises
    ------
    pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError
        If a value has no counterpart. Of a number this is no text, of a text no number.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == wanted:
        return column
    if len({_sort_of(column.type), _sort_of(wanted)} - {"nothing"}) > 1:
        raise pa.ArrowInvalid(f"{column.type} does not become {wanted}")
    if pa.types.is_decimal(column.type):
        # By their digits: Arrow's own conversion multiplies, and misses the nearest float64.
        column = pc.cast(column, pa.string())
    cast = pc.cast(column, wanted, safe=not pa.types.is_float64(wanted))
    if pa.types.is_float64(column.type) and pa.types.is_float32(wanted):
        # Arrow rounds without a word.
        is_kept = pc.or_(pc.equal(cast, column), pc.is_nan(column))
        if not pc.all(is_kept, min_count=0).as_py():
            raise pa.ArrowInvalid(f"{column.type} does not become {wanted}")
    return cast


def _sort_of(stored: pa.DataType) -> Holds:
    found = holds(stored)
    return "numbers" if found == "booleans" else found


def to_pandas(column: pa.ChunkedArray, kind: Kind) -> pd.Series:
    """Return a column of categories or labels as pandas holds it, (n,).

    "text": categories, each a value as it is stored. "label": numbers and booleans as they are
    stored, text as categories.
    """
    if kind == "label" and not pa.types.is_string(column.type):
        return pd.Series(column.to_numpy(), copy=False)
    codes, values = distinct(column)
    return pd.Series(pd.Categorical.from_codes(codes, categories=values))


def distinct(column: pa.ChunkedArray) -> tuple[np.ndarray, pd.Index]:
    """Return the position of each row's value, int (n,), -1 where missing, and the values."""
    if pa.types.is_null(value_type(column.type)):
        return np.full(len(column), -1), pd.Index([], dtype=object)
    if isinstance(column.type, pa.BaseExtensionType):  # such as the intervals of pandas
        codes, values = pd.factorize(column.to_pandas())
        return codes, pd.Index(values)
    if pa.types.is_floating(value_type(column.type)):
        if pa.types.is_dictionary(column.type):
            column = pc.cast(column, column.type.value_type)
        # NaN is no category, and 0.0 and -0.0 are one.
        column = pc.if_else(pc.is_nan(column), None, pc.add(column, pa.scalar(0, column.type)))
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return np.empty(0, np.int64), pd.Index([], dtype=object)
    codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy() for chunk in column.chunks])
    dictionary = column.chunk(column.num_chunks - 1).dictionary
    if dictionary.null_count or (pa.types.is_string(dictionary.type) and _repeats(dictionary)):
        # Arrow allows both in a dictionary that somebody else wrote.
        return distinct(pc.cast(column, column.type.value_type))
    return codes, pd.Index(dictionary.to_pandas())


def _repeats(dictionary: pa.Array) -> bool:
    return bool(pc.count_distinct(dictionary).as_py() < len(dictionary))


def _is_text(stored: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(stored) for is_kind in kinds)
