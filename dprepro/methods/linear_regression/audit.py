"""Linear regression by the functional mechanism: what is released has a known density.

So the distinguisher is the best there is, the likelihood ratio. It is rounded: the low bits of
floating-point noise tell more than they should, which is a different attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, Encoded, MethodPair, table
from dprepro.audit.likelihood_ratio import Answer, Evidence
from dprepro.audit.pairs import outlier
from dprepro.audit.transcript import WHOLE, Event, transcript_case
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.linear_regression.curator import NoisyProducts, Products

PRODUCTS = "products"

_DECIMALS = 4
# So many squares that folding at 0, which theirs has, never shows.
_CROWD = 500
_MOMENTS_TRIALS = 60_000


def moments(setting: AuditSetting) -> Case:
    """Return the exchange of a row that moves the released moments most: half of epsilon in all.

    Of six answers the sum of squares of the constant stays, and that of the target is dropped.
    """
    domain = Domain((NumericFeature("x", -1.0, 1.0),), (-1.0, 1.0))
    x, y = np.ones(_CROWD), np.resize([-1.0, 1.0], _CROWD)
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, (0.0, -1)))
    return pair.case(
        f"{_CROWD} rows, and one at the upper bounds or at (middle, lowest target)",
        _MomentsRatio(*(_moments(*rows) for rows in pair.encoded)),
        trials=_MOMENTS_TRIALS,
    )


@dataclass(frozen=True)
class _MomentsRatio:
    """Observes the log likelihood ratio of independent Laplace noise around either world's moments.

    Attributes
    ----------
    present, absent : float64 (T,)
        Moments without noise, in the order of `_flat`.
    """

    present: np.ndarray
    absent: np.ndarray

    def __call__(self, model: Any) -> np.ndarray:
        released = _flat(model.products_, model.gram_)
        _, products, squares, pairs = (entry.scale for entry in model.ledger_.entries)
        columns = model.products_.size
        scales = _flat(
            np.full(columns, products), np.where(np.eye(columns, dtype=bool), squares, pairs)
        )
        ratio = (np.abs(released - self.absent) - np.abs(released - self.present)) / scales
        return np.array([ratio.sum().round(_DECIMALS)])


def _moments(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _flat(X.T @ y, X.T @ X)


def _flat(products: np.ndarray, gram: np.ndarray) -> np.ndarray:
    return np.concatenate([products, gram[np.triu_indices(len(gram))]])


# --- all products ---------------------------------------------------------------------------------

_LINE = 500
"""At epsilon 1, and more below: so many rows that no sum of squares is small for its noise."""


def products_seen(setting: AuditSetting) -> Case:
    """Return all noisy products; the row that is exchanged moves the square of the target, too."""
    domain = Domain((NumericFeature("x", -1.0, 1.0),), (-1.0, 1.0))
    rows = math.ceil(_LINE * max(1.0, 1 / setting.epsilon))
    x, y = np.ones(rows), np.resize([-1.0, 1.0], rows)
    tables = [(pd.DataFrame({"x": np.append(x, end)}), np.append(y, end)) for end in (1.0, 0.0)]
    pair = MethodPair(setting, domain, tables[0], tables[1])
    weigh = partial(_weigh, worlds=pair.encoded)
    words = f"{rows} rows, and one at the upper bounds or in the middle; all sums seen"
    return transcript_case(setting, [(pair, weigh)], words, 4)


def _weigh(
    model: Any, events: list[Event], *, worlds: tuple[Encoded, Encoded]
) -> Sequence[Evidence]:
    return answers(events, worlds, [entry.scale for entry in model.ledger_.entries])


# --- adversary: noisy sums of products of columns and target --------------------------------------


def answers(
    events: Sequence[Event], worlds: tuple[Encoded, Encoded], scales: Sequence[float]
) -> list[Answer]:
    """Return the answer of each kind: y'y, X'y, the squares of X'X, and its other products.

    Noisy squares are folded at 0, so no sum of squares may be small for its noise.

    Parameters
    ----------
    worlds
        All rows with the canary, and with what is there instead of it: columns float64 (n, k) and
        targets float64 (n,), both from -1 to 1.
    scales
        Of the Laplace noise of each kind, by the ledger.
    """
    present, absent = (_kinds(float(y @ y), X.T @ y, X.T @ X) for X, y in worlds)
    found = []
    for event in events:
        match event:
            case Products(), NoisyProducts() as answer:
                noisy = _kinds(float(answer.target_square), answer.of_target, answer.value)
            case _:
                continue
        found += [
            Answer(PRODUCTS, (value - there) / scale, (here - there) / scale, "laplace")
            for value, here, there, scale in zip(noisy, present, absent, scales, strict=True)
        ]
    return found


def _kinds(square: float, products: np.ndarray, gram: np.ndarray) -> list[np.ndarray]:
    return [np.array([square]), products, np.diag(gram), gram[np.triu_indices(len(gram), 1)]]


CASES = {"dp-linear-fair": moments, "dp-linear": outlier, f"dp-linear-fair/{WHOLE}": products_seen}
