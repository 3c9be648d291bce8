import math
from collections import Counter
from pathlib import Path

import pytest

from dprepro.errors import DpreproError
from dprepro.published.published import FOLDER, HEADER, PublishedCell, load_published

ROW = "doc,1,adult,ebm,inf,auc,0.9,0.01"


def write(folder: Path, *rows: str, header: str = ",".join(HEADER)) -> Path:
    (folder / "doc.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_every_cell_of_the_dp_ebm_paper_is_there():
    cells = load_published("dp-ebm-2021")
    assert Counter(cell.table for cell in cells) == {"2": 92, "3": 92}
    grids = {(c.dataset, c.method): set() for c in cells}
    for cell in cells:
        grids[cell.dataset, cell.method].add(cell.epsilon)
    assert set(map(frozenset, grids.values())) == {
        frozenset({0.5, 1, 2, 4, 8}),
        frozenset({math.inf}),
    }


def test_all_documents_together_are_the_sum_of_each():
    cells = load_published()
    papers = {cell.paper for cell in cells}
    assert {"dp-ebm-2021", "lazybb-2022", "dp-llm-2020", "replication-report-2025"} <= papers
    assert sum(len(load_published(paper)) for paper in papers) == len(cells)
    assert len({cell.key for cell in cells}) == len(cells)


def test_side_tables_are_not_cells():
    assert (FOLDER / "lazybb_2022_hyperparameters.csv").is_file()
    assert all(cell.metric not in ("kappa", "tau") for cell in load_published("lazybb-2022"))


@pytest.mark.parametrize(
    ("dataset", "decimals"), [("adult", 3), ("cal-housing", 0), ("elevators", 3), ("pol", 3)]
)
def test_decimals_are_those_printed(dataset, decimals):
    found = {c.decimals for c in load_published("dp-ebm-2021") if c.dataset == dataset}
    assert found == {decimals}


def test_trailing_zeros_lost_in_the_file_still_count(tmp_path):
    rows = [ROW.replace("0.9,", f"{mean},").replace("inf", e) for mean, e in (("0.88", "1"),)]
    cells = load_published(folder=write(tmp_path, ROW.replace("0.9,", "0.123,"), *rows))
    assert [cell.decimals for cell in cells] == [3, 3]
    assert cells[1].half_unit == pytest.approx(0.0005)


def test_an_empty_std_means_none_was_printed(tmp_path):
    (cell,) = load_published(folder=write(tmp_path, "doc,1,adult,ebm,inf,auc,0.9,"))
    assert cell.std is None
    assert str(cell) == "doc table 1: adult, ebm, non-private"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["doc,1,adult,ebm,inf,auc,high,0.01"], r"doc\.csv:2: mean is 'high'"),
        ([ROW, "doc,1,adult,ebm,-1,auc,0.9,0.01"], r"doc\.csv:3: epsilon must be positive"),
        (["doc,1,adult,ebm,inf,auc,0.9,-0.1"], "std at least 0"),
        (["doc,1,adult,ebm,inf,auc,nan,0.1"], "mean finite"),
        (["doc,1,adult,ebm,0,auc,0.9,0.01"], "epsilon must be positive"),
        (["doc,1,adult,ebm,1,auc,0.9,inf"], "std at least 0 or empty"),
        (["doc,1,adult,,inf,auc,0.9,0.1"], r"missing: \['method'\]"),
        ([ROW + ",extra"], "8 fields expected"),
        ([ROW, ROW], "printed twice: doc table 1: adult, ebm"),
    ],
)
def test_malformed_rows_are_refused_with_their_place(tmp_path, rows, message):
    with pytest.raises(DpreproError, match=message):
        load_published(folder=write(tmp_path, *rows))


def test_another_header_is_refused(tmp_path):
    with pytest.raises(DpreproError, match="it must be paper,table"):
        load_published(folder=write(tmp_path, header="a,b"))


def test_an_unknown_document_gets_the_nearest_name():
    with pytest.raises(DpreproError, match="did you mean 'dp-ebm-2021'"):
        load_published("dp-ebm-2020")


def test_a_table_of_another_metric_or_dataset_has_digits_of_its_own(tmp_path):
    rows = [ROW.replace(",0.9,", f",{mean},").replace("auc", metric).replace("adult", dataset)
            for mean, metric, dataset in (
                ("0.875", "auc", "adult"), ("47.0", "rmse", "adult"), ("0.9", "auc", "telco"))
           ]  # fmt: skip
    cells = load_published(folder=write(tmp_path, *rows))
    assert [(cell.decimals, cell.half_unit) for cell in cells] == [(3, 0.0005), (0, 0.5), (1, 0.05)]


def test_a_printed_standard_deviation_of_zero_is_one(tmp_path):
    (cell,) = load_published(folder=write(tmp_path, "doc,1,adult,ebm,0.1,auc,0.9,0.0"))
    assert (cell.std, cell.epsilon) == (0.0, 0.1)


def test_a_number_without_digits_after_the_point_is_off_by_half_of_one():
    assert PublishedCell("p", "1", "d", "m", 1.0, "rmse", 80.0, None).half_unit == 0.5
