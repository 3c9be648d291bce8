"""Whether the folder of a paper is sound: all that is wrong with its files, with places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from dprepro.data.card import card_names
from dprepro.judge.claims import Claims, read_claims
from dprepro.judge.deviations import Deviations, read_deviations
from dprepro.methods import registry
from dprepro.papers.document import Document, read_document
from dprepro.papers.folders import LAYOUT, find_paper, paper_folders
from dprepro.papers.hypotheses import Hypotheses, read_hypotheses
from dprepro.papers.published_cell import PublishedCell, load_published, read_cells
from dprepro.results.margins import find_metric
from dprepro.runtime.errors import DpreproError, Faults
from dprepro.runtime.files import is_file

MODELS: dict[str, type[BaseModel]] = {
    "paper": Document,
    "claims": Claims,
    "deviations": Deviations,
    "hypotheses": Hypotheses,
}
"""What each YAML file in the folder of a paper is read as."""


@dataclass(frozen=True)
class PaperCheck:
    """What was found in the folder of a paper.

    Attributes
    ----------
    name, folder
        The paper.
    cells
        How many printed cells each table has.
    claims
        How many claims there are.
    faults
        What has to be mended, a line each, with file and line.
    notes
        What is no fault, and may be a slip: names that dprepro does not know.
    """

    name: str
    folder: Path
    cells: Counter[str]
    claims: int
    faults: Faults
    notes: list[str]


def check_paper(given: str) -> PaperCheck:
    """Return what the folder of a paper holds, and everything that is wrong with it.

    Raises DpreproError as `find_paper`, if `given` is no paper.
    """
    name = find_paper(given)
    folder = paper_folders()[name]
    place, faults = folder / "cells.csv", Faults()
    cells: Sequence[PublishedCell] = ()
    with faults.noted():
        cells, found = read_cells(place)
        faults.extend(found)

    def printed(paper: str) -> Sequence[PublishedCell]:
        return cells if paper == name else load_published(paper)

    for metric, line in {cell.metric: cell.line for cell in reversed(cells)}.items():
        try:
            find_metric(metric)
        except DpreproError as error:
            faults.append(f"{place}:{line}: {error}")
    notes, claims = list[str](), 0
    layout = None
    if cells:  # without them every selector would be wrong
        with faults.noted():
            layout = read_document(folder, printed)
            notes = _notes(layout)
        with faults.noted():
            if is_file(folder / "claims.yaml"):
                claims = len(read_claims(folder / "claims.yaml", printed, layout).all())
        with faults.noted():
            if is_file(folder / "deviations.yaml"):
                read_deviations(folder / "deviations.yaml", printed)
        with faults.noted():
            if is_file(folder / "hypotheses.yaml"):
                read_hypotheses(folder / "hypotheses.yaml", printed)
    return PaperCheck(name, folder, Counter(c.table for c in cells), claims, faults, notes)


def _notes(document: Document) -> list[str]:
    """Name what the layout names and dprepro does not have: it may be a user's own, or a slip."""
    methods, cards = registry.all_methods(), card_names()
    labels = dict.fromkeys(name for table in document.tables.values() for name in table.labels)
    datasets = dict.fromkeys(
        name for layout in document.tables.values() for name in layout.datasets
    )
    notes = []
    if unknown := [name for name in labels if name not in methods]:
        notes.append(
            f"no method is called {', '.join(unknown)}: their results come from a config that "
            "gives a method such a `label`"
        )
    if unknown := [name for name in datasets if name not in cards]:
        notes.append(
            f"no card is called {', '.join(unknown)}: their results come from a config with a card "
            "of that name"
        )
    return [f"{LAYOUT}: {note}" for note in notes]
