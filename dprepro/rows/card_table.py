"""A table of the user's, read as the card of a dataset says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.card import Card
from dprepro.data.cell_values import Holds, Kind, Spelling
from dprepro.data.cleaning import (
    CardError,
    Cleaned,
    clean_with_units,
    column_kinds,
    marks_of,
    not_two_labels,
    other_labels,
    public_domain,
)
from dprepro.data.formats import dialect_of
from dprepro.rows.readers import CsvSettings, TableError
from dprepro.rows.table import Table
from dprepro.rows.units import Owners, UnitBound
from dprepro.runtime.errors import nearest


class CardTable(Table):
    """The features and the target of a card, cleaned chunk by chunk as a dataset's.

    Other columns of the table are not read. Column names are those of the card, or those that its
    first source renames. That source also says how a CSV is written: separator, encoding, columns.
    `expect`, `sha256` and `test` are about the dataset's own files, and have no influence.

    Raises TableError if the table lacks a column, or the card asks for what cannot be done row by
    row.

    Parameters
    ----------
    source
        See `Table.open`.
    card
        With a public domain.
    store, encrypted
        See `Table.open`.
    bound
        How many rows of each unit of the card are read; None reads all rows. Each pass over the
        rows then reads the table twice; see `dprepro.rows.units`.

    Attributes
    ----------
    domain
        That of the card.
    """

    def __init__(
        self,
        source: Any,
        card: Card,
        *,
        store: Path | None = None,
        encrypted: bool = False,
        bound: UnitBound | None = None,
    ) -> None:
        domain = public_domain(card)
        if domain is None or card.features is None:
            raise TableError(
                f"the card of {card.name} gives no public domain, and a table that is read in "
                "chunks needs one: add `features` to the card"
            )
        if card.distinct is not None:
            raise TableError(
                f"the card of {card.name} drops repeated rows (`distinct`), which cannot be done "
                "chunk by chunk: leave it out"
            )
        if card.complete:
            raise TableError(
                f"the card of {card.name} drops rows that lack a value (`complete`), and a table "
                "that is read in chunks keeps all of its rows: drop them from the table, and leave "
                "it out"
            )
        self.domain = domain
        self._features = card.features
        if bound is None:  # all rows train, whoever owns them
            card = card.model_copy(update={"unit": None, "rows_per_unit": None})
        self._bound = None if bound is None else bound.drawn(None if encrypted else store)
        self._card, self._source = card, card.sources[0]
        self._raw = Table.open(source, csv_settings(card), store=store, encrypted=encrypted)
        self.store, self.encrypted = self._raw.store, self._raw.encrypted
        named = (*self._features, card.target, *([card.unit] if card.unit else []))
        self._raw_names = {name: self._raw_name(name) for name in named}
        self._raw.check(dict.fromkeys(self._raw_names.values(), "text"))

    @property
    def names(self) -> list[str]:
        """The features of the card, then its target."""
        return [*self._features, self._card.target]

    @property
    def missing(self) -> tuple[str, ...]:
        """None: the card's texts are missing already."""
        return ()

    def holds(self, name: str) -> Holds:
        """Return what a column holds once it is clean. Labels are codes."""
        is_text = name in self._features and self._features[name].numeric is None
        return "text" if is_text else "numbers"

    def label_dtype(self, name: str) -> np.dtype:
        """Return that of codes."""
        return np.dtype(np.int64)

    def check(self, kinds: Mapping[str, Kind]) -> None:
        """Raise TableError if a column is not on the card."""
        for name in kinds:
            if name not in self.names:
                raise TableError(f"the card has no column {name!r}{nearest(name, self.names)}")

    def chunks(
        self, kinds: Mapping[str, Kind], chunk_rows: int | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows as `Table.chunks`, clean: features as `Dataset` has them, targets coded.

        Raises DpreproError as `Table.chunks` and `clean_with_units`.
        """
        self.check(kinds)
        kept, before = self._kept(chunk_rows), 0
        for rows in self.cleaned(chunk_rows):
            X, y = rows.X, rows.y
            if kept is not None:
                chosen = np.flatnonzero(kept[before : before + len(y)])
                before += len(y)
                if not len(chosen):
                    continue
                X, y = X.iloc[chosen], y[chosen]
            columns = {name: X[name].array for name in self._features} | {self._card.target: y}
            yield pd.DataFrame({name: columns[name] for name in kinds}, copy=False)

    def _kept(self, chunk_rows: int | None) -> np.ndarray | None:
        """Return which rows train, bool (n,); None if all do."""
        if self._bound is None:
            return None
        owners = Owners(self._bound)
        for rows in self.cleaned(chunk_rows):
            owners.add(rows.X, rows.y, np.asarray(rows.units))
        return owners.kept()

    def cleaned(self, chunk_rows: int | None = None) -> Iterator[Cleaned]:
        """Yield all rows, of each unit as many as there are, clean and with their units.

        Raises DpreproError as `chunks`.
        """
        card, others, before = self._card, set[str](), 0
        marks = marks_of(card, self._source)
        for raw in self._raw.records(self._raw_kinds, chunk_rows):
            try:
                rows = clean_with_units(raw, card, self._source)
            except CardError as error:
                raise TableError(error.with_lines(self.line_of, before)) from error
            if card.task == "binary" and card.labels is None:
                target = raw[self._raw_names[card.target]]
                others |= other_labels(target, card, marks)
                if len(others) > 1:
                    raise TableError(not_two_labels(card))
            before += len(rows.y)
            yield rows

    @property
    def _raw_kinds(self) -> dict[str, Kind]:
        """How the columns of the table are read, before they are clean."""
        kinds = column_kinds(self._card, self._source.model_copy(update={"rename": {}}))
        return {
            raw: "numeric" if kinds[name] == "numeric" else "text"
            for name, raw in self._raw_names.items()
        }

    def line_of(self, row: int) -> int | None:
        """Return the line of the file in which a row begins, from 0; None if there are no lines."""
        return self._raw.line_of(row)

    @property
    def known_rows(self) -> int | None:
        """How many rows there are, if the files say so, and all are read: private."""
        return self._raw.known_rows if self._bound is None else None

    @property
    def paths(self) -> list[Path]:
        """The files, in the order in which they are read."""
        return self._raw.paths

    @property
    def bytes_read(self) -> tuple[int, int] | None:
        """How much of a text file the latest pass has read, and its size; else None."""
        return self._raw.bytes_read

    def identity(self) -> dict[str, Any]:
        """Return the identity of the table, a digest of the card, and which rows are kept."""
        digest = hashlib.sha256(self._card.model_dump_json().encode()).hexdigest()
        kept = {} if self._bound is None else self._bound.identity()
        return {**self._raw.identity(), "card": digest, **kept}

    def _raw_name(self, name: str) -> str:
        """Return what the table calls a column of the card."""
        old = {new: old for old, new in self._source.rename.items()}.get(name, name)
        found = [given for given in dict.fromkeys((old, name)) if given in self._raw.names]
        if len(found) == 1:
            return found[0]
        if found:
            raise TableError(
                f"the table has a column {old!r}, which the card renames to {name!r}, and a column "
                f"{name!r}: take one of them out"
            )
        roles = {self._card.target: "target", self._card.unit: "unit"}
        what = roles.get(name, "feature")
        renamed = f" (or {old!r}, which the card renames)" if old != name else ""
        raise TableError(
            f"the table has no column {name!r}{renamed}, a {what} of the card"
            f"{self._raw.nearest(name, [*self.names, *self._source.rename])}"
        )


def csv_settings(card: Card) -> CsvSettings:
    """Return how a card says that a CSV is written, by its first source."""
    given = card.sources[0].format or card.format
    missing = tuple(card.missing)
    if given.kind not in (None, "csv"):
        return CsvSettings(missing=missing, keeps_texts=True)
    spelling = Spelling(given.decimal, given.thousands)
    return CsvSettings(dialect_of(given), spelling, missing, keeps_texts=True)
