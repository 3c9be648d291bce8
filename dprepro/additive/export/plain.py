"""An additive model as numbers by text and cut, as every export writes it down; and as Python."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.additive.bins import OTHER, FeatureBins, PairTerm
from dprepro.additive.export import predictor
from dprepro.additive.file import model_to_json
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.cell_values import ignores_blanks, missing_numbers, missing_texts
from dprepro.data.domain import CategoricalFeature, code_of_boolean, codes_of_numbers
from dprepro.runtime.errors import DpreproError

UNKNOWN = (
    "", "missing", "unknown category", "below its bounds", "above its bounds",
    "infinite", "not a number", "a date or time", "bytes",
)  # fmt: skip
"""What can be unknown of a value, in the words of notes; of the first, nothing. Exports that cannot
refuse a row as `dprepro predict` does note the others, from `FIRST_REFUSED` on."""

FIRST_REFUSED = 5


@dataclass(frozen=True)
class NumericTerm:
    """The function of a numeric feature: ``values[number of cuts <= x]``, C + 1 of them.

    `missing` is its value where x is missing, one of `missing_numbers` or, stored as text, one of
    `missing_texts`; with `notes_missing` this is unknown to the model. So is a number outside of
    `bounds`. All in log odds or in the unit of the target.
    """

    name: str
    cuts: tuple[float, ...]
    values: tuple[float, ...]
    missing: float
    missing_texts: tuple[str, ...]
    bounds: tuple[float, float]
    notes_missing: bool
    missing_numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class CategoricalTerm:
    """The function of a categorical feature: a value for each category.

    `missing` is its value where x is missing or one of `missing_texts`, `other` that of any other
    text. With `ignores_blanks`, blanks around a text are no part of it, and never of a text that
    stands for a missing value. `numbers` are the positions of the categories that stored numbers
    are, and `booleans` those of false and true; -1 stands for a missing value among numbers, and
    for no category among Booleans. A text that is no category, and reads as one of
    `missing_numbers`, is missing.
    """

    name: str
    categories: tuple[str, ...]
    values: tuple[float, ...]
    missing: float
    other: float
    missing_texts: tuple[str, ...]
    ignores_blanks: bool
    numbers: dict[float, int]
    booleans: tuple[int, int]
    notes_missing: bool
    missing_numbers: tuple[float, ...] = ()


NO_CELL = -(2.0**20)
"""Added to a `PairTerms` sum where a feature has no bin: the sum is then no number of a cell."""


@dataclass(frozen=True)
class PairTerms:
    """A function of two features: ``values[first + second]``, or 0 where that sum is negative.

    `first` and `second` are terms as those of single features: whole numbers that add up to that of
    a cell, and `NO_CELL` where there is none.
    """

    first: NumericTerm | CategoricalTerm
    second: NumericTerm | CategoricalTerm
    values: tuple[float, ...]


@dataclass(frozen=True)
class PlainModel:
    """A model: the intercept, one term for each feature, and pairs. Their sum is the score.

    Classification: `labels` are the names of both classes; the score is the log odds of the second.
    Regression: `labels` is None; the score is the prediction, clipped to `limits` if there are any.
    With `log_link` the score is its logarithm, and there are limits.
    """

    intercept: float
    terms: tuple[NumericTerm | CategoricalTerm, ...]
    labels: tuple[str, str] | None
    limits: tuple[float, float] | None
    pairs: tuple[PairTerms, ...] = ()
    log_link: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [term.name for term in self.terms]


def plain(model: AdditiveModel, missing: Collection[str] = MISSING_TEXTS) -> PlainModel:
    """Return a fitted model as numbers; `missing` are texts that stand for a missing value.

    Raises DpreproError for a model of several classes.
    """
    model.require_one_score("a sum of one number for each feature")
    labels = None
    if isinstance(model, AdditiveClassifier):
        negative, positive = model.class_names
        labels = negative, positive
    limits = model.range_ if isinstance(model, AdditiveRegressor) else None
    terms = tuple(
        term_of(bins, values, missing)
        for bins, values in zip(model.bins_, model.shape_functions_, strict=True)
    )
    pairs = tuple(_pair(model, term, missing) for term in model.pairs_)
    return PlainModel(
        float(model.intercept_), terms, labels, limits, pairs, log_link=model.has_log_link
    )


def plain_of_classes(
    model: AdditiveModel, missing: Collection[str] = MISSING_TEXTS
) -> list[PlainModel]:
    """Return a model of several classes as numbers: one of sums for each class; see `plain`."""
    return [
        PlainModel(
            float(intercept),
            tuple(
                term_of(bins, values[:, s], missing)
                for bins, values in zip(model.bins_, model.shape_functions_, strict=True)
            ),
            labels=None,
            limits=None,
        )
        for s, intercept in enumerate(model.intercept_)
    ]


def _pair(model: AdditiveModel, term: PairTerm, missing: Collection[str]) -> PairTerms:
    pair, width = term.pair, term.pair.shape[1]
    first, second = (
        term_of(model.bins_[k], groups.astype(float), missing, NO_CELL)
        for k, groups in (
            (pair.first, width * pair.first_groups.astype(int)),
            (pair.second, pair.second_groups),
        )
    )
    return PairTerms(first, second, tuple(term.values.ravel().tolist()))


def term_of(
    bins: FeatureBins, values: np.ndarray, missing: Collection[str], none: float = 0.0
) -> NumericTerm | CategoricalTerm:
    """Return a feature whose bins have `values`, (B,), and values without a bin `none`."""
    feature, name = bins.feature, str(bins.feature.name)
    # The last value is that of bin -1, which stands for no bin.
    with_none = np.append(values, none).tolist()
    absent, is_noted = with_none[bins.missing_bin], bins.missing_bin < 0
    if not isinstance(feature, CategoricalFeature):
        cuts = bins.cuts.tolist()
        values_of_bins = tuple(with_none[: len(cuts) + 1])
        marks, bounds = tuple(missing), (float(feature.lower), float(feature.upper))
        numbers = missing_numbers(marks)
        return NumericTerm(
            name, tuple(cuts), values_of_bins, absent, marks, bounds, is_noted, numbers
        )
    categories, marks = feature.categories, missing_texts(feature, missing)
    return CategoricalTerm(
        name,
        categories,
        tuple(with_none[b] for b in bins.groups),
        absent,
        with_none[bins.labels.index(OTHER) if OTHER in bins.labels else -1],
        marks,
        ignores_blanks(feature),
        {**dict.fromkeys(missing_numbers(marks), -1), **codes_of_numbers(categories)},
        (code_of_boolean(False, categories), code_of_boolean(True, categories)),
        is_noted,
        missing_numbers(marks),
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


_OF_MODEL = ("task", "classes", "target", "labels", "range", "link", "units", "intercept")
_OF_FEATURE = (
    "name", "measured_in", "kind", "lower", "upper", "cuts", "categories", "groups", "labels",
    "missing_bin", "values",
)  # fmt: skip
_OF_PAIR = ("first", "second", "first_groups", "second_groups", "values")


def to_python(model: AdditiveModel) -> str:
    """Return the text of a module: `dprepro.additive.export.predictor`, and a model in it.

    ``python FILE.py new.csv`` writes predictions, contributions and notes as CSV, and counts what
    the model does not know on standard error. The module has ``predict(MODEL, row)`` for programs.
    The model's numbers are those of the model file.
    """
    values = model_to_json(model)
    features = [_some(feature, _OF_FEATURE) for feature in values["features"]]
    said = _some(values, _OF_MODEL)
    # Of texts, numbers, lists and dicts the representation is Python, whatever the texts hold.
    lines = [f"    {key!r}: {value!r},\n" for key, value in said.items()]
    listed = {"features": features}
    if "pairs" in values:
        listed["pairs"] = [_some(pair, _OF_PAIR) for pair in values["pairs"]]
    for name, parts in listed.items():
        lines += [f"    {name!r}: [\n", *(f"        {each!r},\n" for each in parts), "    ],\n"]
    return (
        f"{inspect.getsource(predictor)}\n\nMODEL = {{\n{''.join(lines)}}}\n"
        '\nif __name__ == "__main__":\n    main(MODEL)\n'
    )


def _some(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}
