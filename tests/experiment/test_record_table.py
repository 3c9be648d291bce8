from dprepro.experiment.packed import RecordTable
from tests.experiment.test_packed import SOME
from tests.report.journals import KEPT, records


def test_records_come_back():
    table = RecordTable.of(SOME)
    assert list(table.records(range(len(table)))) == SOME
    assert [record.task.key for record in table.records(range(len(table)))] == [
        record.task.key for record in SOME
    ]
    assert len(table.tasks) == 2  # splits of a cell share their task


def test_a_ledger_that_says_nothing_is_one():
    table = RecordTable.of([*records([0.8], ledger=KEPT), *records([0.8], ledger=None)])
    assert [table.ledger_of(0), table.ledger_of(1)] == [KEPT, None]


def test_the_last_record_of_a_task_counts():
    table = RecordTable.of([SOME[0], SOME[1], SOME[0]])
    assert table.last.tolist() == [1, 2]
    keys = [SOME[1].task.key, "f" * 16, SOME[0].task.key]
    places = table.positions(keys)
    assert places.tolist() == [2, 0, 2]
    assert table.last_of_each(places, 3).tolist() == [1, 2]
    assert table.positions([]).tolist() == [-1, -1, -1]
