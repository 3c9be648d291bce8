"""Representations of a table, made from its domain alone: they add no reads of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature, category_codes


class Encoder(Protocol):
    """Turns rows into what an estimator takes. Stateless: fitting is reading the domain."""

    def transform(self, X: pd.DataFrame) -> Any:
        """Return the representation of X, a row each."""
        ...


class FrameEncoder:
    """The DataFrame as it is, for estimators that bin for themselves."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return X."""
        return X


class OneHotEncoder:
    """Numbers as they are, categories as indicator columns: what "default settings" feed a model.

    Missing and unseen categories are all zeros.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return float64 (n, columns), C-ordered.

        Raises
        ------
        ValueError
            On a missing number; the message names the feature.
        """
        return np.column_stack([self._encode(X[f.name], f) for f in self.domain.features])

    def _encode(
        self, column: pd.Series, feature: NumericFeature | CategoricalFeature
    ) -> np.ndarray:
        if isinstance(feature, CategoricalFeature):
            return _indicators(column, feature)
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isnan(values).any():
            raise ValueError(
                f"feature {feature.name!r} has missing values, which this method cannot take: "
                "fill them in by the card's cleaning, or choose another method"
            )
        return values[:, None]


class UnitNormEncoder(OneHotEncoder):
    """One-hot categories, numbers scaled to [0, 1] by their bounds, a constant 1, norm at most 1.

    A row of K features and the constant has norm at most sqrt(K + 1), whatever its values; all are
    divided by that. Numbers outside their bounds are clipped, missing ones become the midpoint.
    """

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return float64 (n, columns + 1); every row has norm at most 1."""
        encoded = super().transform(X)
        with_constant = np.column_stack([encoded, np.ones(len(X))])
        return with_constant / np.sqrt(len(self.domain.features) + 1)

    def _encode(
        self, column: pd.Series, feature: NumericFeature | CategoricalFeature
    ) -> np.ndarray:
        if isinstance(feature, CategoricalFeature):
            return _indicators(column, feature)
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        width = feature.upper - feature.lower
        if width == 0:
            return np.zeros((len(values), 1))
        scaled = np.clip((values - feature.lower) / width, 0.0, 1.0)
        return np.where(np.isnan(scaled), 0.5, scaled)[:, None]


def _indicators(column: pd.Series, feature: CategoricalFeature) -> np.ndarray:
    # The last row of the identity is all zeros: code -1, missing or unseen.
    rows = np.eye(len(feature.categories) + 1, len(feature.categories))
    return rows[category_codes(column, feature.categories)]


ENCODINGS: Mapping[str, Callable[[Domain], Encoder]] = MappingProxyType(
    {"frame": FrameEncoder, "one-hot": OneHotEncoder, "unit-norm": UnitNormEncoder}
)
"""What a method can name as its `encoding`."""
