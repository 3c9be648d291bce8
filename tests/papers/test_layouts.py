"""Cells of the LazyBB authors' results files: the rows that a rule picks, and configs for them.

The configs of S-BDT have the settings that its authors' results list, and all cells of them.
"""

import csv
import math
import os
import statistics
from pathlib import Path

import pytest

from dprepro.experiment.config import load_config
from dprepro.papers.document import load_documents
from dprepro.papers.published_cell import FOLDER, load_published
from dprepro.results.folder import read_results

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
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    apart = [
        [abs(float(value) - float(printed)) for value in (ours, as_theirs)]
        for _, density, rounds, _, printed, ours, *_, as_theirs in lines
        if rounds == "rounds=20" and density != "density=0.01"
    ]
    ours, as_theirs = (sum(values) / len(apart) for values in zip(*apart, strict=True))
    note = load_documents()["lazybb-2022-authors"].tables["files"].notes[1]
    assert f"differ from the files by {as_theirs:.3f} of accuracy" in note
    assert f"without them by {ours:.3f} ({len(apart)} settings" in note


RESULTS = Path(__file__).resolve().parents[2] / "results"
LAZYBB = load_documents()["lazybb-2022"]


def test_every_printed_cell_has_a_place():
    assert len(LAZYBB.cells()) == len(load_published("lazybb-2022")) == 85
    for cell in LAZYBB.cells():
        layout = LAZYBB.tables[cell.table]
        assert cell.metric in (layout.metric, *layout.also)
        assert cell.method in {column.method for column in layout.columns}


def test_adult_is_judged_on_its_test_set_and_sparsity_on_nearly_all_rows():
    for name, layout in LAZYBB.tables.items():
        for dataset in layout.datasets:
            protocol = LAZYBB.protocol_of(name, dataset)
            assert protocol.splits == 5
            if name in ("6", "7"):
                assert protocol.held_out == 0.005
            elif name != "figure-2":
                expected = "test-set" if dataset == "adult" else "folds"
                assert protocol.evaluation == expected


def test_the_note_on_figure_2_states_what_was_measured():
    (note,) = LAZYBB.tables["figure-2"].notes
    cells = load_published("lazybb-2022-authors")
    (printed,) = (
        c for c in cells if (c.method, c.epsilon) == ("1r density=0.25 rounds=100", 1.0)
        and c.dataset == "adult"
    )  # fmt: skip
    assert f"{printed.mean:.4f} at epsilon 1" in note
    results = read_results(RESULTS, ["lazybb-delta"])
    for label in ("fixed-1r", "fixed-1r-agreements"):
        (cell,) = results.all("adult", label, 1.0)
        values = cell.values["accuracy"]
        apart = statistics.mean(values) - printed.mean
        z = apart / math.sqrt((statistics.variance(values) + 5 / 4 * printed.std**2) / 5)
        assert f"{statistics.mean(values):.4f} by the" in note
        assert f"(z {z:.1f})" in note


SBDT = load_documents()["sbdt-2024"]
NAMES = {
    "learning_rate": "learning_rate",
    "nb_trees": "n_trees",
    "max_depth": "max_depth",
    "l2_thr": "residual_bound",
    "Q": "sampling",
    "lambda": "ridge",
    "r1": "denominator_share",
    "reg_delta": "leaf_bound",
    "feature_val_u_border": "border",
}


def printed():
    with (FOLDER / "sbdt-2024" / "hyperparameters.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def settings(config, label, epsilon):
    (entry,) = (entry for entry in load_config(config).methods if entry.label == label)
    return {**entry.params, **entry.by_epsilon[epsilon]}


@pytest.mark.parametrize("row", printed(), ids=lambda row: f"{row['dataset']}-{row['epsilon']}")
@pytest.mark.parametrize("label", ["s-bdt", "s-bdt-sound"])
def test_the_settings_are_the_printed_ones(row, label):
    ours = settings(f"sbdt-{row['dataset']}", label, float(row["epsilon"]))
    assert {name: ours[name] for name in NAMES.values()} == {
        name: float(row[key]) for key, name in NAMES.items()
    }
    assert ours.get("initial_share", 0) == float(row["init_ratio"])
    if float(row["init_ratio"]):
        assert ours["initial_bound"] == float(row["init_thr"])
    if row["newton"] == "1":
        assert ours["curvature_bound"] == float(row["hess_l2_thr"])
    assert ours["settings_read_rows"]


def test_all_fifteen_cells_have_a_place():
    assert len(SBDT.cells()) == len(load_published("sbdt-2024")) == 15
    assert SBDT.protocol_of("rerun", "abalone").splits == 1000
    for dataset in ("adult-complete", "abalone"):
        assert SBDT.protocol_of("rerun", dataset).held_out == 0.2
