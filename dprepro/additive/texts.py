"""How the texts of new rows are read, in predictions and in all exports of a model.

A card's rules for the rows of a fit are the same: blanks around a text are no part of it, and some
texts, the marks, stand for a missing value, unless they are categories themselves. A mark that
reads as a number stands for this number, however it is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dprepro.data.cells import Categories, Marks, distinct, text_of
from dprepro.data.domain import CategoricalFeature


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


def read_categories(
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
