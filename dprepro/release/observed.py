"""Bounds and categories that are values of the rows: only for tables whose rows are public."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dprepro.data.dates import as_number
from dprepro.release.codebook import Entry
from dprepro.release.columns import as_texts
from dprepro.release.forms import KNOWN_LISTS, Convention, Form, as_floats, present

OBSERVED = "observed: read from the rows"
"""What stands beside each of them on a card."""

_MOST_CATEGORIES = 100
"""A feature of more has too few rows of each; its texts are a person's to group."""


def observed_entry(
    column: pa.ChunkedArray, form: Form, way: Convention, missing: Sequence[str]
) -> Entry:
    """Return the domain of a feature as its rows have it; bounds are rounded outwards.

    Parameters
    ----------
    column, form
        Its values, and how they are written.
    way
        How numbers are written.
    missing
        Texts that stand for a missing value.
    """
    numeric = form.kind == "numeric"
    texts = as_texts(column)
    if texts is None:
        return Entry("categorical")
    codes = observed_codes(form)
    known = present(texts, (*missing, *codes))
    values, lacks = pc.unique(known), len(known) < len(texts)
    coded = ("codes",) if codes else ()
    if form.listed:
        return Entry("categorical", categories=KNOWN_LISTS[form.listed], shared=form.listed,
                     missing=lacks, description=OBSERVED, proposed=coded)  # fmt: skip
    if form.dates:
        years = [as_number(text, form.dates[0]) for text in values.to_pylist()]
        low, high = float(math.floor(min(years))), float(math.ceil(max(years)))
        return Entry("date", low, max(high, low + 1), missing=lacks, description=OBSERVED,
                     date=form.dates[0], proposed=coded)  # fmt: skip
    if numeric and not form.sign and (way in form.numbers or column.type != pa.string()):
        found = as_floats(values, way if column.type == pa.string() else (".", ""))
        lower, upper = _outwards([v for v in found if math.isfinite(v)])
        return Entry("numeric", lower, upper, missing=lacks, description=OBSERVED, proposed=coded)
    if not numeric and len(values) <= _MOST_CATEGORIES:
        categories = tuple(sorted(values.to_pylist()))
        return Entry("categorical", categories=categories, missing=lacks, description=OBSERVED)
    return Entry("numeric" if numeric else "categorical", missing=lacks, proposed=coded)


def observed_codes(form: Form) -> tuple[str, ...]:
    """Return codes of missing values that nobody has to check; 88 may be an age after all."""
    return tuple(code for code in form.codes if code.startswith("-"))


def _outwards(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return round numbers between which all values lie: with the first digit of their range."""
    if not values:
        return None, None
    low, high = min(values), max(values)
    width = (high - low) or abs(low) or 1.0
    digits = -math.floor(math.log10(width))
    step = 10.0**-digits
    low = round(math.floor(low / step) * step, digits)
    high = round(math.ceil(high / step) * step, digits)
    return (low, high) if low < high else (low, low + step)
