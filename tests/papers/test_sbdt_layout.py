"""The configs of S-BDT have the settings that its authors' results list, and all cells of them."""

import csv

import pytest

from dprepro.experiment.config import load_config
from dprepro.papers.cells import FOLDER, load_published
from dprepro.papers.document import load_documents

PAPER = load_documents()["sbdt-2024"]
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
    assert len(PAPER.cells()) == len(load_published("sbdt-2024")) == 15
    assert PAPER.protocol_of("rerun", "abalone").splits == 1000
    for dataset in ("adult-complete", "abalone"):
        assert PAPER.protocol_of("rerun", dataset).held_out == 0.2
