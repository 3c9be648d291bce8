"""Cells of the LazyBB authors' results files: the rows that a rule picks, and configs for them."""

import csv
import os
from pathlib import Path

import pytest

from dprepro.experiment.config import load_config
from dprepro.papers.cells import load_published
from dprepro.papers.document import load_documents

ROOT = Path(__file__).resolve().parents[2]
CELLS = load_published("lazybb-2022-authors")
FILES = Path(os.environ.get("DPREPRO_DATA", "")).parent / "published" / "lazybb_2022_authors.csv"
# The small second files of Cod-RNA repeat settings.
WHOLE = ("adult_OneRule", "adult_TopDown", "codrna_OneRule", "codrna_TopDown")
TREES = {"adult": ("0.25", "0.25"), "cod-rna": ("0.2", "0.5")}


def picked(row):
    """The label of a row of the files that the rule picks, else None."""
    whole = row["dataset"] == "adult" or "_full" in row["source_file"]
    if not (row["source_file"].startswith(WHOLE) and whole):
        return None
    if row["method"] == "lazybb-1r":
        with_delta = row["delta_rule"] == "n^-1.1"
        if (
            row["learning_rate"] == "0.25"
            and row["rounds"] in ("5", "20", "100")
            and (row["delta_rule"] == "pure" or (with_delta and row["rounds"] == "100"))
        ):
            return f"1r{'-delta' * with_delta} density={row['kappa']} rounds={row['rounds']}"
    elif (
        row["delta_rule"] == "pure"
        and (row["kappa"], row["learning_rate"]) == TREES[row["dataset"]]
        and row["rounds"] in ("5", "20")
        and row["epsilon"] != "0.02"  # at the smaller trees alone
    ):
        return f"trees-code splits={row['max_splits']} rounds={row['rounds']}"
    return None


@pytest.mark.skipif(not FILES.is_file(), reason="no ../published beside $DPREPRO_DATA")
def test_the_cells_are_the_rows_that_the_rule_picks():
    with FILES.open(newline="") as lines:
        rows = [(picked(row), row) for row in csv.DictReader(lines)]
    expected = {
        (row["dataset"], label, float(row["epsilon"])): (float(row["mean"]), float(row["std"]))
        for label, row in rows
        if label
    }
    assert len(rows) == 5122
    assert {(c.dataset, c.method, c.epsilon): (c.mean, c.std) for c in CELLS} == expected


@pytest.mark.parametrize("dataset", ["adult", "cod-rna"])
def test_a_config_has_the_setting_of_each_cell_and_no_other(dataset):
    config = load_config(f"lazybb-authors-{dataset}")
    planned = {}
    for entry in (variant for method in config.methods for variant in method.expanded):
        for epsilon in entry.epsilons or config.epsilons:
            planned[entry.label, epsilon] = entry
    assert planned.keys() == {(c.method, c.epsilon) for c in CELLS if c.dataset == dataset}
    for (label, _), entry in planned.items():
        name, *settings = label.split()
        asked = {key: float(value) for key, _, value in (s.partition("=") for s in settings)}
        assert entry.params.items() >= asked.items()
        assert entry.params["margin"] == "agreements"
        steps = 0.5 if (dataset, name) == ("cod-rna", "trees-code") else 0.25
        assert entry.params["learning_rate"] == steps


def test_every_cell_has_a_column_and_the_deltas_are_those_of_the_configs():
    paper = load_documents()["lazybb-2022-authors"]
    assert len(paper.cells()) == len(CELLS) == 328
    for cell in CELLS:
        assert cell.method in {c.method for c in paper.tables[cell.table].columns}
        delta = load_config(f"lazybb-authors-{cell.dataset}").delta
        assert paper.protocol_of(cell.table, cell.dataset).delta == delta


def test_the_note_on_level_votes_states_what_the_benchmark_printed():
    file = ROOT / "benchmarks" / "outputs" / "lazybb_authors_adult.txt"
    lines = [line.split() for line in file.read_text().splitlines()[1:]]
    apart = [
        [abs(float(value) - float(printed)) for value in (ours, as_theirs)]
        for _, density, rounds, _, printed, ours, *_, as_theirs in lines
        if rounds == "rounds=20" and density != "density=0.01"
    ]
    ours, as_theirs = (sum(values) / len(apart) for values in zip(*apart, strict=True))
    note = load_documents()["lazybb-2022-authors"].tables["files"].notes[1]
    assert f"differ from the files by {as_theirs:.3f} of accuracy" in note
    assert f"without them by {ours:.3f} ({len(apart)} settings" in note
