"""`dprepro run --until-decided`, in the laboratory, against a printed table that is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.papers import document as document_module
from dprepro.papers import folders
from dprepro.papers.document import Column, Document, Protocol, TableLayout
from dprepro.papers.published_cell import PublishedCell
from tests.in_process import in_process
from tests.lab import Lab, lab

__all__ = ["in_process", "lab"]

PUBLISHED = {"paper": "lab-2026", "table": "1"}


def _printed(method: str, epsilon: float, mean: float, std: float | None) -> PublishedCell:
    return PublishedCell("lab-2026", "1", "tiny", method, epsilon, "auc", mean, std, 3, 3)


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[PublishedCell]:
    """Print a document of the laboratory; a test fills in its cells."""
    cells: list[PublishedCell] = []
    layout = TableLayout(
        title="AUROC", metric="auc", datasets={"tiny": "Tiny"},
        columns=[Column(title="Noisy", method="noisy", nonprivate="plain")],
    )  # fmt: skip
    document = Document(
        paper="lab-2026", title="Of the laboratory",
        protocol=Protocol(splits=3, test_share=0.2, delta=1e-6), tables={"1": layout},
    )  # fmt: skip
    monkeypatch.setattr(document_module, "load_published", lambda paper: cells)
    (tmp_path / "lab-2026").mkdir()
    (tmp_path / "lab-2026" / "paper.yaml").write_text("paper: lab-2026\ntables: {1: {}}\n")
    monkeypatch.setitem(folders._own, "lab-2026", tmp_path / "lab-2026")
    monkeypatch.setattr(document_module, "load_documents", lambda: {"lab-2026": document})
    return cells


def _invoke(config: Path, results: Path, *options: object) -> Any:
    given = ["run", str(config), "--until-decided", "--results", str(results)]
    return CliRunner().invoke(app, [*given, *map(str, options)])


def _splits(lab: Lab, name: str) -> dict[tuple[str, float | None], int]:
    tasks = [record["task"] for record in lab.records(name).values()]
    cells = [(task["label"], task["epsilon"]) for task in tasks]
    return {cell: cells.count(cell) for cell in dict.fromkeys(cells)}


@pytest.mark.usefixtures("in_process")
def test_only_cells_that_more_splits_can_decide_get_them(
    lab: Lab, printed: list[PublishedCell]
) -> None:
    printed += [
        _printed("noisy", 1.0, 0.2, 0.01),  # far off: the first look decides
        _printed("noisy", 8.0, 0.9, 0.9),  # no number of splits decides
        _printed("plain", float("inf"), 0.6, 0.001),
    ]
    config = lab.config(methods=["noisy", "plain"], published=PUBLISHED)
    found = _invoke(config, lab.results, "--most-splits", 12)
    assert found.exit_code == 0, found.output
    assert "Table 1, noisy, ε=1, auc: better (3 splits)" in found.output
    assert "after 3 splits 1 of 3 printed cells are decided, 1 open, 1 that 12 splits cannot" in (
        found.output
    )
    assert "on to 6 splits of what is open. All 12 would take" in found.output
    assert _splits(lab, "lab") == {("noisy", 1.0): 3, ("noisy", 8.0): 3, ("plain", None): 3}
    added = _splits(lab, "lab-until-decided")
    assert (added["noisy", 1.0], added["noisy", 8.0]) == (3, 3)
    assert added["plain", None] in (6, 12)
    plan = [line for line in lab.lines("lab-until-decided") if line["kind"] == "plan"][-1]
    assert plan["published"] == {**PUBLISHED, "looks": [3, 6, 12]}

    before = lab.lines("lab-until-decided")
    again = _invoke(config, lab.results, "--most-splits", 12)  # as after an interruption
    assert again.exit_code == 0
    assert _splits(lab, "lab-until-decided") == added
    ran = [line for line in lab.lines("lab-until-decided") if line["kind"] == "record"]
    assert len(ran) == len([line for line in before if line["kind"] == "record"])


@pytest.mark.parametrize(
    ("keys", "options", "said"),
    [
        ({}, (), "the config names none. Add `published: {paper: PAPER, table: TABLE}`"),
        ({"published": {**PUBLISHED, "looks": [1, 3]}}, (), "adds splits to those of another"),
        ({"published": PUBLISHED, "seed": None}, (), "Give the config a seed"),
        ({"published": PUBLISHED, "splits": 2}, (), "a verdict on lab-2026 takes 3 splits"),
        ({"published": PUBLISHED, "methods": ["raises"]}, (), "lab-2026 prints none of its cells"),
        ({"published": PUBLISHED}, ("--splits", 2), "--splits does not go with --until-decided"),
        ({"published": PUBLISHED}, ("--fresh",), "--fresh does not go with --until-decided"),
        ({"published": PUBLISHED}, ("--most-splits", 3), "the config has 3 splits already"),
        ({"published": PUBLISHED}, ("--dry-run",), "--dry-run does not go with --until-decided"),
        ({"published": {**PUBLISHED, "paper": "lap"}}, (), "no document 'lap'"),
    ],
)
def test_wrong_use_says_what_to_do(
    lab: Lab, printed: list[PublishedCell], keys: dict[str, Any], options: Any, said: str
) -> None:
    printed.append(_printed("noisy", 1.0, 0.2, 0.01))
    found = _invoke(lab.config(**keys), lab.results, *options)
    assert said in str(found.exception)
    assert not lab.results.exists()


def test_most_splits_needs_until_decided(lab: Lab) -> None:
    found = CliRunner().invoke(app, ["run", str(lab.config()), "--most-splits", "9"])
    assert "--most-splits is for --until-decided" in str(found.exception)
