"""How a document ran and laid out its tables: the YAML file beside its CSV file."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

from pydantic import Field

from dprepro.errors import DpreproError, nearest
from dprepro.published.claims import ENDING as CLAIMS
from dprepro.published.published import FOLDER, PublishedCell, load_published
from dprepro.published.schema import Selector, Strict
from dprepro.yaml_model import read_model

# What else lies beside the layouts.
_NOT_LAYOUTS = ("deviations.yaml", CLAIMS)


class Protocol(Strict):
    """How the printed means came about; only results of the same protocol answer to them."""

    splits: int = Field(ge=1)
    test_share: float = Field(gt=0, lt=1)
    delta: float = Field(ge=0, lt=1)


class Column(Strict):
    """A column: a private method, and the one that stands in its non-private row."""

    title: str
    method: str
    nonprivate: str | None = None

    def label(self, epsilon: float) -> str:
        """Return the label whose results stand in the row of this privacy level."""
        return self.nonprivate or self.method if math.isinf(epsilon) else self.method


class TableLayout(Strict):
    """One printed table. `datasets` maps card names to printed names, in printed order."""

    title: str
    metric: str
    datasets: dict[str, str]
    columns: list[Column]


class Impossible(Selector):
    """Cells that nobody outside can reproduce, and why."""

    reason: str = Field(min_length=1)


class Document(Strict):
    """A reproduced document."""

    paper: str
    title: str
    protocol: Protocol
    tables: dict[str, TableLayout]
    impossible: list[Impossible] = Field(default_factory=list)

    def cells(self) -> list[PublishedCell]:
        """Return the printed cells of the tables and datasets laid out here."""
        return [
            cell
            for cell in load_published(self.paper)
            if cell.table in self.tables and cell.dataset in self.tables[cell.table].datasets
        ]

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
    """Return the document named, or all that have a layout.

    Raises
    ------
    DpreproError
        If no document of that name has a layout; the message lists those that do.
    """
    documents = load_documents()
    if paper is None:
        return list(documents.values())
    if paper not in documents:
        names = list(documents)
        raise DpreproError(
            f"document {paper!r} has no table layout{nearest(paper, names) or '.'} "
            f"Allowed: {', '.join(names)}. A YAML file beside its CSV file adds one."
        )
    return [documents[paper]]
