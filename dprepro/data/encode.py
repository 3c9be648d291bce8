"""Encodings of a table. They depend on its domain alone, so they read nothing from other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from dprepro.data.domain import (
    BINS,
    CategoricalFeature,
    Domain,
    NumericFeature,
    category_codes,
    numbers_of,
)

if TYPE_CHECKING:
    import pandas as pd


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


_BLOCK = 4096


class Encoder(Protocol):
    """Turns rows into the input of an estimator. It has no state besides the domain."""

    def transform(self, X: pd.DataFrame) -> Any:
        """Return the encoded X, one row for each row."""


class FrameEncoder:
    """The DataFrame as it is, for estimators that make their own bins."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return X."""
        return X


class OneHotEncoder:
    """Numeric features unchanged, categories as indicator columns, as with default settings.

    Missing and unseen categories are all zeros.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return float64 (n, columns), C-ordered.

        Raises ValueError if a numeric value is missing; the message names the feature.
        """
        return np.column_stack([self._encode(X[f.name], f) for f in self.domain.features])

    def _encode(
        self, column: pd.Series, feature: NumericFeature | CategoricalFeature
    ) -> np.ndarray:
        if isinstance(feature, CategoricalFeature):
            return _indicators(column, feature)
        values = numbers_of(column)
        if np.isnan(values).any():
            raise ValueError(
                f"feature {feature.name!r} has missing values, which this method cannot take: "
                "fill them in by the card's cleaning, or choose another method"
            )
        return values[:, None]


def one_hot_bounds(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper bound of each column of `OneHotEncoder`, float64 (columns,)."""
    pairs: list[tuple[float, float]] = []
    for feature in domain.features:
        if isinstance(feature, CategoricalFeature):
            pairs += [(0.0, 1.0)] * len(feature.categories)
        else:
            pairs.append((feature.lower, feature.upper))
    lower, upper = np.array(pairs).T
    return lower, upper


class _ScaledEncoder(OneHotEncoder):
    """One-hot categories, numeric features scaled to [0, 1]; missing values are the midpoint."""

    def _encode(
        self, column: pd.Series, feature: NumericFeature | CategoricalFeature
    ) -> np.ndarray:
        if isinstance(feature, CategoricalFeature):
            return _indicators(column, feature)
        return _scaled(column, feature, 0.0)


class UnitNormEncoder(_ScaledEncoder):
    """One-hot categories, numeric features scaled to [0, 1], a constant 1; norm at most 1.

    A row of K features and the constant has norm at most sqrt(K + 1), whatever its values, and is
    divided by that. Values outside the bounds are clipped; missing ones become the midpoint.
    """

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return float64 (n, columns + 1); every row has norm at most 1."""
        encoded = super().transform(X)
        with_constant = np.column_stack([encoded, np.ones(len(X))])
        return with_constant / np.sqrt(len(self.domain.features) + 1)


class UnitIntervalEncoder(_ScaledEncoder):
    """Every column in [0, 1] as float32: numeric features scaled, indicators 0 or 1.

    Values outside the bounds are clipped; missing ones become the midpoint. Images are converted in
    blocks of rows, so that they are never in memory as float64 as a whole.
    """

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return float32 (n, columns), C-ordered."""
        features = self.domain.features
        numbers = [f for f in features if isinstance(f, NumericFeature)]
        if len(numbers) < len(features):
            return super().transform(X).astype(np.float32)
        lower = np.array([f.lower for f in numbers])
        width = np.array([f.upper for f in numbers]) - lower
        says_something = width > 0
        width[~says_something] = 1.0
        values = X[[f.name for f in numbers]].to_numpy()
        encoded = np.empty(values.shape, dtype=np.float32)
        for start in range(0, len(values), _BLOCK):
            rows = slice(start, start + _BLOCK)
            share = np.clip((values[rows] - lower) / width, 0.0, 1.0)
            encoded[rows] = np.where(np.isnan(share), 0.5, share) * says_something
        return encoded


class SymmetricEncoder(OneHotEncoder):
    """Every column in [-1, 1]: numeric features scaled, indicators -1 or 1, a constant 1.

    Values outside the bounds are clipped; missing ones become the midpoint 0. A missing or unseen
    category is -1 in all its columns.
    """

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return float64 (n, columns + 1) within [-1, 1]."""
        return np.column_stack([super().transform(X), np.ones(len(X))])

    def _encode(
        self, column: pd.Series, feature: NumericFeature | CategoricalFeature
    ) -> np.ndarray:
        if isinstance(feature, CategoricalFeature):
            return 2 * _indicators(column, feature) - 1
        return _scaled(column, feature, -1.0)


class CategoryEncoder:
    """The DataFrame with pandas' category dtype, for models that take categories directly.

    The categories are those of the domain, in its order; missing and unseen ones become NaN.
    Columns are named by their position, since some models refuse some names.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return a DataFrame (n, K) of float64 and category columns, called "x0", "x1", ..."""
        columns = (self._encode(X[f.name], f) for f in self.domain.features)
        return pd.DataFrame({f"x{k}": column for k, column in enumerate(columns)})

    def _encode(
        self, column: pd.Series, feature: NumericFeature | CategoricalFeature
    ) -> np.ndarray | pd.api.extensions.ExtensionArray:
        if isinstance(feature, NumericFeature):
            return numbers_of(column)
        codes = category_codes(column, feature.categories)
        return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(list(feature.categories)))


class IndicatorEncoder:
    """Numeric features unchanged, each category as a feature with the categories "0" and "1".

    `domain` is that of the result. Missing and unseen categories are "0" in all columns.
    """

    def __init__(self, domain: Domain) -> None:
        self._given = domain
        self.domain = replace(domain, features=tuple(f for _, f, _ in self._columns()))

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return a DataFrame (n, columns) of the numeric columns of X and of indicators."""
        columns: dict[str, Any] = {}
        for name, feature, category in self._columns():
            if isinstance(feature, CategoricalFeature):
                codes = category_codes(X[name], (category,)) + 1
                columns[feature.name] = pd.Categorical.from_codes(
                    codes, dtype=pd.CategoricalDtype(list(feature.categories))
                )
            else:
                columns[feature.name] = X[name].array
        return pd.DataFrame(columns, index=X.index)

    def _columns(self) -> Iterator[tuple[str, NumericFeature | CategoricalFeature, str]]:
        """Yield (given feature, new feature, category or "" if numeric) of each column."""
        for feature in self._given.features:
            if isinstance(feature, NumericFeature):
                yield feature.name, feature, ""
                continue
            for category in feature.categories:
                made = CategoricalFeature(f"{feature.name} = {category}", ("0", "1"))
                yield feature.name, made, category


def _indicators(column: pd.Series, feature: CategoricalFeature) -> np.ndarray:
    # The last row of the identity is all zeros: code -1, missing or unseen.
    rows = np.eye(len(feature.categories) + 1, len(feature.categories))
    return rows[category_codes(column, feature.categories)]


def _scaled(column: pd.Series, feature: NumericFeature, lowest: float) -> np.ndarray:
    """Return a column (n, 1) with the bounds mapped to [lowest, 1] and outliers clipped.

    Missing values become the midpoint. A feature whose bounds are equal becomes 0.
    """
    values = numbers_of(column)
    width = feature.upper - feature.lower
    if width == 0:
        return np.zeros((len(values), 1))
    share = np.clip((values - feature.lower) / width, 0.0, 1.0)
    return (lowest + (1.0 - lowest) * np.where(np.isnan(share), 0.5, share))[:, None]


ENCODINGS: Mapping[str, Callable[[Domain], Encoder]] = MappingProxyType(
    {
        "frame": FrameEncoder,
        "boolean": BooleanEncoder,
        "category": CategoryEncoder,
        "one-hot": OneHotEncoder,
        "indicators": IndicatorEncoder,
        "unit-interval": UnitIntervalEncoder,
        "unit-norm": UnitNormEncoder,
        "symmetric": SymmetricEncoder,
    }
)
"""The values that a method can have as its `encoding`."""
