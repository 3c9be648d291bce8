"""How the texts of new rows are read, in predictions and in all exports of a model.

A card's rules for the rows of a fit are the same: blanks around a text are no part of it, and some
texts stand for a missing value, unless they are categories themselves.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature


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

    What a column stores as numbers stays a number.
    """
    distinct = column.cat.categories
    if distinct.empty or not pd.api.types.is_string_dtype(distinct):
        return column
    strips, absent = ignores_blanks(feature), set(missing_texts(feature, missing))
    texts = [text.strip() if strips else text for text in distinct]
    codes, kept = pd.factorize(
        np.array([None if text in absent else text for text in texts], dtype=object)
    )
    found = np.append(codes, -1)[column.cat.codes.to_numpy()]
    read = pd.Categorical.from_codes(found, categories=pd.Index(kept, dtype=object))
    return pd.Series(read, name=column.name, index=column.index)
