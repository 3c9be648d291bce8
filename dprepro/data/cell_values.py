"""What a cell of a table says: a number, a text, or that there is nothing. One rule for all.

Blanks around a text are no part of it, of whatever kind they are. A mark for a missing value is
compared as a value: the mark ``-200`` stands for -200.0, too, and ``99`` for ``099``. A text that
is a category is no mark. New rows that a model predicts are read by the same rules.

Columns of Arrow become columns of pandas by their type, which is that of the file's schema, and by
what is asked, never by their rows: a value reads the same in any chunk.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dprepro.data.domain import (
    CategoricalFeature,
    code_of_boolean,
    codes_of_numbers,
    date_as_number,
    in_years,
)
from dprepro.runtime.errors import NUMBERS_LOOK, DpreproError

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

    Raises pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError if a value has no counterpart. Of
    a number this is no text, of a text no number.
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


_EXACT = 2.0**53
"""Of whole numbers beyond it several are one float."""

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_PLAIN = re.compile(_NUMBER)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_NOTHING = re.compile(r"[+-]?nan", re.IGNORECASE)


BLANKS = "".join(
    map(chr, [*range(9, 14), *range(28, 33), 133, 160, 5760, *range(8192, 8203)])
) + "".join(map(chr, [8232, 8233, 8239, 8287, 12288]))
"""The characters that are blanks around a text: those that `str.strip` removes."""


class CellError(DpreproError):
    """A column has a cell that its card rules out. `row` is the first such row, from 0."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class NotNumericError(CellError):
    """A column of numbers has a cell that is text."""


@dataclass(frozen=True)
class Spelling:
    """How numbers are written: the mark before decimals, and the one between thousands, if any."""

    decimal: str = "."
    thousands: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and self.thousands is None

    def plain(self, text: str) -> str:
        """Return a number as Python writes it; of any other text what is no number."""
        if self.is_plain:
            return text
        if not re.fullmatch(self.pattern, text):
            return "" if _PLAIN.fullmatch(text) else text
        return text.replace(self.thousands or "", "").replace(self.decimal, ".")

    @property
    def pattern(self) -> str:
        """Return the regular expression of a number."""
        comma = re.escape(self.decimal)
        whole = "[0-9]+"
        if self.thousands is not None:
            whole = f"([0-9]{{1,3}}({re.escape(self.thousands)}[0-9]{{3}})+|[0-9]+)"
        return f"[+-]?({whole}({comma}[0-9]*)?|{comma}[0-9]+)([eE][+-]?[0-9]+)?"


PLAIN = Spelling()


class Marks:
    """The texts that stand for a missing value.

    A text is missing if it is one of them without the blanks around it, or reads as the same number
    as one of them. Whoever asks decides first whether the text is a category.

    Examples
    --------
    >>> marks = Marks(["", "?", "-200"])
    >>> [text for text in ("-200.0", " ?", "0", "-2e2", " ") if marks.have(text)]
    ['-200.0', ' ?', '-2e2', ' ']
    """

    def __init__(self, texts: Collection[str], spelling: Spelling = PLAIN) -> None:
        self.spelling = spelling
        self.texts = frozenset(text.strip() for text in texts)
        read = (number_of(text, spelling) for text in self.texts)
        self.numbers = np.array(sorted({v for v in read if v is not None and math.isfinite(v)}))

    def without(self, names: Collection[str]) -> Marks:
        """Return the marks that are none of these categories."""
        kept = self.texts.difference(names)
        return self if len(kept) == len(self.texts) else Marks(kept, self.spelling)

    def have(self, text: str) -> bool:
        """Whether a text stands for a missing value."""
        text = text.strip()
        if text in self.texts:
            return True
        if not len(self.numbers):
            return False
        number = number_of(text, self.spelling)
        return number is not None and number in self.numbers

    def have_value(self, value: Any) -> bool:
        """Whether a value as it is stored stands for a missing one."""
        if isinstance(value, str):
            return self.have(value)
        number = typed_number(value)
        return number is not None and number in self.numbers

    def where(self, values: np.ndarray) -> np.ndarray:
        """Return which numbers, float64 (n,), stand for a missing value: bool (n,)."""
        found = np.isnan(values)
        for number in self.numbers:
            found |= values == number
        return found


def number_of(text: str, spelling: Spelling = PLAIN) -> float | None:
    """Return the number that a text says; NaN for "nan", infinity for "inf"; None for any other."""
    text = spelling.plain(text.strip())
    if _PLAIN.fullmatch(text):
        return float(text)
    if _NOTHING.fullmatch(text):
        return math.nan
    if _INFINITE.fullmatch(text):
        return float(text)
    return None


def typed_number(value: Any) -> float | None:
    """Return what a number says that is stored as one; None for texts, Booleans, dates."""
    if isinstance(value, bool | np.bool_ | str | bytes | date) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def text_of(value: Any) -> str:
    """Return the text that a value reads as: of the number 1.0 it is "1", as in a text file."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def read_numbers(
    column: pa.ChunkedArray,
    name: str,
    marks: Marks,
    spelling: Spelling = PLAIN,
    date_format: str | None = None,
) -> np.ndarray:
    """Return a column as float64, (n,), NaN where a value is missing.

    Raises CellError if a value is no number, or infinite. The message quotes none.

    Parameters
    ----------
    column
        Numbers, Booleans or texts, or a dictionary of them; dates with a `date_format`.
    name
        What the message calls it.
    date_format
        How dates are written; see `dprepro.data.domain`.
    """
    _refuse_bytes(column, name)
    kind = holds(column.type)
    if date_format is not None:
        values = _read_dates(column, name, marks, date_format)
    elif kind == "text":
        values = _parse(_decoded(column), name, marks, spelling)
    elif kind == "other":
        raise CellError(
            f"column {name!r} is numeric on the card but holds {value_type(column.type)}: say how "
            'a date becomes a number with `date: "%Y-%m-%d"` at the feature, or write numbers to '
            "the file"
        )
    else:
        chunks = [convert(chunk, pa.float64()) for chunk in column.chunks]
        values = pa.chunked_array(chunks, pa.float64()).to_numpy()
    values = np.where(marks.where(values), np.nan, values) if len(marks.numbers) else values
    infinite = np.isinf(values)
    if infinite.any():
        raise CellError(
            f"column {name!r} has infinite values; replace them in the file",
            int(np.argmax(infinite)),
        )
    return values


def _refuse_bytes(column: pa.ChunkedArray, name: str) -> None:
    kind = value_type(column.type)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        raise CellError(
            f"column {name!r} holds bytes, and a value is a number or a text: write it to the file "
            'as text (in pandas: table[NAME].str.decode("utf8"))'
        )


def _not_numeric(name: str, marks: Marks) -> str:
    listed = ", ".join(sorted(filter(None, marks.texts)))
    return (
        f"column {name!r} is to hold numbers, but holds text. Missing is an empty field"
        f"{f', or one of: {listed}' if listed else ''}; if the text stands for a missing value, "
        f"too, list it on the card under `missing`. {NUMBERS_LOOK}"
    )


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = value_type(column.type)
    column = pc.cast(column, kind) if pa.types.is_dictionary(column.type) else column
    return pc.cast(column, pa.string()) if kind != pa.string() else column


def _parse(column: pa.ChunkedArray, name: str, marks: Marks, spelling: Spelling) -> np.ndarray:
    """Return texts as float64 (n,), NaN where a mark stands."""
    if spelling.is_plain:
        try:  # as they stand: most files have nothing else
            values = _floats(pc.cast(column, pa.float64()))
        except pa.ArrowInvalid:
            pass
        else:
            # Arrow treats nan(x) as a number, too: what is none decides below.
            if int(np.count_nonzero(~np.isfinite(values))) == column.null_count:
                return values
    texts = pc.utf8_trim(column, BLANKS)
    listed = pc.is_in(texts, value_set=pa.array(sorted(marks.texts), pa.string()))
    texts = pc.if_else(listed, None, texts)
    if not spelling.is_plain:
        is_number = pc.match_substring_regex(texts, f"^(?:{spelling.pattern})$")
        plain = pc.replace_substring(texts, spelling.thousands or " ", "")
        plain = pc.replace_substring(plain, spelling.decimal, ".")
        # Any other text, 1.5 where commas are decimal commas among them, is no number.
        texts = pc.if_else(is_number, plain, pc.if_else(pc.is_null(texts), None, "no number"))
    is_number = pc.match_substring_regex(texts, rf"(?i)^(?:{_NUMBER}|[+-]?nan|[+-]?inf(inity)?)$")
    wrong = pc.invert(pc.fill_null(is_number, True)).to_numpy()
    if wrong.any():
        raise NotNumericError(_not_numeric(name, marks), int(np.argmax(wrong)))
    return _floats(pc.cast(texts, pa.float64()))


def _floats(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = column.to_numpy()
    return values


def _read_dates(column: pa.ChunkedArray, name: str, marks: Marks, date_format: str) -> np.ndarray:
    codes, found = distinct(column)
    read = []
    for value in found:
        try:
            read.append(_date(value, marks, date_format))
        except ValueError:
            row = int(np.argmax(codes == len(read)))
            raise CellError(
                f"column {name!r} holds a text that is no date as {date_format!r} writes it; "
                "correct the rows or `date` on the card, or list the text under `missing` if it "
                "stands for a missing value",
                row,
            ) from None
    return np.append(np.array(read, dtype=np.float64), np.nan)[codes]


def _date(value: Any, marks: Marks, date_format: str) -> float:
    if isinstance(value, datetime):
        return in_years(value)
    if isinstance(value, date):
        return in_years(datetime(value.year, value.month, value.day))
    if marks.have_value(value):
        return math.nan
    return date_as_number(text_of(value), date_format)


class Categories:
    """Which category a value is: found by its text, or by the number that it is stored as.

    Parameters
    ----------
    names
        All categories.
    marks
        What stands for a missing value, where it is no category.
    relabelled
        The category of texts that are none.
    """

    def __init__(
        self, names: Sequence[str], marks: Marks, relabelled: Mapping[str, str] | None = None
    ) -> None:
        self._position = {name: code for code, name in enumerate(names)}
        relabelled = {text.strip(): name for text, name in (relabelled or {}).items()}
        self._position |= {text: self._position[name] for text, name in relabelled.items()}
        listed = [*names, *relabelled]
        self._by_number = {
            number: self._position[listed[k]] for number, k in codes_of_numbers(listed).items()
        }
        self._by_boolean = {value: code_of_boolean(value, listed) for value in (False, True)}
        self._listed = listed
        self.marks = marks.without(listed)

    def code_of(self, value: Any) -> int | None:
        """Return the position of a value's category; -1 if it is missing, None if it has none."""
        if isinstance(value, bool | np.bool_):
            k = self._by_boolean[bool(value)]
            return None if k < 0 else self._position[self._listed[k]]
        number = typed_number(value)
        code = None
        if number is not None and abs(number) < _EXACT:
            code = self._by_number.get(number)
        if code is None:  # also of whole numbers of which several are one float
            code = self._position.get(text_of(value))
        return -1 if code is None and self.marks.have_value(value) else code


def read_categories(
    column: pa.ChunkedArray,
    name: str,
    names: Sequence[str] | None,
    marks: Marks,
    relabelled: Mapping[str, str] | None = None,
    called: str = "categories",
) -> pd.Categorical:
    """Return a column as categories, (n,), of texts.

    Raises CellError if a value is none of them. The message quotes none.

    Parameters
    ----------
    name
        What the message calls it.
    names
        All categories; None: those that occur, sorted.
    called
        What the card calls them.
    """
    _refuse_bytes(column, name)
    codes, values = distinct(column)
    if names is None:
        names = sorted({text_of(value) for value in values if not marks.have_value(value)})
    find = Categories(names, marks, relabelled)
    found = [find.code_of(value) for value in values]
    if None in found:
        unknown = np.array([code is None for code in found] + [False])
        raise CellError(
            f"column {name!r} holds a value that is not among the card's {called}. "
            f"Allowed: {', '.join(names)}. Look in the codebook for what is missing from "
            "this list, and add it to the card: a list made from the rows is not public",
            int(np.argmax(unknown[codes])),
        )
    of_value = np.array([*found, -1], dtype=np.int64)
    dtype: pd.CategoricalDtype = pd.CategoricalDtype(list(names))
    return pd.Categorical.from_codes(of_value[codes], dtype=dtype)


def missing_numbers(missing: Collection[str]) -> tuple[float, ...]:
    """Return the numbers that stand for a missing value: those of `missing` that read as one.

    Examples
    --------
    >>> missing_numbers(["", "?", "99.0", "-200"])
    (-200.0, 99.0)
    """
    return tuple(Marks(missing).numbers.tolist())


def missing_texts(feature: CategoricalFeature, missing: Collection[str]) -> tuple[str, ...]:
    """Return which of the texts in `missing` stand for a missing value: those that are no category.

    Examples
    --------
    >>> missing_texts(CategoricalFeature("job", ("clerk", "?")), ["", "?", "NA"])
    ('', 'NA')
    """
    return tuple(text for text in missing if text not in feature.categories)


def ignores_blanks(feature: CategoricalFeature) -> bool:
    """Whether blanks around a text are no part of it: a category that has some makes them count."""
    return all(category == category.strip() for category in feature.categories)


def read_as_categories(
    column: pa.ChunkedArray,
    feature: CategoricalFeature,
    marks: Marks,
    relabelled: Mapping[str, str] | None = None,
) -> pd.Categorical:
    """Return a column as the categories of a feature, (n,), NaN where a value is missing.

    A value that is none of them stays what it is, as text: it has a category of its own.

    Parameters
    ----------
    relabelled
        The category of texts that are none, as a card says.
    """
    codes, values = distinct(column)
    known = Categories(feature.categories, marks, relabelled)
    strips = ignores_blanks(feature)
    said = [_said(value, feature, known, strips) for value in values]
    of_value, kept = pd.factorize(np.array(said, dtype=object))
    found = np.append(of_value, -1)[codes]
    return pd.Categorical.from_codes(found, categories=pd.Index(kept, dtype=object))


def _said(value: Any, feature: CategoricalFeature, known: Categories, strips: bool) -> str | None:
    if not strips and isinstance(value, str):
        if value in feature.categories:
            return value
        return None if known.marks.have(value) else value
    code = known.code_of(value)
    if code is None:
        return text_of(value)
    return None if code < 0 else feature.categories[code]
