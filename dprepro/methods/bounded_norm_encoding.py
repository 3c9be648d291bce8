"""Rows of norm at most 1 in whole numbers, made of a public domain alone: for linear models.

A numeric feature is a straight line or a piecewise linear function: at `knots` places of equal
distance between its bounds it has one column each, and a value between two places has a part in
both, the larger the nearer (a linear B-spline). A categorical feature has one column for each
category. The last column is a constant.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import sparse

from dprepro.data.domain import CategoricalFeature, Domain, Feature, category_codes, numbers_of

BITS = 14
UNIT = 2.0**-BITS
"""Of the entries of a row, which has a norm of at most 1: 2^14 of them."""


class UnitRows:
    """Encodes rows; it has no state besides the domain.

    With K features that have columns, each of them adds at most m^2 to the square of a row's norm,
    and so does the constant, where m is the largest whole number with (K + 1) m^2 <= 2^(2 BITS).
    The two parts of a value between knots are not negative and add up to m, so their squares add up
    to no more. All of it is arithmetic of whole numbers, so the norm is at most 1 exactly.

    Parameters
    ----------
    domain
        Features whose bounds coincide have no columns.
    knots
        Of a numeric feature, at least 2. With 2 it has a single column, from -m to m.

    Attributes
    ----------
    features, widths
        Those that have columns, in order, and how many each has.
    columns
        How many there are; the constant is the last.
    largest
        m: the constant of every row, and the largest entry.
    parts
        K + 1.
    """

    def __init__(self, domain: Domain, knots: int) -> None:
        self.features = [feature for feature in domain.features if _says_something(feature)]
        self._knots = knots
        self.widths = [self._width(feature) for feature in self.features]
        self.columns = sum(self.widths) + 1
        self.parts = len(self.features) + 1
        self.largest = math.isqrt(2 ** (2 * BITS) // self.parts)

    def encode(self, frame: pd.DataFrame) -> sparse.csr_matrix:
        """Return rows, int64 (n, columns), in units of `UNIT`.

        Values outside the bounds are clipped. A missing value and an unseen category add nothing.
        """
        rows = len(frame)
        where, entries, first = [], [], 0
        # By position: the columns of an array have no names.
        for (_, column), feature, width in zip(
            frame.items(), self.features, self.widths, strict=True
        ):
            places, parts = self._parts(column, feature)
            where.append(first + places)
            entries.append(parts)
            first += width
        where.append(np.full((rows, 1), first))
        entries.append(np.full((rows, 1), self.largest))
        indices, data = np.hstack(where), np.hstack(entries).astype(np.int64)
        starts = np.arange(rows + 1) * indices.shape[1]
        return sparse.csr_matrix(
            (data.ravel(), indices.ravel().astype(np.int32), starts), (rows, self.columns)
        )

    def scores(self, frame: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
        """Return the products of rows and weights, float64 (n,); weights are float64 (columns,)."""
        return np.asarray(self.encode(frame) @ weights) * UNIT

    def _width(self, feature: Feature) -> int:
        if isinstance(feature, CategoricalFeature):
            return len(feature.categories)
        return self._knots if self._knots > 2 else 1

    def _parts(self, column: pd.Series, feature: Feature) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of a feature in which a row has a part, and the parts, (n, 1 or 2)."""
        if isinstance(feature, CategoricalFeature):
            codes = category_codes(column, feature.categories)
            return np.maximum(codes, 0)[:, None], np.where(codes < 0, 0, self.largest)[:, None]
        values = numbers_of(column)
        missing = np.isnan(values)
        share = (np.where(missing, feature.lower, values) - feature.lower) / (
            feature.upper - feature.lower
        )
        share = np.clip(share, 0.0, 1.0)
        if self._knots == 2:
            line = np.trunc(self.largest * (2 * share - 1)).astype(np.int64)
            return np.zeros((len(values), 1), int), np.where(missing, 0, line)[:, None]
        place = share * (self._knots - 1)
        left = np.minimum(place.astype(np.int64), self._knots - 2)
        right = np.rint(self.largest * (place - left)).astype(np.int64)
        parts = np.stack([self.largest - right, right], axis=1)
        return np.stack([left, left + 1], axis=1), np.where(missing[:, None], 0, parts)


def _says_something(feature: Feature) -> bool:
    return isinstance(feature, CategoricalFeature) or feature.lower < feature.upper
