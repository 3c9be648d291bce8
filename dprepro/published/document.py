"""The protocol and the layout of a document's tables: the YAML file beside its CSV file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from dprepro.errors import DpreproError, nearest
from dprepro.published.claims import ENDING as CLAIMS
from dprepro.published.published import FOLDER, PublishedCell, load_published
from dprepro.published.schema import Selector, Strict
from dprepro.yaml_model import read_model

# Other YAML files in the folder of the layouts.
_NOT_LAYOUTS = ("deviations.yaml", CLAIMS, "hypotheses.yaml")


class Protocol(Strict):
    """How the printed means were obtained; only results of the same protocol are compared.

    `evaluation` and `splits` are those of a config; `test_share` is only for random splits. If the
    printed number of splits takes too long, `judged_on` says how many are judged. The tolerance
    then grows by their sampling error.
    """

    splits: int = Field(ge=1)
    judged_on: int | None = Field(default=None, ge=1)
    evaluation: Literal["random", "folds", "test-set"] = "random"
    test_share: float | None = Field(default=None, gt=0, lt=1)
    delta: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _check(self) -> Protocol:
        if (self.evaluation == "random") != (self.test_share is not None):
            raise ValueError("random splits need `test_share`, and other evaluations have none")
        if self.needed > self.splits:
            raise ValueError(f"`judged_on` must be at most `splits`, {self.splits}")
        return self

    @property
    def needed(self) -> int:
        """How many splits a verdict takes."""
        return self.judged_on or self.splits

    @property
    def held_out(self) -> float:
        """The share of the rows that a split holds out; 0 for the donors' own test set."""
        if self.test_share is not None:
            return self.test_share
        return 1 / self.splits if self.evaluation == "folds" else 0.0


class Column(Strict):
    """A column: a private method, and its non-private twin."""

    title: str
    method: str
    nonprivate: str | None = None

    def label(self, epsilon: float) -> str:
        """Return the label whose results stand in the row of this privacy level."""
        return self.nonprivate or self.method if math.isinf(epsilon) else self.method


class TableLayout(Strict):
    """One printed table. `datasets` maps card names to printed names, in printed order.

    `also` names further metrics that it prints; each is shown as a separate table. `protocol`
    replaces that of the document, and `protocols` replaces both for single datasets. `notes` say
    what a reader of the table must know, above all slips of the original.
    """

    title: str
    metric: str
    also: list[str] = Field(default_factory=list)
    datasets: dict[str, str]
    columns: list[Column]
    protocol: Protocol | None = None
    protocols: dict[str, Protocol] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check(self) -> TableLayout:
        for name in self.protocols.keys() - self.datasets.keys():
            raise ValueError(f"`protocols` names {name!r}, no dataset of this table")
        return self


class Impossible(Selector):
    """Cells that cannot be reproduced here, and why."""

    reason: str = Field(min_length=1)


class Picture(Strict):
    """A printed picture without printed numbers: what it shows, and which command draws it here.

    If its data were never published, `drawn_by` draws the same picture with other data.
    """

    shows: str
    dataset: str
    drawn_by: str


class Document(Strict):
    """A reproduced document. `pictures` are by their printed numbers."""

    paper: str
    title: str
    protocol: Protocol
    tables: dict[str, TableLayout]
    impossible: list[Impossible] = Field(default_factory=list)
    pictures: dict[str, Picture] = Field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What a reader must know about the tables, and which command draws each picture."""
        found = [
            f"{self.paper}, {name}: {note}"
            for name, layout in self.tables.items()
            for note in layout.notes
        ]
        for number, picture in self.pictures.items():
            reason = self._why_no_data(picture.dataset)
            verdict = f"impossible: {reason}. For other data, it" if reason else "it"
            found.append(
                f"{self.paper}, Figure {number} ({picture.shows}): {verdict} is drawn by "
                f"`{picture.drawn_by}`"
            )
        return found

    def _why_no_data(self, dataset: str) -> str | None:
        """Return the reason why a dataset cannot be run, or None."""
        of_data = [entry for entry in self.impossible if dataset in (entry.datasets or ())]
        return of_data[0].reason if of_data else None

    def cells(self) -> list[PublishedCell]:
        """Return the printed cells of the tables and datasets laid out here."""
        return [
            cell
            for cell in load_published(self.paper)
            if cell.table in self.tables and cell.dataset in self.tables[cell.table].datasets
        ]

    def printed_in(self, metric: str | None) -> Iterator[tuple[str, str, TableLayout]]:
        """Yield (table, metric, layout) of every printed table, only those in `metric` if given."""
        for name, layout in self.tables.items():
            for printed in (layout.metric, *layout.also):
                if metric in (None, printed):
                    yield name, printed, layout

    def protocol_of(self, table: str, dataset: str) -> Protocol:
        """Return the protocol of the cells of a dataset in a table."""
        layout = self.tables[table]
        return layout.protocols.get(dataset) or layout.protocol or self.protocol

    def why_impossible(self, cell: PublishedCell) -> str | None:
        """Return the reason why `cell` cannot be reproduced, or None if it can be tried."""
        return next((entry.reason for entry in self.impossible if entry.matches(cell)), None)


@cache
def load_documents(folder: Path = FOLDER) -> dict[str, Document]:
    """Return the documents that have a layout, by identifier, in the order of their file names.

    Raises
    ------
    DpreproError
        If a layout is malformed, or names cells that the document does not print.
    """
    documents = {}
    for path in sorted(folder.glob("*.yaml")):
        if path.name.endswith(_NOT_LAYOUTS):
            continue
        document = read_model(path, Document)
        for entry in document.impossible:
            entry.require_printed(load_published(document.paper), str(path))
        documents[document.paper] = document
    return documents


def select_documents(paper: str | None = None) -> list[Document]:
    """Return the named document (the beginning of its name is enough), or all with a layout.

    Raises
    ------
    DpreproError
        If no document, or more than one, has a name that begins so; the message lists the names.
    """
    documents = load_documents()
    if paper is None:
        return list(documents.values())
    if paper in documents:
        return [documents[paper]]
    names = list(documents)
    found = [name for name in names if paper and name.startswith(paper)]
    if len(found) > 1:
        raise DpreproError(
            f"document {paper!r} could be {' or '.join(found)}; give more of the name"
        )
    if not found:
        raise DpreproError(
            f"document {paper!r} has no table layout{nearest(paper, names) or '.'} "
            f"Allowed: {', '.join(names)}. A YAML file beside its CSV file adds one."
        )
    return [documents[found[0]]]
