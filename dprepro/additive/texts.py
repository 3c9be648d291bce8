"""How the texts of new rows are read, in predictions and in all exports of a model.

A card's rules for the rows of a fit are the same: blanks around a text are no part of it, and some
texts, the marks, stand for a missing value, unless they are categories themselves. A mark that
reads as a number stands for this number, however it is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from decimal import Decimal
from numbers import Real

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, codes_of_numbers

BLANKS = "".join(
    map(chr, [*range(9, 14), *range(28, 33), 133, 160, 5760, *range(8192, 8203)])
) + "".join(map(chr, [8232, 8233, 8239, 8287, 12288]))
"""The characters that are blanks around a text: those that `str.strip` removes."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number_of(text: str) -> float:
    """Return the number that a text reads as, without blanks around it; NaN if it is no number.

    A number has digits, perhaps a sign, a decimal point with digits behind it, and an exponent.

    Examples
    --------
    >>> [number_of(text) for text in (" -200.0", ".5e1", "1,5", "inf")]
    [-200.0, 5.0, nan, nan]
    """
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def missing_numbers(missing: Collection[str]) -> tuple[float, ...]:
    """Return the numbers that stand for a missing value: those of `missing` that read as one.

    Examples
    --------
    >>> missing_numbers(["", "?", "-200", "99.0"])
    (-200.0, 99.0)
    """
    return tuple(dict.fromkeys(n for n in map(number_of, missing) if math.isfinite(n)))


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


def read_categories(
    column: pd.Series, feature: CategoricalFeature, missing: Collection[str]
) -> pd.Series:
    """Return a column of categories, (n,), with texts as they are compared, NaN where missing.

    What a column stores as numbers stays a number, unless this stands for a missing value.
    """
    distinct = column.cat.categories
    absent = set(missing_texts(feature, missing))
    numbers = set(missing_numbers(tuple(absent)))
    known = codes_of_numbers(feature.categories) if numbers else {}
    strips, is_text = ignores_blanks(feature), pd.api.types.is_string_dtype(distinct)
    if distinct.empty or not (is_text or numbers):
        return column

    def read(value: object) -> object:
        if isinstance(value, str):
            text = value.strip() if strips else value
            if text in feature.categories:
                return text
            return None if text in absent or (numbers and number_of(text) in numbers) else text
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
            return value
        return None if float(value) in numbers and float(value) not in known else value

    values = [read(value) for value in distinct]
    if not is_text:
        return column.cat.remove_categories(
            [old for old, new in zip(distinct, values, strict=True) if new is None]
        )
    codes, kept = pd.factorize(np.array(values, dtype=object))
    found = np.append(codes, -1)[column.cat.codes.to_numpy()]
    read_as = pd.Categorical.from_codes(found, categories=pd.Index(kept, dtype=object))
    return pd.Series(read_as, name=column.name, index=column.index)
