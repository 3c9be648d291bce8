"""The rows of a release: whether they keep to their card, and how the budget book knows them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dprepro.data.card import Card
from dprepro.data.dataset import (
    Dataset,
    load,
    outside_bounds,
    refuse_undeclared_missing,
    values_digest,
)
from dprepro.data.domain import date_as_number
from dprepro.data.fingerprint import SAME_EVERYWHERE, file_digest, is_stood_in_for
from dprepro.data.register import token_of
from dprepro.release.codebook import Entry
from dprepro.release.columns import KNOWN_LISTS, Convention, Form, as_floats, as_texts, present
from dprepro.runtime.errors import DpreproError

_UNIT = "unit "

_IN_WORDS = {
    "rows": "the number of rows in the file",
    "columns": "the number of features",
    "positives": "the number of positive rows",
    "positive_share": "bounds on the share of positive rows",
    "values_sha256": "a checksum of all values",
}
_OF_THE_TABLE = ("rows", "columns")
"""Facts that a card of private rows may state; the statement lists them as public."""

OBSERVED = "observed: read from the rows"
"""What stands beside each of them on a card."""

_MOST_CATEGORIES = 100
"""A feature of more has too few rows of each; its texts are a person's to group."""


def checked_rows(
    name: str, card: Card, data_dir: Path | None, clips: bool, online: bool = True
) -> Dataset:
    """Return the rows that a card describes, if every value is one that its domain allows.

    Parameters
    ----------
    name
        Of the card, or its path.
    clips
        Whether values beyond their bounds are let through: methods clip them.
    online
        Whether missing files may be downloaded.

    Raises
    ------
    DpreproError
        If the rows cannot be had, are those of a stand-in, or if one of them has a value that the
        card rules out. The message quotes no value and counts no rows.
    """
    if is_stood_in_for(card, data_dir):
        raise DpreproError(
            f"the rows of {card.name} are not here, and a model of its synthetic stand-in says "
            "nothing about them: put the files where the card says"
        )
    dataset = load(name, data_dir, online)
    if dataset.domain is None:
        raise DpreproError(no_domain(card))
    refuse_undeclared_missing(dataset)
    try:
        problems = [] if clips else outside_bounds(dataset, card)
    except ValueError as error:
        raise DpreproError(str(error)) from error
    if problems:
        raise DpreproError("\n  ".join(problems))
    return dataset


def no_domain(card: Card) -> str:
    """Return what to say of a card without a public domain."""
    return (
        f"the card of {card.name} gives no public domain, and bounds or categories that are read "
        "from the rows (`domain: observed`) are not covered by epsilon: add `features` to the "
        "card; `dprepro new dataset` writes a card to fill in"
    )


def identity_of(card: Card, dataset: Dataset, data_dir: Path | None) -> list[str]:
    """Return tokens of the rows: of each file that holds them, and of the values that are in it.

    The values know the rows again after they were written to a file of another format: twice, as
    earlier books have them, and as they are known of a table in chunks. Then come the tokens of
    units, if the card has any; see `of_units`.
    """
    values, units = ValuesDigest(), UnitTokens(card)
    values.add(dataset)
    units.add(dataset.units)
    return [
        *files_of(card, data_dir),
        token_of(f"release of values {values_digest(_in_order(dataset.X), dataset.y)}"),
        values.token(),
        *units.tokens(),
    ]


class ValuesDigest:
    """A digest of all values of a table, the same for any division into chunks.

    It does not depend on the order of columns and of a card's categories.
    """

    def __init__(self) -> None:
        self._columns: dict[str, hashlib._Hash] = {}

    def add(self, dataset: Dataset) -> None:
        """Add the rows of a chunk, which has the columns of all others."""
        for name in dataset.X:
            column = dataset.X[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                texts = [*map(str, column.cat.categories), ""]  # the last one is of missing values
                known = np.array([_word(text, k < len(texts) - 1) for k, text in enumerate(texts)])
                self._add(f"categories {name}", known[column.cat.codes.to_numpy()])
            else:
                self._add(f"numbers {name}", _canonical(column.to_numpy()))
        self._add("target", _canonical(dataset.y))

    def _add(self, name: str, values: np.ndarray) -> None:
        digest = self._columns.setdefault(name, hashlib.sha256())
        digest.update(np.ascontiguousarray(values).data.cast("B"))

    def token(self) -> str:
        """Return the token of the rows so far."""
        said = [f"{name}\0{digest.hexdigest()}" for name, digest in sorted(self._columns.items())]
        return token_of(
            f"release of cells {hashlib.sha256(chr(0).join(said).encode()).hexdigest()}"
        )


def _word(text: str, is_there: bool) -> int:
    digest = hashlib.sha256(f"{is_there} {text}".encode()).digest()
    return int.from_bytes(digest[:7], "little")


def _canonical(values: np.ndarray) -> np.ndarray:
    """Return numbers as little-endian float64, of which one is 0 and one is missing."""
    numbers = np.asarray(values, "<f8") + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers


def known_rows(
    name: str, card: Card, data_dir: Path | None
) -> tuple[list[str], Dataset | None, str]:
    """Return the tokens of `identity_of`, the rows, and why there are none; empty if there are.

    Nothing is downloaded. Where the rows are not here, or are none that the card allows, only the
    files are known.
    """
    try:
        dataset = checked_rows(name, card, data_dir, clips=True, online=False)
    except DpreproError as error:
        return files_of(card, data_dir), None, str(error)
    return identity_of(card, dataset, data_dir), dataset, ""


def of_rows(tokens: Iterable[str]) -> set[str]:
    """Return the tokens of files and values: whoever shares one has the same rows."""
    return {token for token in tokens if not token.startswith(_UNIT)}


def of_units(tokens: Iterable[str], kind: Literal["values", "column"]) -> set[str]:
    """Return the tokens of the unit's values, or of the columns that it has in the files."""
    return {token for token in tokens if token.startswith(f"{_UNIT}{kind} ")}


class UnitTokens:
    """Tokens of the units of rows, which may come in chunks; none if the card has no units."""

    def __init__(self, card: Card) -> None:
        self._card, self._digest, self._are_any = card, hashlib.sha256(), False

    def add(self, units: np.ndarray | None) -> None:
        """Add the units of a chunk, object (n,)."""
        if units is not None and len(units):
            between = "\0" if self._are_any else ""
            self._digest.update((between + "\0".join(units)).encode())
            self._are_any = True

    def tokens(self) -> list[str]:
        """Return the tokens of the units so far."""
        card = self._card
        if card.unit is None:
            return []
        raw_names = [{new: old for old, new in source.rename.items()} for source in card.sources]
        columns = sorted({raw.get(card.unit, card.unit) for raw in raw_names})
        return [
            f"{_UNIT}values {token_of(f'release of units {self._digest.hexdigest()}')}",
            f"{_UNIT}column {json.dumps(columns)}",
        ]


def files_of(card: Card, data_dir: Path | None) -> list[str]:
    """Return a token of each file of a card that is here, as it is now.

    Tokens are random, and equal for equal contents on this machine; see `dprepro.data.register`.
    """
    contents = []
    for _, part in card.parts:
        if part.kind in SAME_EVERYWHERE:
            contents.append(f"{part.kind} {part.label}")
        elif digest := file_digest(card, part, data_dir):
            contents.append(f"file {digest}")
    return [token_of(f"release of {content}") for content in contents]


def file_token(digest: str) -> str:
    """Return the token of a file with this SHA-256, as `files_of` has it."""
    return token_of(f"release of file {digest}")


def _in_order(X: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in the order of their names: a card may list them in another one."""
    return X[sorted(X.columns)]


def place_of(card: Card, name: str) -> str:
    """Return what the book calls a card: its path, or the name of a built-in card."""
    return name if card.folder is None else str(Path(name).resolve())


def compared_facts(card: Card) -> list[str]:
    """Return in words what the card states of its rows, and every load compares with them."""
    facts = card.expect.model_dump(exclude_none=True)
    stated = [words for name, words in _IN_WORDS.items() if name in facts]
    if any(part.sha256 is not None for _, part in card.parts):
        stated.append("a checksum of a file")
    return [f"{words}, which the card states and which was compared" for words in stated]


def refuse_exact_facts(card: Card, own_table: bool = False) -> None:
    """Refuse a card by which the existence of a release would disclose more than its statement.

    With `own_table` the rows are not those of the card's files, and private whatever it says.

    Raises
    ------
    DpreproError
        If it has `distinct`, by which a row of one unit decides whether that of another counts; or
        if its rows are private and it states a checksum of them, or how many are positive.
    """
    if card.distinct is not None:
        raise DpreproError(
            f"the card of {card.name} has `distinct`: a row would decide whether a row of somebody "
            "else counts, which no epsilon covers. Drop repeated rows from the file by a rule that "
            "looks at one owner at a time, and take `distinct` out of the card"
        )
    if card.is_public and not own_table:
        return
    facts = card.expect.model_dump(exclude_none=True)
    named = [
        f"`expect: {name}`" for name in _IN_WORDS if name in facts and name not in _OF_THE_TABLE
    ]
    if any(part.sha256 is not None for _, part in card.parts):
        named.append("`sha256`")
    if named:
        raise DpreproError(
            f"the card of {card.name} states {' and '.join(named)} of private rows. A release "
            "exists only if that is true, so it would disclose it, and epsilon does not cover it. "
            "Take it out of the card"
        )


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
        years = [date_as_number(text, form.dates[0]) for text in values.to_pylist()]
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
