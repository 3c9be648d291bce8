import pytest

from dprepro.judge.check import check_documents
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import select_documents
from dprepro.report.layout.tables import build_tables
from dprepro.results.folder import read_results
from dprepro.results.metrics import margins
from dprepro.results.plans import JournalPlan
from dprepro.results.shipped import beside, in_both
from tests.report.journals import records, spread, write

MARKED = "dp-ebm-gdp-2021 (shipped run)"


@pytest.fixture
def sides(tmp_path):
    """Two splits of one's own, of which the second differs, and all 25 that come with dprepro."""
    given = spread(0.875, 0.005)
    write(tmp_path / "own", "adult", records([given[0], 0.9]))
    write(tmp_path / "others", "adult", records(given))
    return [
        read_results(tmp_path / side, (), lambda name: JournalPlan(25, "dp-ebm-2021", "2"))
        for side in ("own", "others")
    ]


def test_own_results_come_first_and_no_record_counts_on_the_other_side(sides):
    found = beside(*sides)
    assert [(cell.task.label, cell.splits("auc")) for cell in found.cells] == [
        ("dp-ebm-gdp-2021", 2),
        (MARKED, 25),
    ]
    assert found.journals == ("adult", "adult (shipped run)")
    assert [cell.method for cell in found.cells] == ["dp-ebm-gdp-2021", MARKED]
    assert found.of("adult").cells[0].splits("auc") == 2


def test_a_task_keeps_its_key_under_the_mark(sides):
    own, others = beside(*sides).held
    assert [record.task.key for record in own.records] == [
        record.task.key for record in others.records
    ][:2]
    assert {task.key for task in others.table.tasks} <= {r.task.key for r in others.records}


def test_a_plan_under_the_mark_still_says_what_is_missing(tmp_path):
    lines = records([0.9, 0.8], "dp-ebm-gdp", 0.5)
    write(tmp_path, "adult", lines)
    cells = {
        ("dp-ebm-gdp", 0.5): [line.task.key for line in lines],
        ("dp-ebm-gdp", 1.0): ["f" * 16],
    }
    others = read_results(tmp_path, (), lambda name: JournalPlan(2, None, cells=cells))
    found = beside(read_results(tmp_path), others)
    assert [(cell.task.label, cell.task.epsilon) for cell in found.planned] == [
        ("dp-ebm-gdp (shipped run)", 1.0)
    ]


def test_tasks_of_both_sides_are_found_by_their_keys(sides):
    ours, theirs = in_both(*sides)
    assert [record.task.split for record in ours] == [record.task.split for record in theirs]
    assert [record.metrics["auc"] for record in ours][1] == 0.9
    assert len(theirs) == 2


def test_verdicts_are_on_ones_own_results(sides):
    documents = select_documents("dp-ebm")
    widths = margins(None)
    alone, joined = (
        check_documents(documents, found, [], widths) for found in (sides[0], beside(*sides))
    )
    assert joined.counts == alone.counts
    assert joined.counts[Verdict.INCOMPLETE] == 1
    assert not any(joined.counts[verdict] for verdict in Verdict if verdict.is_final)


def test_a_table_shows_them_side_by_side_and_marks_the_best_of_ones_own(sides):
    tables = build_tables(beside(*sides), select_documents("dp-ebm"), compare=True)
    (table,) = (found for found in tables if found.table == "2")
    heads = [column.title for column in table.columns]
    place = heads.index("DPEBM-GDP (2021 code)")
    assert heads[place + 1] == "DPEBM-GDP (2021 code) (shipped run)"
    (row,) = (row for row in table.groups[0].rows if row[0].epsilon == 0.5)
    assert [entry.result.splits("auc") for entry in row[place : place + 2]] == [2, 25]
    assert row[place].verdict is not None
    assert row[place + 1].verdict is None
    assert MARKED in table.groups[0].printed
    assert not any(entry.is_best for entry in row)
    assert not any("shipped" in note for note in table.notes)
