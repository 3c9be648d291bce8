"""What new rows hold that a model does not know: counted, and named, while they are predicted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pandas as pd

from dprepro.additive.bins import OTHER, FeatureBins
from dprepro.data.domain import CategoricalFeature, as_floats, category_codes
from dprepro.errors import DpreproError, nearest_names

MOST_REMEMBERED = 10_000
"""Distinct unknown categories that are remembered of a feature; others are only counted."""

_MOST_FEATURES = 10
_MOST_VALUES = 5
_LONGEST_KEY, _LONGEST_SHOWN = 100, 50
# To compare a text with more than these takes seconds.
_MOST_COMPARED = 1_000


class UnknownValuesError(DpreproError):
    """New rows hold what the model does not know. The message quotes values of these rows.

    They belong to the person who predicts them, and not to those that the model was fitted to.
    """


class Unknown:
    """Counts the values of new rows that a model does not know, a chunk of rows at a time.

    These are texts that are no category of the feature, numbers outside its bounds, and missing
    values where the model has no bin for them. At most `MOST_REMEMBERED` categories of a feature
    are remembered, however many rows there are.

    Parameters
    ----------
    bins
        Those of the model, one for each feature.

    Attributes
    ----------
    rows
        How many rows were counted.
    """

    def __init__(self, bins: Sequence[FeatureBins]) -> None:
        self.rows = 0
        self._features = [_Feature(of_feature) for of_feature in bins]

    def count(self, X: pd.DataFrame) -> np.ndarray:
        """Count the next rows, (n, K), as the model gets them; return a note on each, object (n,).

        A note names the features whose value is unknown: ``"age: above its bounds; sex: unknown
        category"``. It is empty where there is none.
        """
        self.rows += len(X)
        notes = np.full(len(X), "", dtype=object)
        for feature in self._features:
            for what, found in feature.count(X[feature.name]):
                before = notes[found]
                notes[found] = before + np.where(before == "", "", "; ") + f"{feature.name}: {what}"
        return notes

    def __bool__(self) -> bool:
        """Whether there is anything that the model does not know."""
        return any(feature.total for feature in self._features)

    def lines(self, most: int | None = _MOST_FEATURES) -> list[str]:
        """Return a line for each feature with unknown values, the most of them first.

        Of more than `most` features the last line says how many are left out; None for all. The
        lines quote values. They are safe for a terminal.
        """
        found = sorted((f for f in self._features if f.total), key=lambda f: -f.total)
        lines = [feature.line(self.rows) for feature in found[:most]]
        if more := len(found) - len(lines):
            lines.append(f"and {more:,} more feature{'s' if more > 1 else ''}")
        return lines

    def refuse(self) -> None:
        """Raise `UnknownValuesError`, with a line for each feature, if anything is unknown."""
        if self:
            lines = "".join(f"\n  {line}" for line in self.lines(most=None))
            raise UnknownValuesError(
                "--strict: the table holds values that the model does not know, so nothing is "
                f"written:{lines}\nCorrect them in the table, or leave --strict out"
            )


class _Feature:
    """What is unknown of one feature."""

    def __init__(self, bins: FeatureBins) -> None:
        self.name = bins.feature.name
        self._bins = bins
        self._values: Counter[Hashable] = Counter()
        self._is_full = False
        self._unknown = self._below = self._above = self._missing = 0
        self._least, self._greatest = math.inf, -math.inf

    @property
    def total(self) -> int:
        """How many rows have a value that is unknown."""
        return self._unknown + self._below + self._above + self._missing

    def count(self, column: pd.Series) -> Iterator[tuple[str, np.ndarray]]:
        """Count a column, (n,); yield what is unknown in words, and in which rows, bool (n,)."""
        if self._bins.missing_bin < 0 and (missing := column.isna().to_numpy()).any():
            self._missing += int(missing.sum())
            yield "missing", missing
        if isinstance(self._bins.feature, CategoricalFeature):
            codes = category_codes(column, self._bins.feature.categories)
            unknown = (codes < 0) & column.notna().to_numpy()
            if unknown.any():
                self._remember(column[unknown])
                yield "unknown category", unknown
            return
        values, feature = as_floats(column), self._bins.feature
        below, above = values < feature.lower, values > feature.upper
        if below.any():
            self._below += int(below.sum())
            self._least = min(self._least, float(values[below].min()))
            yield "below its bounds", below
        if above.any():
            self._above += int(above.sum())
            self._greatest = max(self._greatest, float(values[above].max()))
            yield "above its bounds", above

    def _remember(self, values: pd.Series) -> None:
        self._unknown += len(values)
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.cat.remove_unused_categories()
        for value, count in values.value_counts().items():
            key = _cut(value, _LONGEST_KEY) if isinstance(value, str) else value
            if key in self._values or len(self._values) < MOST_REMEMBERED:
                self._values[key] += int(count)
            else:
                self._is_full = True

    def line(self, rows: int) -> str:
        """Return what is unknown, of so many rows, in words."""
        said = [*self._categories(rows), *self._outside(rows), *self._absent(rows)]
        name = _cut(str(self.name), _LONGEST_SHOWN)
        shown = "".join(c if c.isprintable() else "\ufffd" for c in name)
        return f"{shown}: {'; '.join(said)}"

    def _categories(self, rows: int) -> Iterator[str]:
        if not self._unknown:
            return
        has_other = OTHER in self._bins.labels
        effect = f'counted as "{OTHER}"' if has_other else "the feature adds 0"
        shown = self._values.most_common(_MOST_VALUES)
        quoted = [self._quoted(value, count) for value, count in shown]
        if self._is_full:
            quoted.append(f"and more than {len(self._values) - len(shown):,} more")
        elif more := len(self._values) - len(shown):
            quoted.append(f"and {more:,} more")
        yield (
            f"{_of(self._unknown, rows, 'hold')} a category that the model does not know "
            f"({effect}): {', '.join(quoted)}"
        )

    def _quoted(self, value: Hashable, count: int) -> str:
        feature = self._bins.feature
        categories = feature.categories if isinstance(feature, CategoricalFeature) else ()
        meant = _meant(value, categories) if isinstance(value, str) else ""
        advice = f"; did you mean {_shown(meant)}?" if meant else ""
        return f"{_shown(value)} ({count:,}{advice})"

    def _outside(self, rows: int) -> Iterator[str]:
        if not (outside := self._below + self._above):
            return
        feature = self._bins.feature
        bounds = f"{_number(feature.lower)} to {_number(feature.upper)}"  # type: ignore[union-attr]
        below = f"{self._below:,} below (down to {_number(self._least)})" if self._below else ""
        above = f"{self._above:,} above (up to {_number(self._greatest)})" if self._above else ""
        yield (
            f"{_of(outside, rows, 'hold')} a number outside the bounds, {bounds} (counted as the "
            f"bound): {' and '.join(filter(None, (below, above)))}"
        )

    def _absent(self, rows: int) -> Iterator[str]:
        if self._missing:
            verb = "have" if self._missing != 1 else "has"
            yield (
                f"{self._missing:,} of {_rows(rows)} {verb} no value, for which the model has no "
                "bin (the feature adds 0)"
            )


def _of(count: int, rows: int, verb: str) -> str:
    return f"{count:,} of {_rows(rows)} {verb}{'s' if count == 1 else ''}"


def _rows(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _number(value: float) -> str:
    """Return a number with all digits that tell it from others."""
    return repr(float(value)).removesuffix(".0")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _shown(value: Hashable) -> str:
    """Return a value as a terminal can show it: a text in quotes, and nothing that steers it."""
    return repr(_cut(value, _LONGEST_SHOWN)) if isinstance(value, str) else f"{value}"


def _meant(text: str, categories: Sequence[str]) -> str:
    """Return the category that a text probably stands for, or an empty string.

    A text that is a number stands for the category that is the same number, and for no other.
    """
    number = _as_number(text)
    if number is not None:
        return next((name for name in categories if _as_number(name) == number), "")
    folded = text.casefold()
    for name in categories:
        if name.casefold() == folded:
            return name
    if len(categories) > _MOST_COMPARED:
        return ""
    return next(iter(nearest_names(text, categories)), "")


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
