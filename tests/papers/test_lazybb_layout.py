import math
import statistics
from pathlib import Path

from dprepro.papers.cells import load_published
from dprepro.papers.document import load_documents
from dprepro.results.folder import read_results

RESULTS = Path(__file__).resolve().parents[2] / "results"
PAPER = load_documents()["lazybb-2022"]


def test_every_printed_cell_has_a_place():
    assert len(PAPER.cells()) == len(load_published("lazybb-2022")) == 85
    for cell in PAPER.cells():
        layout = PAPER.tables[cell.table]
        assert cell.metric in (layout.metric, *layout.also)
        assert cell.method in {column.method for column in layout.columns}


def test_adult_is_judged_on_its_test_set_and_sparsity_on_nearly_all_rows():
    for name, layout in PAPER.tables.items():
        for dataset in layout.datasets:
            protocol = PAPER.protocol_of(name, dataset)
            assert protocol.splits == 5
            if name in ("6", "7"):
                assert protocol.held_out == 0.005
            elif name != "figure-2":
                expected = "test-set" if dataset == "adult" else "folds"
                assert protocol.evaluation == expected


def test_the_note_on_figure_2_states_what_was_measured():
    (note,) = PAPER.tables["figure-2"].notes
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
