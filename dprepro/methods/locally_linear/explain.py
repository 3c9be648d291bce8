"""What locally linear maps say about a row, and about a class. Post-processing: costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LocalExplanation:
    """Why rows get the score of a class, by the maps of that class alone.

    Attributes
    ----------
    classes : ndarray (n,)
        The class explained, one a row.
    order : ndarray, int64 (n, M)
        The maps of that class, the heaviest first.
    weights : ndarray, float32 (n, M)
        Their weights s, in that order; they add up to 1.
    filters : ndarray, float32 (n, M, D)
        Their filters, in that order.
    """

    classes: np.ndarray
    order: np.ndarray
    weights: np.ndarray
    filters: np.ndarray

    @property
    def weighted(self) -> np.ndarray:
        """The weighted filter of each row, sum over m of s_m w_m, float32 (n, D)."""
        return np.einsum("nm,nmd->nd", self.weights, self.filters)


@dataclass(frozen=True)
class GlobalExplanation:
    """The maps of every class.

    Attributes
    ----------
    classes : ndarray (K,)
        The labels.
    filters, offsets : ndarray, float32 (K, M, D) and (K, M)
        w and b of eq. (4).
    """

    classes: np.ndarray
    filters: np.ndarray
    offsets: np.ndarray


def explain_rows(
    weights: np.ndarray, codes: np.ndarray, classes: np.ndarray, filters: np.ndarray
) -> LocalExplanation:
    """Sort the maps of one class a row by weight.

    `weights` is s, float32 (n, M, K); `codes` (n,) the class of each row as a position in
    `classes` (K,); `filters` (K, M, D).
    """
    rows = np.arange(len(codes))
    of_class = weights[rows, :, codes]
    order = np.argsort(-of_class, axis=1, kind="stable")
    return LocalExplanation(
        classes=classes[codes],
        order=order,
        weights=np.take_along_axis(of_class, order, axis=1),
        filters=filters[codes[:, None], order],
    )
