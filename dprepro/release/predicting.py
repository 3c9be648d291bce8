"""Predictions for new rows, a chunk at a time, and counts of what in them a model does not know."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dprepro.additive.bins import OTHER, FeatureBins
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor, sizes_of
from dprepro.data.card import Card
from dprepro.data.cell_values import CellError, Kind, Marks, read_as_categories, read_numbers
from dprepro.data.domain import CategoricalFeature, as_floats, category_codes
from dprepro.rows.card_table import csv_settings
from dprepro.rows.readers import CsvSettings, TableError
from dprepro.rows.table import PARQUET_SUFFIXES, Table, What, report
from dprepro.runtime.errors import DpreproError, nearest_names
from dprepro.runtime.files import appearing_complete

MOST_REMEMBERED = 10_000
"""Distinct unknown categories that are remembered of a feature; others are only counted."""

_MOST_FEATURES = 10
_MOST_VALUES = 5
_LONGEST_KEY, _LONGEST_SHOWN = 100, 50
# To compare a text with more than these takes seconds.
_MOST_COMPARED = 1_000

CHUNK_ROWS = 2**16
"""Rows that are in memory at a time, of a model of up to `_CELLS / CHUNK_ROWS` = 32 features."""

NOTES = "notes"
"""The column that says what of a row the model does not know."""

_CELLS = 2**21
_SEPARATORS = (",", ";", "\t", "|")


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


@dataclass(frozen=True)
class Wanted:
    """What is to be written of every row, beside the prediction.

    Attributes
    ----------
    explain
        Whether the contribution of each feature is, and a note on values that the model does not
        know; see `Unknown`.
    keep
        Columns of the table that are written as they are, in this order.
    interval
        The coverage of the prediction intervals whose ends are; None for no intervals.
    strict
        Whether a value that the model does not know is an error.
    """

    explain: bool = False
    keep: tuple[str, ...] = ()
    interval: float | None = None
    strict: bool = False


_PLAIN = Wanted()
_Item = TypeVar("_Item")


class NewRows:
    """A table of new rows, read for a model as the rows were that it was fitted to.

    Texts are read as `dprepro.data.cell_values` says. A number outside the bounds counts as the
    first or the last bin. A category that the model does not know counts as "(other)", and a
    missing value as the bin that missing values went to; where there is no such bin, they add 0.

    Parameters
    ----------
    source
        The path of a CSV or parquet file, or of a folder of parquet files; see `Table.open`.
    card
        Says how a CSV is written, which texts are missing values, and what columns are renamed. By
        default a CSV has commas, a header, and the missing texts that a card has by default.

    Raises
    ------
    TableError
        If there is no such table, or it lacks a feature or a column to keep.
    """

    def __init__(
        self, source: Path, model: AdditiveModel, keep: Sequence[str] = (), card: Card | None = None
    ) -> None:
        settings = CsvSettings(keeps_texts=True) if card is None else csv_settings(card)
        self.table = Table.open(source, settings)
        self._marks = Marks(settings.missing, settings.spelling)
        self._described = {} if card is None else dict(card.features or {})
        self._features = [bins.feature for bins in model.bins_]
        renamed = {} if card is None else {v: k for k, v in card.sources[0].rename.items()}
        names = [str(feature.name) for feature in self._features]
        self._columns = {name: self._column(name, renamed, names) for name in names}
        for name in keep:
            if name not in self.table.names:
                raise TableError(
                    f"--keep: the table has no column {name!r}{self.table.nearest(name, names)}"
                )
        self._keep = tuple(dict.fromkeys(keep))
        self.table.check(dict.fromkeys([*self._columns.values(), *self._keep], "text"))

    @property
    def kept(self) -> dict[str, pa.DataType]:
        """The columns to keep, with the types that they have in the table."""
        return {name: self.table.stored_type(name) for name in self._keep}

    def chunks(self, chunk_rows: int | None = None) -> Iterator[tuple[pd.DataFrame, pa.Table]]:
        """Yield the rows in order: the features as a model takes them, and the columns to keep.

        Raises
        ------
        DpreproError
            If a file is damaged, or a numeric feature holds text or infinities. The message quotes
            no value.
        """
        rows = chunk_rows or min(CHUNK_ROWS, max(1, _CELLS // len(self._features)))
        before = 0
        for raw in self.table.records(self._kinds, rows):
            try:
                X = self._read(raw)
            except CellError as error:
                line = None if error.row is None else self.table.line_of(before + error.row)
                place = "" if line is None else f" (first in line {line})"
                raise TableError(f"{error}{place}") from error
            yield X, raw.select(list(self._keep))
            before += len(X)

    @property
    def _kinds(self) -> dict[str, Kind]:
        """How the columns are read: those to keep as they are."""
        kinds: dict[str, Kind] = {}
        for feature in self._features:
            name = str(feature.name)
            said = self._described.get(name)
            is_text = isinstance(feature, CategoricalFeature) or (said and said.date)
            kinds[self._columns[name]] = "text" if is_text else "numeric"
        return {**kinds, **dict.fromkeys(self._keep, "text")}

    def _read(self, raw: pa.Table) -> pd.DataFrame:
        read: dict[Any, np.ndarray | pd.Categorical] = {}
        for feature in self._features:
            name = str(feature.name)
            column, said = raw[self._columns[name]], self._described.get(name)
            if isinstance(feature, CategoricalFeature):
                relabelled = None if said is None else said.category_of
                read[feature.name] = read_as_categories(column, feature, self._marks, relabelled)
            else:
                written = None if said is None else said.date
                spelling = self._marks.spelling
                read[feature.name] = read_numbers(column, name, self._marks, spelling, written)
        return pd.DataFrame(read, copy=False)

    def _column(self, name: str, renamed: Mapping[str, str], names: Sequence[str]) -> str:
        """Return what the table calls a feature."""
        for given in (renamed.get(name, name), name):
            if given in self.table.names:
                return given
        if len(self.table.names) == 1:  # the whole header, if the separator is another one
            for mark in _SEPARATORS:
                if mark in self.table.names[0]:
                    raise TableError(
                        f"the table has no column {name!r}: its fields seem to be separated by "
                        f"{mark!r}. Name a card that says so, with --card CARD: "
                        f"`format: {{separator: {json.dumps(mark)}}}`"
                    )
        raise TableError(
            f"the table has no column {name!r}, a feature of the model"
            f"{self.table.nearest(name, [*names, *renamed.values()])}"
        )


def predictions(model: AdditiveModel, X: pd.DataFrame, wanted: Wanted) -> dict[str, np.ndarray]:
    """Return the columns that are written of rows X, (n, K), by their names, each (n,).

    "prediction": the likeliest class, or the predicted target. "probability", float64: that of the
    second class; of several classes "probability of CLASS" for each. With an `interval` also
    "lower" and "upper", float64: its ends. With `explain` also "log_odds" or "sum", "intercept",
    and "contribution of NAME" for each feature and each pair of features, float64: the sum of the
    intercept and of all contributions, before it is clipped to the range that a regression model
    may have. Of several classes these are of the predicted class: log odds of it over the geometric
    mean of all.

    Raises
    ------
    DpreproError
        If a regressor does not know the interval that is wanted; see `sizes_of`.
    """
    ends = None
    with warnings.catch_warnings():
        # Of a model that was fitted to an array: its features have names here.
        warnings.filterwarnings("ignore", "X has feature names", UserWarning)
        contributions = model.contributions(X)
        if wanted.interval is not None and isinstance(model, AdditiveRegressor):
            ends = model.predict_interval(X, wanted.interval)
    scores = model.scores_of(contributions)
    columns: dict[str, np.ndarray] = {}
    intercept = None if model.several_classes else np.full(len(scores), model.intercept_)
    if isinstance(model, AdditiveClassifier):
        names, places = _of_probabilities(model), model.places_of(scores)
        columns["prediction"] = np.array(model.class_names, dtype=object)[places]
        columns |= dict(zip(names, model.probabilities_of(scores).T[-len(names) :], strict=True))
        if model.several_classes:
            contributions = np.take_along_axis(contributions, places[:, None, None], axis=2)[..., 0]
            scores = np.take_along_axis(scores, places[:, None], axis=1)[:, 0]
            intercept = model.intercept_[places]
    elif isinstance(model, AdditiveRegressor):
        columns["prediction"] = model.targets_of(scores)
    if ends is not None:
        columns["lower"], columns["upper"] = ends.T
    if wanted.explain:
        parts = [scores, intercept, *contributions.T]
        columns |= dict(zip(_explained(model), parts, strict=True))
    return columns


def predict_table(
    model: AdditiveModel,
    source: Path,
    output: Path | None,
    wanted: Wanted = _PLAIN,
    card: Card | None = None,
    chunk_rows: int | None = None,
) -> Unknown:
    """Write predictions for the rows of a table, in their order; return what the model lacks.

    With `explain` of `wanted` the last column is "notes": what of each row the model does not know.

    Parameters
    ----------
    source, card
        See `NewRows`.
    output
        A CSV or, by its suffix, a parquet file, which appears complete. None: CSV to standard
        output.
    chunk_rows
        Rows that are in memory at a time.

    Raises
    ------
    DpreproError
        On what `NewRows` refuses, on intervals that the model does not know, if two columns would
        have one name, or if the file cannot be written; then there is none.
    UnknownValuesError
        If `wanted` is strict, and a row holds what the model does not know. Nothing is written.
    """
    if output is not None:
        _check_place(source, output)
    if wanted.interval is not None:
        sizes_of(model).half_width(wanted.interval)
    rows = NewRows(source, model, wanted.keep, card)
    schema = _schema(rows, model, wanted)
    if wanted.strict and output is None:
        _check_all(rows, model, chunk_rows)  # what is on standard output cannot be taken back
    unknown = Unknown(model.bins_)
    with _opened(output, schema) as write:
        for X, kept in _one_ahead(rows.chunks(chunk_rows)):
            columns: dict[str, Any] = {name: kept[name] for name in rows.kept}
            columns |= predictions(model, X, wanted)
            notes = unknown.count(X)
            if wanted.explain:
                columns[NOTES] = notes
            write(pa.table(columns, schema=schema))
            _report("predicting", rows, unknown.rows)
        if wanted.strict:
            unknown.refuse()
    return unknown


def _one_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield items, each of which another thread makes while the one before it is used.

    The first is made before that thread starts: what the first one imports, no two threads do.
    """
    with ThreadPoolExecutor(1) as thread:
        coming: Future[_Item | None] = Future()
        coming.set_result(next(items, None))
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def _check_all(rows: NewRows, model: AdditiveModel, chunk_rows: int | None) -> None:
    """Read all rows, and raise `UnknownValuesError` if the model does not know all values."""
    unknown = Unknown(model.bins_)
    for X, _ in rows.chunks(chunk_rows):
        unknown.count(X)
        _report("reading rows", rows, unknown.rows)
    unknown.refuse()


def _report(what: What, rows: NewRows, done: int) -> None:
    report(what, *(rows.table.bytes_read or (done, rows.table.known_rows)))


def _schema(rows: NewRows, model: AdditiveModel, wanted: Wanted) -> pa.Schema:
    """Return the columns that are written, with their types."""
    made = [("prediction", pa.float64())]
    if isinstance(model, AdditiveClassifier):
        probabilities = [(name, pa.float64()) for name in _of_probabilities(model)]
        made = [("prediction", pa.string()), *probabilities]
    if wanted.interval is not None:
        made += [("lower", pa.float64()), ("upper", pa.float64())]
    if wanted.explain:
        made += [(name, pa.float64()) for name in _explained(model)]
        made.append((NOTES, pa.string()))
    schema = pa.schema([*rows.kept.items(), *made])
    repeated = [name for name in wanted.keep if schema.names.count(name) > 1]
    if repeated:
        raise DpreproError(
            f"--keep {repeated[0]}: a column of predictions has this name, too: rename the one in "
            "the table, or leave it out"
        )
    return schema


def _of_probabilities(model: AdditiveClassifier) -> list[str]:
    """Return the names of the columns of probabilities."""
    if not model.several_classes:
        return ["probability"]
    return [f"probability of {name}" for name in model.class_names]


def _explained(model: AdditiveModel) -> list[str]:
    """Return the names of the columns that explain a prediction."""
    total = "log_odds" if isinstance(model, AdditiveClassifier) else "sum"
    return [total, "intercept", *(f"contribution of {name}" for name in model.term_names)]


@contextmanager
def _opened(output: Path | None, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yield what writes rows, one batch after the other."""
    if output is None:
        with _csv_writer(sys.stdout.buffer, schema) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    with appearing_complete(output) as unfinished:
        if output.name.lower().endswith(PARQUET_SUFFIXES):
            with pa.parquet.ParquetWriter(str(unfinished), schema) as writer:
                yield writer.write_table
        else:
            with unfinished.open("wb") as file, _csv_writer(file, schema) as write:
                yield write


@contextmanager
def _csv_writer(file: BinaryIO, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yield what writes rows; the header comes with the first ones, or at the end.

    So a pipe gets nothing, not even a header, if the first rows cannot be read.
    """
    has_header = False

    def write(rows: pa.Table) -> None:
        nonlocal has_header
        text = pa.BufferOutputStream()
        pa.csv.write_csv(rows, text, pa.csv.WriteOptions(include_header=not has_header))
        file.write(text.getvalue())
        has_header = True

    yield write
    if not has_header:
        write(schema.empty_table())


def _check_place(source: Path, output: Path) -> None:
    if not output.name.lower().endswith((".csv", *PARQUET_SUFFIXES)):
        raise DpreproError(
            f"cannot tell the format of {output} by its suffix. Allowed: .csv, "
            f"{', '.join(PARQUET_SUFFIXES)}; or - for CSV on standard output"
        )
    place, given = output.resolve(), source.resolve()
    if place == given or given in place.parents:
        raise DpreproError(
            f"{output} is the table that is read, or lies in it: name another place for the "
            "predictions"
        )
