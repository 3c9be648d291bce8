"""Hypotheses about settings that a document does not state, and what came of each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from dprepro.papers.cells import FOLDER, files_of, load_published
from dprepro.papers.schema import Names, Selector, Strict
from dprepro.runtime.yaml_files import read_model


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

    def require_printed(self, paper: str, method: str, where: str) -> None:
        """Raise DpreproError unless `paper` prints this method in each of the columns."""
        selector = Selector(tables=[self.table], datasets=self.datasets, methods=[method])
        selector.require_printed(load_published(paper), where)


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


class _File(Strict):
    questions: list[Question]
    held_out: list[HeldOut] = Field(default_factory=list)


@cache  # `dprepro check` asks three times for what comes with dprepro
def _shipped(path: Path) -> _File:
    return read_model(path, _File)


def _read(path: Path) -> _File:
    return _shipped(path) if FOLDER in path.parents else read_model(path, _File)


def load_hypotheses(path: Path | None = None) -> list[Question]:
    """Return the questions of all papers, or those of a user's file, in file order.

    Raises DpreproError if the file is malformed, or a question names something that is not printed.
    """
    found = []
    for file in files_of("hypotheses.yaml", path):
        for number, entry in enumerate(_read(file).questions, start=1):
            columns = Columns(table=entry.table, datasets=entry.datasets)
            columns.require_printed(entry.paper, entry.method, f"{file}: question {number}")
            found.append(entry)
    return found


def load_held_out(path: Path | None = None) -> list[HeldOut]:
    """Return which settings are judged on cells that did not choose them, in file order.

    Raises DpreproError if the file is malformed, or an entry names something that is not printed.
    """
    found = []
    for file in files_of("hypotheses.yaml", path):
        for number, entry in enumerate(_read(file).held_out, start=1):
            for columns in filter(None, (entry.chosen_on, entry.judged_on)):
                columns.require_printed(entry.paper, entry.method, f"{file}: held_out {number}")
            found.append(entry)
    return found
