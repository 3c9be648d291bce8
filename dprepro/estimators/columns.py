"""What a column of rows may be made of, by its type and name: anything else is refused.

Errors of libraries, without the private values that their texts quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

_NUMBERS = "biuf"
_MISSING = (type(None), type(pd.NA), type(pd.NaT))
_ALLOWED = "Allowed: numbers, booleans, texts and categories"

_LARGEST = 1e150
"""The square of a larger number is none; so it cannot be fitted by linear algebra."""

# Errors of numpy and scikit-learn that quote private values or count rows, and what to say instead.
_QUOTING = {
    "inconsistent numbers of samples": (
        "X and y have inconsistent numbers of samples: y needs one value a row"
    ),
    "This solver needs samples of at least 2 classes": (
        "y must hold samples of at least 2 classes, but it holds one class"
    ),
    "could not convert": "an array must hold numbers, but it holds text: pass a DataFrame",
    "Complex data not supported": "Complex data not supported, only real numbers",
    "Expected 2D array": "Expected 2D array. Reshape your data: rows by features",
    "should be a 1d array": "should be a 1d array, one value a row",
}

# Those that name the fault and nothing of the rows.
_HARMLESS = re.compile(r"Input \S.* contains (NaN|infinity)|Unknown label type: [a-z-]+\. Maybe")


def check_columns(X: Any) -> None:
    """Raise ValueError if a column of X has values that no method reads; what is no table passes.

    Refused are complex numbers, dates and times, bytes, lists and whatever else is no number,
    boolean or text, alone or as a category; also names that repeat, and masked arrays. The message
    names the feature and quotes no value.
    """
    if isinstance(X, pd.DataFrame):
        _check_names(X)
        for k, name in _columns_but(_NUMBERS, X):
            if problem := _problem(X.iloc[:, k]):
                raise ValueError(f"feature {name!r} {problem}. {_ALLOWED}")
    elif not isinstance(X, np.ndarray) or X.dtype.kind != "O" or isinstance(X, np.ma.MaskedArray):
        # An array of objects is turned into numbers, and numpy's error names types and no value.
        check_array("X", X)


def _columns_but(kinds: str, X: pd.DataFrame) -> Iterator[tuple[int, Any]]:
    """Yield position and name of each column but those of NumPy's `kinds`, whose type tells all.

    A table of Boolean columns has hundreds, and pandas takes longer to hand out a column than a
    check of it takes.
    """
    for k, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if not isinstance(dtype, np.dtype) or dtype.kind not in kinds:
            yield k, name


def check_array(name: str, values: Any) -> None:
    """Raise ValueError if an array, or a column, has values that no method reads.

    Parameters
    ----------
    name
        What the message calls it.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} is a masked array, and what it masks would be read: pass {name}.filled(...), "
            "with NaN where a value is missing"
        )
    problem = ""
    if isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        problem = _problem(pd.Series(values))
    elif isinstance(values, np.ndarray) and values.dtype.kind != "O":
        if values.dtype.kind == "c":  # the words that scikit-learn wants
            raise ValueError(f"{name}: Complex data not supported, only real numbers")
        problem = _of_kind(values.dtype)
    elif isinstance(values, np.ndarray):
        problem = _of_types({type(value) for value in values.flat})
    if not problem and isinstance(values, pd.Series | np.ndarray) and values.dtype.kind == "O":
        present = {type(value) for value in np.ravel(np.asarray(values))}.difference(_MISSING)
        if len({issubclass(kind, str) for kind in present}) > 1:
            problem = "must hold values of one type, but mixes texts and others"
    if problem:
        raise ValueError(f"{name} {problem}. {_ALLOWED}")


def _check_names(X: pd.DataFrame) -> None:
    if not X.columns.is_unique:
        name = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"two columns of X have the name {name!r}: rename or drop one of them")


def _problem(column: pd.Series) -> str:
    """Return why nothing reads a column, from its type; of objects from those of its values."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _problem(dtype.categories.to_series())
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if isinstance(dtype, pd.ArrowDtype):
        return _of_arrow(dtype.pyarrow_dtype)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return _of_types(set(map(type, column)))
    if isinstance(dtype, np.dtype):
        return _of_kind(dtype)
    is_read = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
    return "" if is_read else _holds(str(dtype))


def _of_kind(dtype: np.dtype[Any]) -> str:
    return "" if dtype.kind in f"{_NUMBERS}U" else _holds(str(dtype))


def _of_arrow(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _of_arrow(kind.value_type)
    tests = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal,
        pa.types.is_string, pa.types.is_large_string, pa.types.is_null,
    )  # fmt: skip
    return "" if any(test(kind) for test in tests) else _holds(str(kind))


def _of_types(kinds: set[type]) -> str:
    """Return the problem with objects of these types; the type that is named is no value."""
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        if kind in _MISSING or issubclass(kind, (str, bool, np.bool_, Decimal, Real)):
            continue
        return _holds("complex" if issubclass(kind, Complex) else kind.__name__)
    return ""


def _holds(kind: str) -> str:
    return f"holds values of type {kind}, which no method reads: turn them into numbers or texts"


def check_numbers(X: Any) -> None:
    """Raise ValueError if a column of a DataFrame X is not all numbers, finite and not too large.

    For methods that take X as one array. The message names the feature and quotes no value.
    """
    if isinstance(X, pd.DataFrame):
        for k, name in _columns_but("biu", X):
            check_finite(f"feature {name!r}", X.iloc[:, k])


def check_finite(name: str, values: Any) -> np.ndarray:
    """Return values, (n,), as float64; ValueError if one is missing, no number or too large."""
    try:
        numbers = pd.Series(values).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"{name} holds something that is no number: encode texts, see dprepro.data.encode"
        ) from None
    with np.errstate(invalid="ignore"):
        for wrong, what in (
            (np.isnan(numbers), "contains NaN: fill in missing values"),
            (np.isinf(numbers), "contains infinity: replace it"),
            (np.abs(numbers) > _LARGEST, f"has values beyond {_LARGEST:g}: scale it"),
        ):
            if wrong.any():
                raise ValueError(f"{name} {what}")
    return numbers


@contextmanager
def values_withheld(name: str = "X or y") -> Iterator[None]:
    """Let errors of libraries pass without the values, and the numbers of rows, in their texts."""
    try:
        yield
    except ValueError as error:
        raise _without_values(error, name) from None


def _without_values(error: ValueError, name: str) -> ValueError:
    for quoting, plain in _QUOTING.items():
        if quoting in str(error):
            return ValueError(f"{name}: {plain}")
    # A new error, since a journal keeps what this package says itself, and that alone.
    return ValueError(str(error)) if _HARMLESS.match(str(error)) else error
