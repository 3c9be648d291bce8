"""Boolean columns made from a domain alone, for learners of rules and Boolean trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dprepro.data.domain import (
    CategoricalFeature,
    Domain,
    NumericFeature,
    category_codes,
    numbers_of,
)

if TYPE_CHECKING:
    import pandas as pd

BINS = 10
"""Number of intervals of equal width that the bounds of a numeric feature are divided into."""


class BooleanEncoder:
    """One column for each category, and `BINS` columns for each numeric feature.

    The columns of a numeric feature divide its bounds into intervals of equal width. Values outside
    the bounds are clipped. A missing value or an unseen category is false in all columns of its
    feature. Only the domain determines which columns there are.

    Asadi et al. 2022 count 162 columns for Adult, 80 for Cod-RNA and 117 for Mushroom. Ten
    intervals for each numeric feature give the first two numbers, with public and with observed
    bounds: 6 x 10 + 102 categories (including "?"), and 8 x 10. Mushroom's documentation lists 126
    categories, of which 117 occur. To get 117 one must read the rows, so it needs ``domain:
    observed``. Two literals in the paper's Table 4 cannot come from equal intervals ("age <= 17",
    "capital-gain = 0"); the third, 13 <= education-num <= 14.5, is the ninth of ten.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return uint8 (n, columns) of 0 and 1; columns are labelled (feature, value)."""
        import pandas as pd  # late: `BINS` is asked for without rows

        blocks = [_one_hot(*_codes(X[f.name], f)) for f in self.domain.features]
        columns = [(f.name, value) for f in self.domain.features for value in _values(f)]
        return pd.DataFrame(
            np.column_stack(blocks),
            index=X.index,
            columns=pd.MultiIndex.from_tuples(columns, names=["feature", "value"]),
        )


def _codes(
    column: pd.Series, feature: NumericFeature | CategoricalFeature
) -> tuple[np.ndarray, int]:
    """Return the position of each row's true column, -1 for none, and the number of columns."""
    if isinstance(feature, CategoricalFeature):
        return category_codes(column, feature.categories), len(feature.categories)
    values = numbers_of(column)
    cuts = _edges(feature)[1:-1]
    return np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="right")), BINS


def _one_hot(codes: np.ndarray, columns: int) -> np.ndarray:
    # The last row is all zeros: code -1.
    return np.eye(columns + 1, columns, dtype=np.uint8)[codes]


def _values(feature: NumericFeature | CategoricalFeature) -> list[str]:
    if isinstance(feature, CategoricalFeature):
        return list(feature.categories)
    edges = [f"{edge:.6g}" for edge in _edges(feature)]
    closing = [")"] * (BINS - 1) + ["]"]
    return [
        f"[{low}, {high}{close}"
        for low, high, close in zip(edges[:-1], edges[1:], closing, strict=True)
    ]


def _edges(feature: NumericFeature) -> np.ndarray:
    return np.linspace(feature.lower, feature.upper, BINS + 1)
