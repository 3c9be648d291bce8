"""Hypotheses about settings that a document does not state, and what came of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from dprepro.papers.folders import files_of
from dprepro.papers.published_cell import PublishedCell, load_published
from dprepro.papers.schema import Names, Printed, Selector, Strict
from dprepro.runtime.errors import Faults
from dprepro.runtime.yaml_files import read_with_source


class Hypothesis(Strict):
    """One setting: the label of its results in the journals, and what it says.

    `dataset` is the card of its rows where these differ from the printed dataset's.
    """

    label: str = Field(min_length=1)
    says: str = Field(min_length=1)
    dataset: str | None = None


class Question(Strict):
    """What is not stated about a printed column, the hypotheses tried, and the finding.

    `method` is the label of the column; `says` is the finding in words: whether a hypothesis was
    identified, all were refuted, or it stays unknown.
    """

    paper: str
    table: str
    method: str
    datasets: Names = Field(min_length=1)
    question: str = Field(min_length=1)
    tried: list[Hypothesis] = Field(min_length=1)
    finding: Literal["identified", "refuted", "unknown"]
    says: str = Field(min_length=1)

    @model_validator(mode="after")
    def _each_once(self) -> Question:
        keys = [(hypothesis.label, hypothesis.dataset) for hypothesis in self.tried]
        for label, dataset in keys:
            if keys.count((label, dataset)) > 1:
                raise ValueError(f"{label!r} is tried twice; keep one entry")
        return self

    def asks_about(self, paper: str, table: str, dataset: str, method: str) -> bool:
        """Whether this is a question about a printed column."""
        own = (self.paper, self.table, self.method)
        return (paper, table, method) == own and dataset in self.datasets


class Columns(Strict):
    """The printed columns of one method in a table, one for each dataset."""

    table: str
    datasets: Names = Field(min_length=1)

    def require_printed(self, cells: Sequence[PublishedCell], method: str, where: str) -> None:
        """Raise DpreproError unless `cells` print this method in each of the columns."""
        selector = Selector(tables=[self.table], datasets=self.datasets, methods=[method])
        selector.require_printed(cells, where)


class HeldOut(Strict):
    """Which printed cells choose a setting of a column, and which others judge it, once.

    Without `judged_on`, each dataset of `chosen_on` is left out in turn: the setting is chosen on
    the others, and judged on it. `ignored` are, by dataset, parts of the labels of settings that
    say nothing of it.
    """

    paper: str
    method: str
    chosen_on: Columns
    judged_on: Columns | None = None
    ignored: dict[str, Names] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_leave_one_out(self) -> HeldOut:
        if self.judged_on is None and len(self.chosen_on.datasets) < 2:
            raise ValueError("to leave one dataset out takes two or more; add `judged_on`")
        return self


class Hypotheses(Strict):
    """The questions of a file, and the settings that are judged on other cells."""

    questions: list[Question]
    held_out: list[HeldOut] = Field(default_factory=list)


def load_hypotheses(path: Path | None = None) -> list[Question]:
    """Return the questions of all papers, or those of a user's file, in file order.

    Raises DpreproError as `read_hypotheses`.
    """
    files = files_of("hypotheses.yaml", path)
    return [entry for file in files for entry in _read(file, file.stat().st_mtime_ns).questions]


def load_held_out(path: Path | None = None) -> list[HeldOut]:
    """Return which settings are judged on cells that did not choose them, in file order.

    Raises DpreproError as `read_hypotheses`.
    """
    files = files_of("hypotheses.yaml", path)
    return [entry for file in files for entry in _read(file, file.stat().st_mtime_ns).held_out]


@cache  # asked for questions and for what is held out
def _read(path: Path, changed: int) -> Hypotheses:
    return read_hypotheses(path)


def read_hypotheses(path: Path, printed: Printed = load_published) -> Hypotheses:
    """Return what a file asks; `printed` gives the cells of a paper.

    Raises DpreproError, with all faults, if the file is malformed, or an entry names something that
    is not printed.
    """
    source, found = read_with_source(path, Hypotheses)
    faults = Faults()
    for number, entry in enumerate(found.questions):
        where = f"{source.where('questions', number)}: question {number + 1}"
        columns = Columns(table=entry.table, datasets=entry.datasets)
        with faults.noted():
            columns.require_printed(printed(entry.paper), entry.method, where)
    for number, held in enumerate(found.held_out):
        where = f"{source.where('held_out', number)}: held_out {number + 1}"
        for columns in filter(None, (held.chosen_on, held.judged_on)):
            with faults.noted():
                columns.require_printed(printed(held.paper), held.method, where)
    faults.require_none()
    return found
