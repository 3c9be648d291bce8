import math
from collections import Counter
from pathlib import Path

import pytest

from dprepro.papers.published_cell import FOLDER, HEADER, PublishedCell, load_published
from dprepro.runtime.errors import DpreproError

ROW = "doc,1,adult,ebm,inf,auc,0.9,0.01"


def write(folder: Path, *rows: str, header: str = ",".join(HEADER)) -> Path:
    (folder / "doc").mkdir(exist_ok=True)
    (folder / "doc" / "cells.csv").write_text("\n".join([header, *rows]) + "\n")
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
    assert (FOLDER / "lazybb-2022" / "hyperparameters.csv").is_file()
    assert all(cell.metric not in ("kappa", "tau") for cell in load_published("lazybb-2022"))


@pytest.mark.parametrize(
    ("dataset", "decimals"), [("adult", 3), ("cal-housing", 0), ("elevators", 3), ("pol", 3)]
)
def test_decimals_are_those_printed(dataset, decimals):
    found = {c.decimals for c in load_published("dp-ebm-2021") if c.dataset == dataset}
    assert found == {decimals}


def test_the_digits_of_a_number_are_its_own_whatever_stands_beside_it(tmp_path):
    rows = [ROW.replace("0.9,0.01", numbers).replace("inf", epsilon) for numbers, epsilon in (
        ("0.123,0.0100", "1"), ("0.870,0.01", "2"), ("0.87,", "4"), ("7.0,0.5", "8"), ("47,1", "9"),
    )]  # fmt: skip
    cells = load_published(folder=write(tmp_path, *rows))
    assert [(c.decimals, c.std_decimals) for c in cells] == [(3, 4), (3, 2), (2, 0), (1, 1), (0, 0)]
    assert [c.half_unit for c in cells] == pytest.approx([0.0005, 0.0005, 0.005, 0.05, 0.5])
    assert [c.sd_half_unit for c in cells] == pytest.approx([0.00005, 0.005, 0.0, 0.05, 0.5])
    assert [c.in_print for c in cells] == [
        "0.123 ± 0.0100", "0.870 ± 0.01", "0.87", "7.0 ± 0.5", "47 ± 1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("paper", "table", "digits"),
    [
        ("dp-ebm-2021", "2", {(3, 3)}),
        ("dp-ebm-2021", "3", {(3, 3), (0, 0)}),
        ("dp-llm-2020", "text-4.1", {(3, 3), (2, 0)}),
        ("dp-llm-2020", "fig6", {(3, 3), (2, 3)}),
        ("lazybb-2022", "5", {(1, 3), (2, 0)}),
        ("lazybb-2022", "7", {(1, 3), (2, 0)}),
        ("maddock-2022", "figure-6", {(4, 4)}),
        ("replication-report-2025", "2", {(1, 3), (2, 0)}),
        ("replication-report-2025", "3", {(3, 3), (3, 0)}),
        ("replication-slides-2025", "non-dp-models", {(3, 3)}),
        ("sbdt-2024", "rerun", {(4, 4)}),
    ],
)
def test_numbers_have_the_digits_of_the_document(paper, table, digits):
    found = {(c.decimals, c.std_decimals) for c in load_published(paper) if c.table == table}
    assert found == digits


def test_an_empty_std_means_none_was_printed(tmp_path):
    (cell,) = load_published(folder=write(tmp_path, "doc,1,adult,ebm,inf,auc,0.9,"))
    assert cell.std is None
    assert str(cell) == "doc table 1: adult, ebm, non-private"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["doc,1,adult,ebm,inf,auc,high,0.01"], r"cells\.csv:2: mean is 'high'"),
        ([ROW, "doc,1,adult,ebm,-1,auc,0.9,0.01"], r"cells\.csv:3: epsilon must be positive"),
        (["doc,1,adult,ebm,inf,auc,0.9,-0.1"], "std at least 0"),
        (["doc,1,adult,ebm,inf,auc,nan,0.1"], "mean finite"),
        (["doc,1,adult,ebm,0,auc,0.9,0.01"], "epsilon must be positive"),
        (["doc,1,adult,ebm,1,auc,0.9,inf"], "std at least 0 or empty"),
        (["doc,1,adult,,inf,auc,0.9,0.1"], "cells.csv:2: nothing is given for method"),
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


def test_a_printed_standard_deviation_of_zero_is_one(tmp_path):
    (cell,) = load_published(folder=write(tmp_path, "doc,1,adult,ebm,0.1,auc,0.9,0.0"))
    assert (cell.std, cell.epsilon) == (0.0, 0.1)


def test_a_number_without_digits_after_the_point_is_off_by_half_of_one():
    assert PublishedCell("p", "1", "d", "m", 1.0, "rmse", 80.0, None).half_unit == 0.5
