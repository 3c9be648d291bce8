"""The inputs of the network: rows of norm at most 1, lengthened so that entries are about 1."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import sparse

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.bounded_norm_encoding import UnitRows


class LongRows:
    """Encodes rows as `UnitRows` does, times a whole number: the root of K + 1, rounded down.

    Parameters
    ----------
    domain, knots
        See `UnitRows`.

    Attributes
    ----------
    columns
        How many inputs there are; the constant is the last.
    parts
        K + 1: in how many features, and the constant, a row has entries.
    """

    def __init__(self, domain: Domain, knots: int) -> None:
        self._unit = UnitRows(domain, knots)
        self.columns, self.parts = self._unit.columns, self._unit.parts
        self._factor = math.isqrt(self.parts)

    def encode(self, frame: pd.DataFrame) -> sparse.csr_matrix:
        """Return rows, int64 (n, columns), in units of `bounded_norm_encoding.UNIT`."""
        return self._unit.encode(frame) * self._factor

    def drawn_weights(self, generator: np.random.Generator, width: int) -> np.ndarray:
        """Return random weights of the inputs, float64 (columns, width), to start from.

        What they add up to is linear in each numeric feature, as if there were two knots: where
        there is hardly any signal, rough functions would be worse than straight ones.
        """
        blocks = []
        for feature, columns in zip(self._unit.features, self._unit.widths, strict=True):
            if isinstance(feature, NumericFeature) and columns > 1:
                slopes = generator.normal(size=width)
                blocks.append(np.linspace(-1.0, 1.0, columns)[:, None] * slopes)
            else:
                blocks.append(generator.normal(size=(columns, width)))
        return np.vstack([*blocks, generator.normal(size=width)])
