"""An additive model as numbers by text and cut: what every export writes down."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.additive.bins import OTHER, FeatureBins
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor
from dprepro.additive.texts import ignores_blanks, missing_texts
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.domain import CategoricalFeature
from dprepro.errors import DpreproError


@dataclass(frozen=True)
class NumericTerm:
    """The function of a numeric feature: ``values[number of cuts <= x]``, C + 1 of them.

    `missing` is its value where x is missing or, stored as text, one of `missing_texts`. All in log
    odds or in the unit of the target.
    """

    name: str
    cuts: tuple[float, ...]
    values: tuple[float, ...]
    missing: float
    missing_texts: tuple[str, ...]


@dataclass(frozen=True)
class CategoricalTerm:
    """The function of a categorical feature: a value for each category.

    `missing` is its value where x is missing or one of `missing_texts`, `other` that of any other
    text. With `ignores_blanks`, blanks around a text are no part of it.
    """

    name: str
    values: dict[str, float]
    missing: float
    other: float
    missing_texts: tuple[str, ...]
    ignores_blanks: bool


@dataclass(frozen=True)
class PlainModel:
    """A model: the intercept, and one term for each feature. Their sum is the score.

    Classification: `labels` are the names of both classes; the score is the log odds of the second.
    Regression: `labels` is None; the score is the prediction, clipped to `limits` if there are any.
    """

    intercept: float
    terms: tuple[NumericTerm | CategoricalTerm, ...]
    labels: tuple[str, str] | None
    limits: tuple[float, float] | None

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [term.name for term in self.terms]


def plain(model: AdditiveModel, missing: Collection[str] = MISSING_TEXTS) -> PlainModel:
    """Return a fitted model as numbers; `missing` are texts that stand for a missing value."""
    labels = model.class_names if isinstance(model, AdditiveClassifier) else None
    limits = model.range_ if isinstance(model, AdditiveRegressor) else None
    terms = tuple(
        _term(bins, values, missing)
        for bins, values in zip(model.bins_, model.shape_functions_, strict=True)
    )
    return PlainModel(float(model.intercept_), terms, labels, limits)


def _term(
    bins: FeatureBins, values: np.ndarray, missing: Collection[str]
) -> NumericTerm | CategoricalTerm:
    feature, name = bins.feature, str(bins.feature.name)
    # The last value is that of bin -1, which stands for no bin.
    with_none = np.append(values, 0.0).tolist()
    absent = with_none[bins.missing_bin]
    if not isinstance(feature, CategoricalFeature):
        cuts = bins.cuts.tolist()
        values_of_bins = tuple(with_none[: len(cuts) + 1])
        return NumericTerm(name, tuple(cuts), values_of_bins, absent, tuple(missing))
    return CategoricalTerm(
        name,
        {c: with_none[b] for c, b in zip(feature.categories, bins.groups, strict=True)},
        absent,
        with_none[bins.labels.index(OTHER) if OTHER in bins.labels else -1],
        missing_texts(feature, missing),
        ignores_blanks(feature),
    )


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """Return a name that no feature has, but for its case: `wanted`, with as many _ as it takes."""
    used = {name.casefold() for name in taken}
    while wanted.casefold() in used:
        wanted += "_"
    return wanted


def _steers(character: str) -> bool:
    """Whether a character is a control, a line break or one that changes how others are shown."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def refuse_unwritable(texts: Collection[str], where: str, refused: str, why: str) -> None:
    """Raise `DpreproError` if a name, category or label holds one of the characters `refused`."""
    for text in texts:
        if found := next((c for c in text if c in refused or _steers(c)), None):
            raise DpreproError(
                f"{text[:40]!a} cannot be written as {where}: it holds {found!a}, {why}. Rename it "
                "in the data, and fit again"
            )
