"""The domain: what is public about a table, so that a method may use it at no cost in privacy.

Also: values as its categories and numbers, dates among them, and random rows made from it alone.
"""

from __future__ import annotations

import calendar
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dprepro.runtime.arguments import Instance, flag, name_of, real, refusal, sequence, texts
from dprepro.runtime.errors import HOW_NUMBERS_LOOK, DpreproWarning, nearest
from dprepro.runtime.text import in_short

if TYPE_CHECKING:
    import pandas as pd

TOO_FAR = "further apart than a number can say, 1.8e308: choose narrower ones"
TaskKind = Literal["binary", "multiclass", "regression"]
_SPELLINGS = {True: ("true", "t", "yes", "y"), False: ("false", "f", "no", "n")}

BINS = 10
"""Intervals of equal width of a numeric feature's bounds, where columns are to be Boolean."""


@dataclass(frozen=True)
class NumericFeature:
    """A numeric feature with values in ``[lower, upper]``.

    Methods that rely on the bounds clip values to them. `missing` says whether values may be
    missing (NaN).
    """

    name: str
    lower: float
    upper: float
    missing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", name_of("name", self.name))
        whose = f"of feature {self.name!r}"
        object.__setattr__(self, "lower", real(f"lower {whose}", self.lower))
        object.__setattr__(self, "upper", real(f"upper {whose}", self.upper))
        object.__setattr__(self, "missing", flag(f"missing {whose}", self.missing))
        if not (-math.inf < self.lower <= self.upper < math.inf):
            raise ValueError(
                f"feature {self.name!r}: bounds must be finite with lower <= upper, "
                f"got [{self.lower}, {self.upper}]"
            )
        if not math.isfinite(float(self.upper) - float(self.lower)):
            raise ValueError(f"feature {self.name!r}: bounds are {TOO_FAR}")


@dataclass(frozen=True)
class CategoricalFeature:
    """A categorical feature with a fixed list of categories (strings), in the card's order.

    `missing` says whether values may be missing. `ordered` says that the order of the categories
    means something, such as that of age groups: pictures and pages keep it. No method reads it.
    """

    name: str
    categories: tuple[str, ...]
    missing: bool = False
    ordered: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", name_of("name", self.name))
        whose = f"of feature {self.name!r}"
        object.__setattr__(self, "categories", texts(f"categories {whose}", self.categories))
        object.__setattr__(self, "missing", flag(f"missing {whose}", self.missing))
        object.__setattr__(self, "ordered", flag(f"ordered {whose}", self.ordered))
        if len(set(self.categories)) != len(self.categories):
            raise ValueError(f"feature {self.name!r}: categories repeat: {self.categories}")


Feature = NumericFeature | CategoricalFeature


def _features(name: str, given: object) -> tuple[Feature, ...]:
    kind = Instance(Feature, "a NumericFeature or a CategoricalFeature")
    return sequence(name, given, kind, "a list of NumericFeature and CategoricalFeature")


def _target(name: str, given: object) -> tuple[Any, ...]:
    """Return bounds as numbers, or labels as texts."""
    allowed = "bounds (lower, upper) or a list of labels (texts)"
    values = sequence(name, given, lambda _, value: value, allowed)
    if any(isinstance(value, str) for value in values):
        return texts(name, values)
    return sequence(
        name, values, partial(real, allowed=f"a number or a text, as {name} is {allowed}"), allowed
    )


@dataclass(frozen=True, repr=False)
class Domain:
    """The public domain of a table.

    Lists, arrays and columns count as tuples, and scalars of NumPy as numbers and texts. Its repr
    has names of features alone, as an observed domain holds values of rows.

    Parameters
    ----------
    features
        One entry for each column of ``X``, in order.
    target
        Regression: the bounds ``(lower, upper)`` of y. Classification: the labels, in the order
        of their codes 0, 1, ...
    observed
        What was read from private rows, in words ("bounds of age, hours"). It is not covered by
        epsilon. Empty if the whole domain is public.

    Raises
    ------
    ValueError
        On anything else; the message names the parameter.

    Examples
    --------
    >>> from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
    >>> cities = CategoricalFeature("city", ("Bonn", "Lyon"))
    >>> domain = Domain((NumericFeature("age", 18, 100), cities), target=("no", "yes"))
    >>> domain
    Domain(age, city; target: 2 labels; public)
    """

    features: tuple[Feature, ...]
    target: tuple[float, float] | tuple[str, ...]
    observed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _features("features", self.features))
        object.__setattr__(self, "target", _target("target", self.target))
        object.__setattr__(self, "observed", texts("observed", self.observed))

    @property
    def is_public(self) -> bool:
        """Whether nothing in the domain was read from private rows."""
        return not self.observed

    def __repr__(self) -> str:
        names = in_short([feature.name for feature in self.features])
        is_labels = any(isinstance(value, str) for value in self.target)
        target = f"{len(self.target)} labels" if is_labels else "bounds"
        known = "public" if self.is_public else "observed, not covered by epsilon"
        return f"Domain({names}; target: {target}; {known})"

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        target: tuple[float, float] | tuple[str, ...],
        bounds: Mapping[str, tuple[float, float]] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        missing: Sequence[str] = (),
        observed: bool = False,
    ) -> Domain:
        """Return the domain that is stated for the columns of a frame, in their order.

        Names and dtypes of columns are looked at, and no value of a row unless `observed`. A column
        is categorical if `categories` names it, and numeric if `bounds` does.

        Parameters
        ----------
        frame : DataFrame (n, K)
            The features, without the target.
        target
            As of the class: the labels in the order of their codes, or the bounds of y.
        bounds
            By numeric column, (lower, upper).
        categories
            By categorical column, all categories as texts. Numbers can be categories, too.
        missing
            Names of columns whose values may be missing.
        observed
            Read what is not stated from the rows, as the papers did. A DpreproWarning and
            `Domain.observed` then name every such read: epsilon does not cover it, and no guarantee
            holds.

        Raises
        ------
        ValueError
            If nothing is stated of a column. The message names every such column, and has the
            lines to fill in; it quotes no value of a row. Also on a name that is no column's, on
            bounds of a column of texts, and on a parameter of another type.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [39.0, 50.0], "city": ["Bonn", "Lyon"]})
        >>> Domain.from_frame(
        ...     frame,
        ...     target=("no", "yes"),
        ...     bounds={"age": (18, 100)},
        ...     categories={"city": ["Bonn", "Lyon", "Turin"]},
        ... )
        Domain(age, city; target: 2 labels; public)
        """
        import pandas as pd

        frame = Instance(pd.DataFrame, "a DataFrame of pandas")("frame", frame)
        names = [name_of("each column of frame", name) for name in frame.columns]
        limits, known = _stated("bounds", bounds), _stated("categories", categories)
        may_lack, reads_rows = texts("missing", missing), flag("observed", observed)
        _refuse_names(names, {"bounds": limits, "categories": known, "missing": may_lack})
        lacking: dict[str, str] = {}
        features: list[Feature] = []
        unstated = [name for name in names if name not in known and name not in limits]
        seen = cls.observe(frame[unstated], np.zeros(1), "binary") if reads_rows else None
        read = {feature.name: feature for feature in seen.features} if seen else {}
        for position, name in enumerate(names):
            column = frame.iloc[:, position]
            if name in known:
                listed = texts(f"categories of {name!r}", known[name])
                features.append(CategoricalFeature(name, listed, name in may_lack))
            elif name in limits:
                features.append(_bounded(column, name, limits[name], name in may_lack))
            elif name in read:
                features.append(read[name])
            else:
                lacking[name] = "categories" if is_categorical(column) else "bounds"
        if lacking:
            raise ValueError(_what_to_state(lacking))
        reads = seen.observed if seen and read else ()
        if reads:
            warnings.warn(
                f"Domain.from_frame reads from the rows: {'; '.join(reads)}. Epsilon does not "
                "cover what it reads. State bounds and categories instead.",
                DpreproWarning,
                stacklevel=2,
            )
        return cls(tuple(features), target, reads)

    @classmethod
    def observe(cls, X: pd.DataFrame, y: np.ndarray, task: TaskKind) -> Domain:
        """Read the domain from rows, as the papers did. `observed` then names every such read.

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
            # Which labels exist belongs to the question that is asked, so it is taken as public.
            target = tuple(str(label) for label in np.unique(y))
        return cls(features, target, tuple(reads))


_TO_FILL_IN = {"bounds": "(LOWEST, HIGHEST)", "categories": "[CATEGORY, CATEGORY]"}


def _stated(name: str, given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise refusal(name, "a dict by names of columns, such as {'age': ...}", given)
    return {name_of(f"each key of {name}", key): value for key, value in given.items()}


def _bounded(column: pd.Series, name: str, given: Any, missing: bool) -> NumericFeature:
    if is_categorical(column):
        raise ValueError(
            f"bounds names {name!r}, a column of dtype {column.dtype}: make it numeric, as by "
            "pandas.to_numeric, or list its values under categories"
        )
    allowed = "a pair of numbers, (lower, upper)"
    pair = sequence(f"bounds of {name!r}", given, lambda _, value: value, allowed)
    if len(pair) != 2:
        raise refusal(f"bounds of {name!r}", allowed, given)
    return NumericFeature(name, pair[0], pair[1], missing)


def _refuse_names(names: list[str], given: Mapping[str, Any]) -> None:
    """Refuse names that are no column's, are two columns', or are stated twice."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"frame has two columns {repeated[0]!r}: give them different names")
    for parameter, stated in given.items():
        for name in stated:
            if name not in names:
                raise ValueError(
                    f"{parameter} must name columns of the frame, got {name!r}"
                    f"{nearest(name, names) or '.'} Columns are: {', '.join(names)}"
                )
    for name in {*given["bounds"]} & {*given["categories"]}:
        raise ValueError(f"bounds and categories both name {name!r}: leave it out of one")


def _what_to_state(lacking: Mapping[str, str]) -> str:
    """Return the error on columns of which nothing is stated, with what to paste and fill in."""
    lines = [
        f"Domain.from_frame guesses no bounds and no categories, and nothing is stated of "
        f"{', '.join(lacking)}. State what is known without these rows:",
        "",
    ]
    for parameter, hint in _TO_FILL_IN.items():
        own = [name for name, wanted in lacking.items() if wanted == parameter]
        if own:
            lines += [
                f"    {parameter}={{",
                *(f"        {name!r}: {hint}," for name in own),
                "    },",
            ]
    lines += [
        "",
        "The frame has the features alone: leave the target's column out, if it is one of these.",
        "observed=True reads them from the rows, which is not covered by epsilon: for experiments "
        "only",
    ]
    return "\n".join(lines)


def is_categorical(column: pd.Series) -> bool:
    """Whether a column holds categories (category, string, object or bool dtype)."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(
        column.dtype
    )


@np.errstate(invalid="ignore")  # NumPy would tell that a missing value is a signalling NaN
def as_floats(column: pd.Series) -> np.ndarray:
    """Return numbers as float64 (n,), NaN where one is missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _observe_feature(name: str, column: pd.Series) -> Feature:
    if is_categorical(column):
        present = column.dropna()
        # In a column of objects `unique` takes 1, 1.0 and True for one value.
        distinct = present if present.dtype == object else present.unique()
        categories = tuple(sorted({str(value) for value in distinct}))
        return CategoricalFeature(name, categories, bool(column.isna().any()))
    values = as_floats(column)
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return NumericFeature(name, 0.0, 0.0, missing=True)
    missing = bool(np.isnan(values).any())
    return NumericFeature(name, float(finite.min()), float(finite.max()), missing)


def category_codes(column: pd.Series, categories: Sequence[str]) -> np.ndarray:
    """Return int64 codes of shape (n,): the position in `categories`, -1 for missing or unseen.

    A number gets the first category that reads as the same number: 1 and 1.0 are both "1". A
    Boolean gets the category of `code_of_boolean`. Any other value gets the category that equals
    its text. The code of a row depends only on its own value and on `categories`, whatever values
    the other rows have.
    """
    import pandas as pd

    find = _finder(categories)
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, distinct = np.asarray(column.cat.codes), column.cat.categories
    elif column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) != "string":
        # `factorize` takes 1, 1.0 and True for one value.
        found = np.array([find(value) for value in column], dtype=np.int64)
        return np.where(column.isna(), -1, found)
    else:
        codes, distinct = pd.factorize(column)
    return np.array([*map(find, distinct), -1], dtype=np.int64)[codes]


def code_of_boolean(value: bool, categories: Sequence[str]) -> int:
    """Return the position of the category that a Boolean is, -1 if there is none.

    That is "True" or "False", as Python writes it, if this is a category. Else it is the one
    category that is a usual spelling of the value: true, t, yes or y, or false, f, no or n, in
    small or large letters. Two such categories could both be meant, so then there is none.

    Examples
    --------
    >>> code_of_boolean(True, ["No", "Yes"]), code_of_boolean(False, ["TRUE", "FALSE"])
    (1, 1)
    >>> code_of_boolean(True, ["y", "yes"]), code_of_boolean(True, ["true", "True"])
    (-1, 1)
    """
    if (written := str(bool(value))) in categories:
        return list(categories).index(written)
    spellings = _SPELLINGS[bool(value)]
    found = [code for code, text in enumerate(categories) if text.strip().lower() in spellings]
    return found[0] if len(found) == 1 else -1


def codes_of_numbers(categories: Sequence[str]) -> dict[float, int]:
    """Return the position of the first category that reads as each number.

    Examples
    --------
    >>> codes_of_numbers(["2", "1.0", "1", "many"])
    {1.0: 1, 2.0: 0}
    """
    numbers = [(_as_number(text), code) for code, text in enumerate(categories)]
    return {number: code for number, code in reversed(numbers) if number == number}


def _finder(categories: Sequence[str]) -> Callable[[object], int]:
    by_text = {category: code for code, category in enumerate(categories)}
    by_number = codes_of_numbers(categories)
    by_boolean = {value: code_of_boolean(value, categories) for value in (False, True)}

    def find(value: object) -> int:
        if isinstance(value, (bool, np.bool_)):
            return by_boolean[bool(value)]
        # A column of integers turns into floats when a value is missing somewhere.
        if isinstance(value, (Real, Decimal)):
            return by_number.get(_as_number(value), -1)
        return by_text.get(str(value), -1)

    return find


def _as_number(value: Any) -> float:
    """Return a value as a float; NaN, which equals no key, if it is no number."""
    try:
        return float(value)
    except (ValueError, OverflowError):
        return float("nan")


def numbers_of(column: pd.Series) -> np.ndarray:
    """Return a numeric feature's column as float64 (n,), NaN where a value is missing.

    Raises ValueError if a value is not a number. The message names the feature and quotes no value.
    """
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"feature {column.name!r} is numeric in the domain, but some rows hold something else. "
            + HOW_NUMBERS_LOOK
        ) from None


def refuse_missing(feature: Feature, missing: np.ndarray) -> None:
    """Raise ValueError if values are missing, bool (n,), where the domain allows none.

    The message does not quote values of rows and does not count rows.
    """
    if missing.any() and not feature.missing:
        raise ValueError(
            f"feature {feature.name!r} has missing values (NaN) and its domain allows none: fill "
            "them in, or allow them. On a card, `missing: true` at the feature allows them and "
            "`fill` names a value; in Python, missing=True of the feature allows them, or "
            f"missing=[{feature.name!r}] of Domain.from_frame"
        )


def refuse_unseen(feature: CategoricalFeature, unseen: np.ndarray) -> None:
    """Raise ValueError if rows, bool (n,), hold a category outside the domain."""
    if unseen.any():
        raise ValueError(
            f"feature {feature.name!r} holds a category that is not in its domain; allowed: "
            f"{', '.join(map(repr, feature.categories))}. Correct the rows, or add the category to "
            "the domain (on a card: `categories`) if it can be known without them"
        )


def refuse_undeclared(feature: Feature, column: pd.Series, absent: np.ndarray) -> None:
    """Raise ValueError if rows hold a missing value or a category that the domain rules out.

    Numbers outside their bounds are no error: methods clip them.

    Parameters
    ----------
    absent
        The rows whose value is no number, or none of the categories, bool (n,).
    """
    if not isinstance(feature, CategoricalFeature):
        refuse_missing(feature, absent)
        return
    missing = column.isna().to_numpy()
    refuse_missing(feature, missing)
    refuse_unseen(feature, absent & ~missing)


def codes_or_numbers(feature: Feature, column: pd.Series, refuse: bool = False) -> np.ndarray:
    """Return the code of each category, int64 (n,), or each number, float64 (n,).

    A missing or unseen category has the code -1, a missing number is NaN.

    Raises
    ------
    ValueError
        With `refuse`, on what the domain rules out. Always, if a numeric feature holds something
        else.
    """
    if isinstance(feature, CategoricalFeature):
        found = category_codes(column, feature.categories)
        absent = found < 0
    else:
        found = numbers_of(column)
        absent = np.isnan(found)
    if refuse:
        refuse_undeclared(feature, column, absent)
    return found


def sample_features(domain: Domain, rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Draw rows uniformly from a domain; all categories occur if there are enough rows."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for feature in domain.features:
        if isinstance(feature, NumericFeature):
            columns[feature.name] = generator.uniform(feature.lower, feature.upper, rows)
        else:
            codes = generator.permutation(np.arange(rows) % len(feature.categories))
            columns[feature.name] = pd.Categorical(np.array(feature.categories, object)[codes])
    return pd.DataFrame(columns)


_YEAR = ("%Y", "%y", "%c", "%x")
_HOUR = ("%H", "%I", "%X")


def is_date_format(text: str) -> bool:
    """Whether a format of `datetime.strptime` has a year, or an hour of the day."""
    if not any(mark in text for mark in (*_YEAR, *_HOUR)):
        return False
    try:
        written = datetime(2001, 2, 3, 4, 5, 6, tzinfo=timezone.utc).strftime(text)
        datetime.strptime(written, text)
    except (ValueError, re.error):  # the latter where a directive is there twice
        return False
    return True


def date_as_number(text: str, date_format: str) -> float:
    """Return a date as years, such as 2014.5 for the middle of 2014, or a time of day as hours.

    Times within a year count by the seconds of that year; a time zone is not looked at.

    Raises ValueError if the text is not written in this format.

    Examples
    --------
    >>> date_as_number("2014-01-01", "%Y-%m-%d"), date_as_number("18:45", "%H:%M")
    (2014.0, 18.75)
    """
    found = datetime.strptime(text, date_format)
    if not any(mark in date_format for mark in _YEAR):
        return found.hour + found.minute / 60 + found.second / 3600
    return in_years(found)


def in_years(moment: datetime) -> float:
    """Return a date as a number of years with a fraction."""
    start = datetime(moment.year, 1, 1)
    days = 366 if calendar.isleap(moment.year) else 365
    passed = (moment.replace(tzinfo=None) - start).total_seconds()
    return moment.year + passed / (days * 86400)
