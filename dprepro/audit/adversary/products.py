"""Linear regression by the functional mechanism: noisy sums of products of columns and target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dprepro.audit.adversary.evidence import Answer
from dprepro.audit.adversary.transcript import Event

PRODUCTS = "products"

Rows = tuple[np.ndarray, np.ndarray]
"""Columns float64 (n, k) and targets float64 (n,), both from -1 to 1."""


def answers(
    events: Sequence[Event], worlds: tuple[Rows, Rows], scales: Sequence[float]
) -> list[Answer]:
    """Return the answer of each kind: y'y, X'y, the squares of X'X, and its other products.

    Noisy squares are folded at 0, so no sum of squares may be small for its noise.

    Parameters
    ----------
    worlds
        All rows with the canary, and with what is there instead of it.
    scales
        Of the Laplace noise of each kind, by the ledger.
    """
    present, absent = (_kinds(float(y @ y), X.T @ y, X.T @ X) for X, y in worlds)
    found = []
    for event in events:
        if event.kind != "Products" or event.value is None:
            continue
        square = float(str(event.facts["target_square"]))
        noisy = _kinds(square, np.asarray(event.facts["of_target"]), event.value)
        found += [
            Answer(PRODUCTS, (value - there) / scale, (here - there) / scale, "laplace")
            for value, here, there, scale in zip(noisy, present, absent, scales, strict=True)
        ]
    return found


def _kinds(square: float, products: np.ndarray, gram: np.ndarray) -> list[np.ndarray]:
    return [np.array([square]), products, np.diag(gram), gram[np.triu_indices(len(gram), 1)]]
