"""The protocol and the layout of a document's tables: its file ``paper.yaml``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from dprepro.papers.folders import FOLDER, LAYOUT, find_paper, paper_folders
from dprepro.papers.published_cell import PublishedCell, load_published
from dprepro.papers.schema import Names, Printed, Selector, Strict, require_known
from dprepro.runtime.errors import Faults
from dprepro.runtime.yaml_files import YamlSource, read_with_source


class Protocol(Strict):
    """How the printed means were obtained; only results of the same protocol are compared.

    `evaluation`, `splits` and `folds` are those of a config; `test_share` is only for random
    splits. `judged_on` says how many splits are judged if the printed number takes too long, and
    `other_rows` that the printed means are of other rows of the same population.
    """

    splits: int = Field(ge=1)
    judged_on: int | None = Field(default=None, ge=1)
    evaluation: Literal["random", "stratified", "folds", "test-set"] = "random"
    folds: int | None = Field(default=None, ge=2)
    test_share: float | None = Field(default=None, gt=0, lt=1)
    delta: float = Field(ge=0, lt=1)
    other_rows: bool = False

    @model_validator(mode="after")
    def _check(self) -> Protocol:
        if (self.evaluation in ("random", "stratified")) != (self.test_share is not None):
            raise ValueError("random splits need `test_share`, and other evaluations have none")
        if self.folds is not None and self.evaluation != "folds":
            raise ValueError(f"`folds` is for `evaluation: folds`, not for {self.evaluation}")
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
        return 1 / (self.folds or self.splits) if self.evaluation == "folds" else 0.0

    @property
    def overlap(self) -> float:
        """Test rows by training rows where the rows are other rows than ours, else 0."""
        return self.held_out / (1 - self.held_out) if self.other_rows else 0.0


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

    `also` names further metrics, each shown as a separate table. `multiples` names metrics that are
    another one times a constant of the row, whose standard deviation is printed with the other.
    `protocol` replaces that of the document, and `protocols` both for single datasets. `notes` say
    what a reader of the table must know, above all slips of the original.
    """

    title: str
    metric: str
    also: list[str] = Field(default_factory=list)
    multiples: dict[str, str] = Field(default_factory=dict)
    datasets: dict[str, str]
    columns: list[Column]
    protocol: Protocol | None = None
    protocols: dict[str, Protocol] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)

    @property
    def labels(self) -> list[str]:
        """The labels of all columns and of their non-private twins."""
        return [name for c in self.columns for name in (c.method, c.nonprivate) if name]

    @model_validator(mode="after")
    def _check(self) -> TableLayout:
        for name in self.protocols.keys() - self.datasets.keys():
            raise ValueError(f"`protocols` names {name!r}, no dataset of this table")
        return self


class Impossible(Selector):
    """Cells that cannot be reproduced here, and why.

    With `until_run` the method or the rows are what is missing: results that answer are judged.
    """

    reason: str = Field(min_length=1)
    until_run: bool = False


class OneDraw(Selector):
    """Cells whose printed repeats share one draw, of noise (a fixed seed) or of a split.

    Their printed standard deviation lacks what is shared, so each counts as a single run. `reason`
    says how it is known.
    """

    of: Literal["noise", "split"] = "noise"
    reason: str = Field(min_length=1)

    @property
    def in_words(self) -> str:
        """What is shared: ``"printed splits that share one draw of noise"``."""
        if self.of == "split":
            return "printed repeats that share one split"
        return "printed splits that share one draw of noise"


class ChosenOn(Selector):
    """Printed cells that settings were compared with, of the document itself or of `paper`."""

    paper: str | None = None
    tables: Names
    datasets: Names
    methods: Names
    metrics: Names


class Choice(Selector):
    """Columns whose settings or rows were chosen by looking at printed numbers.

    `selected_from` is how many settings, choices of rows included, were compared at least;
    `selected_on` are the printed cells that they were compared with, and `what` says what was
    chosen. A choice is one for whole columns: it names no epsilons.
    """

    tables: Names
    datasets: Names
    methods: Names
    epsilons: None = None
    selected_from: int = Field(ge=2)
    selected_on: list[ChosenOn] = Field(min_length=1)
    what: str = Field(min_length=1)


class Picture(Strict):
    """A printed picture without printed numbers: what it shows, and which command draws it here.

    If its data were never published, `drawn_by` draws the same picture with other data.
    """

    shows: str
    dataset: str
    drawn_by: str


class Unchecked(Strict):
    """A statement with numbers, or a picture, that nothing here can check, and why."""

    place: str = Field(min_length=1)
    states: str = Field(min_length=1)
    reason: str = Field(min_length=1)

    def __str__(self) -> str:
        return f"{self.place}: {self.states} Not checked: {self.reason}"


class Document(Strict):
    """A reproduced document. `pictures` are by their printed numbers.

    With its cells, its claims (`dprepro.judge.claims`) and the notes of its tables,
    `unchecked` covers every number that the document prints. `cite` names entries of
    `dprepro.cli.cite`.
    """

    paper: str
    title: str
    cite: list[str] = Field(default_factory=list)
    protocol: Protocol
    tables: dict[str, TableLayout]
    impossible: list[Impossible] = Field(default_factory=list)
    one_draw: list[OneDraw] = Field(default_factory=list)
    chosen: list[Choice] = Field(default_factory=list)
    pictures: dict[str, Picture] = Field(default_factory=dict)
    unchecked: list[Unchecked] = Field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What a reader must know about tables and pictures, and what is not checked."""
        found = self.notes_on(self.cells())
        for number, picture in self.pictures.items():
            of_data = (e.reason for e in self.impossible if picture.dataset in (e.datasets or ()))
            reason = next(of_data, None)
            verdict = f"impossible: {reason}. For other data, it" if reason else "it"
            found.append(
                f"{self.paper}, Figure {number} ({picture.shows}): {verdict} is drawn by "
                f"`{picture.drawn_by}`"
            )
        return found + [f"{self.paper}, {entry}" for entry in self.unchecked]

    def notes_on(self, cells: Sequence[PublishedCell]) -> list[str]:
        """What a reader must know about the tables of these printed cells, and of their draws."""
        own = [cell for cell in cells if cell.paper == self.paper]
        tables = {cell.table for cell in own}
        found = [
            f"{self.paper}, {name}: {note}"
            for name, layout in self.tables.items()
            for note in layout.notes
            if name in tables
        ]
        return found + [
            f"{self.paper}, {entry.words}: {entry.in_words} count as a single run: {entry.reason}"
            for entry in self.one_draw
            if any(map(entry.matches, own))
        ]

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

    def require_place(self, cell: PublishedCell, where: str) -> None:
        """Raise DpreproError, with the nearest names, unless a table has a place for `cell`."""
        require_known(cell.table, self.tables, f"{where}: table", f"of {self.paper}")
        layout, faults = self.tables[cell.table], Faults()
        for name, allowed, what in (
            (cell.dataset, list(layout.datasets), "dataset"),
            (cell.method, layout.labels, "method"),
            (cell.metric, [layout.metric, *layout.also], "metric"),
        ):
            with faults.noted():
                here = f"of table {cell.table} of {self.paper}"
                require_known(name, allowed, f"{where}: {what}", here)
        faults.require_none()

    def protocol_of(self, table: str, dataset: str) -> Protocol:
        """Return the protocol of the cells of a dataset in a table."""
        layout = self.tables[table]
        return layout.protocols.get(dataset) or layout.protocol or self.protocol

    def why_impossible(self, cell: PublishedCell, is_run: bool = False) -> str | None:
        """Return the reason why `cell` cannot be reproduced, or None if it can be tried.

        Where it was run all the same, what dprepro itself lacks is no reason.
        """
        entries = (entry for entry in self.impossible if not (is_run and entry.until_run))
        return next((entry.reason for entry in entries if entry.matches(cell)), None)

    def spread_of(self, cell: PublishedCell) -> float | None:
        """Return the printed standard deviation of a cell, also where it stands at a multiple."""
        other = self.tables[cell.table].multiples.get(cell.metric)
        if cell.std is not None or other is None:
            return cell.std
        twin = self._twins.get((cell.table, cell.dataset, cell.method, cell.epsilon, other))
        if twin is None or twin.std is None or twin.mean == 0:
            return None
        return twin.std * cell.mean / twin.mean

    @cached_property
    def _twins(self) -> dict[tuple[str, str, str, float, str], PublishedCell]:
        return {(c.table, c.dataset, c.method, c.epsilon, c.metric): c for c in self.cells()}

    def choice_of(self, cell: PublishedCell) -> Choice | None:
        """Return how a column's settings were chosen by printed numbers, or None."""
        return next((choice for choice in self.chosen if choice.matches(cell)), None)

    def is_one_draw(self, cell: PublishedCell) -> bool:
        """Whether the printed repeats of `cell` share one draw, of noise or of a split."""
        return any(entry.matches(cell) for entry in self.one_draw)


@cache
def load_documents(folder: Path = FOLDER) -> dict[str, Document]:
    """Return the documents that have a layout, by identifier, in the order of their folders.

    Raises DpreproError if a layout is malformed, or names cells that the document does not print.
    """
    found = (read_document(path.parent) for path in sorted(folder.glob(f"*/{LAYOUT}")))
    return {document.paper: document for document in found}


def read_document(folder: Path, printed: Printed = load_published) -> Document:
    """Return the document that a folder lays out.

    Raises DpreproError as `load_documents`, with all faults; `printed` gives the cells of a paper.
    """
    source, document = read_with_source(folder / LAYOUT, Document)
    faults = Faults()
    own = printed(document.paper)
    marked: dict[str, Sequence[Impossible | OneDraw | Choice]] = {
        "impossible": document.impossible,
        "one_draw": document.one_draw,
        "chosen": document.chosen,
    }
    for name, entries in marked.items():
        for number, entry in enumerate(entries):
            with faults.noted():
                entry.require_printed(own, source.where(name, number))
    _note_places(document, own, source, folder / "cells.csv", faults)
    _note_choices(document, source, printed, faults)
    faults.require_none()
    return document


def _note_places(
    document: Document,
    cells: Sequence[PublishedCell],
    source: YamlSource,
    path: Path,
    faults: Faults,
) -> None:
    """Note printed cells without a place in the layout, and places without a printed cell."""
    for cell in cells:
        with faults.noted():
            where = f"{path}:{cell.line}"
            require_known(cell.paper, [document.paper], f"{where}: paper", f"of {source.path}")
            document.require_place(cell, where)
    for table, layout in document.tables.items():
        own = [cell for cell in cells if cell.table == table]
        for dataset in layout.datasets if own else ():
            with faults.noted():
                known = list(dict.fromkeys(cell.dataset for cell in own))
                where = source.where("tables", table, "datasets", dataset)
                require_known(dataset, known, where, f"of table {table} in {path}")


def _note_choices(document: Document, source: YamlSource, printed: Printed, faults: Faults) -> None:
    """Note choices that look at cells that nobody prints, and two choices of one column."""
    for number, choice in enumerate(document.chosen):
        for position, looked_at in enumerate(choice.selected_on):
            with faults.noted():
                cells = printed(looked_at.paper or document.paper)
                where = source.where("chosen", number, "selected_on", position)
                looked_at.require_printed(cells, where)
    for cell in printed(document.paper):
        if sum(choice.matches(cell) for choice in document.chosen) > 1:
            faults.append(
                f"{source.where('chosen')}: two entries hold {cell}; let one entry say how it was "
                "chosen"
            )
            break


def select_documents(paper: str | None = None) -> list[Document]:
    """Return the named document (the beginning of its name is enough), or all with a layout.

    `paper` may be the folder of a user's own, which is read again each time.

    Raises DpreproError as `find_paper` and `read_document`.
    """
    documents = load_documents()
    if paper is None:
        return list(documents.values())
    name = find_paper(paper)
    return [documents[name] if name in documents else read_document(paper_folders()[name])]
