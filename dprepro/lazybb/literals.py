"""Boolean columns, stored so that all of their weighted sums are one sparse product."""

from __future__ import annotations

import numpy as np
from scipy import sparse


class Literals:
    """n rows of d Boolean columns.

    Parameters
    ----------
    X
        Of 0 and 1, any dtype, (n, d).
    """

    def __init__(self, X: np.ndarray) -> None:
        self.rows, self.columns = X.shape
        self._by_column = sparse.csc_array(X, dtype=np.float64)
        self._transposed = self._by_column.T

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return, for each column, the sum of `values` over the rows where it is true.

        `values` is float64 (n,) or (n, k); the result (d,) or (d, k).
        """
        return np.asarray(self._transposed @ values)

    def true_rows(self, column: int) -> np.ndarray:
        """Return the numbers of the rows where a column is true, ascending."""
        bounds = self._by_column.indptr
        return self._by_column.indices[bounds[column] : bounds[column + 1]]
