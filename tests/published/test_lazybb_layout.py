from dprepro.published.document import load_documents
from dprepro.published.published import load_published

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
