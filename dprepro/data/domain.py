"""What is public about a table, and what a method therefore may use without spending budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

TaskKind = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True)
class NumericFeature:
    """A number in ``[lower, upper]``; whoever relies on the bounds clips to them.

    `missing` says whether values may be missing (NaN).
    """

    name: str
    lower: float
    upper: float
    missing: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.lower) and np.isfinite(self.upper) and self.lower <= self.upper):
            raise ValueError(
                f"feature {self.name!r}: bounds must be finite with lower <= upper, "
                f"got [{self.lower}, {self.upper}]"
            )


@dataclass(frozen=True)
class CategoricalFeature:
    """One of a fixed list of categories (strings), in the card's order.

    `missing` says whether values may be missing.
    """

    name: str
    categories: tuple[str, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        if len(set(self.categories)) != len(self.categories):
            raise ValueError(f"feature {self.name!r}: categories repeat: {self.categories}")


Feature = NumericFeature | CategoricalFeature


@dataclass(frozen=True)
class Domain:
    """The public domain of a table.

    Parameters
    ----------
    features
        One entry a column of ``X``, in order.
    target
        Regression: the bounds ``(lower, upper)`` of y. Classification: the labels, in the order
        of their codes 0, 1, ...
    observed
        In words, what was read from private rows and not paid for ("bounds of age, hours").
        Empty when the whole domain is public.
    """

    features: tuple[Feature, ...]
    target: tuple[float, float] | tuple[str, ...]
    observed: tuple[str, ...] = ()

    @property
    def is_public(self) -> bool:
        """Whether nothing in the domain was read from private rows."""
        return not self.observed

    @classmethod
    def observe(cls, X: pd.DataFrame, y: np.ndarray, task: TaskKind) -> Domain:
        """Read the domain from rows, as the papers silently did. Every read is named in `observed`.

        Columns of dtype ``category``, string, object or bool are categorical (the categories that
        occur, sorted); all others are numeric (finite minimum and maximum; 0, 0 if there is none).
        """
        features = tuple(_observe_feature(str(name), X[name]) for name in X.columns)
        bounds = [f.name for f in features if isinstance(f, NumericFeature)]
        categories = [f.name for f in features if isinstance(f, CategoricalFeature)]
        reads = []
        if bounds:
            reads.append(f"bounds of {', '.join(bounds)}")
        if categories:
            reads.append(f"categories of {', '.join(categories)}")
        reads.append("which features have missing values")
        target: tuple[float, float] | tuple[str, ...]
        if task == "regression":
            target = (float(np.min(y)), float(np.max(y)))
            reads.append("range of the target")
        else:
            # Which labels exist is part of the question asked, not of the rows.
            target = tuple(str(label) for label in np.unique(y))
        return cls(features, target, tuple(reads))


def is_categorical(column: pd.Series) -> bool:
    """Whether a column holds categories (category, string, object or bool dtype)."""
    return not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(
        column.dtype
    )


def _observe_feature(name: str, column: pd.Series) -> Feature:
    if is_categorical(column):
        return CategoricalFeature(
            name, tuple(sorted(map(str, column.dropna().unique()))), bool(column.isna().any())
        )
    values = column.to_numpy(dtype=float, na_value=np.nan)
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return NumericFeature(name, 0.0, 0.0, missing=True)
    missing = bool(np.isnan(values).any())
    return NumericFeature(name, float(finite.min()), float(finite.max()), missing)


def category_codes(column: pd.Series, categories: Sequence[str]) -> np.ndarray:
    """Return int64 codes of shape (n,): the position in `categories`, -1 for missing or unseen."""
    wanted = pd.Index(list(categories), dtype=object)
    if isinstance(column.dtype, pd.CategoricalDtype):
        # Look up each distinct category once, not each row.
        of_category = wanted.get_indexer(
            pd.Index([str(c) for c in column.cat.categories], dtype=object)
        )
        return np.append(of_category, -1)[column.cat.codes.to_numpy()]
    codes, distinct = pd.factorize(column)
    return np.append(wanted.get_indexer(_as_strings(distinct)), -1)[codes]


def _as_strings(values: Iterable[object]) -> pd.Index:
    return pd.Index([str(value) for value in values], dtype=object)
