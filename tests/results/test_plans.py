import math
from dataclasses import replace

import numpy as np

from dprepro.experiment.packed import RecordTable
from dprepro.results import plans
from dprepro.results.plans import JournalPlan
from tests.lab import plan_of
from tests.report.journals import records


def stated(*lines, splits=3, **changes):
    """A plan line that asks for these records and nothing else."""
    keys = {}
    for line in lines:
        keys.setdefault((line.task.label, line.task.epsilon), []).append(line.task.key)
    return plan_of(keys, "mine", splits=splits, **changes)


def current(lines, stated=None, assumed=None):
    """The records that count of a journal with these lines, and the plan that says so."""
    table = RecordTable.of(lines)
    rows, plan = plans.current(stated, table, assumed)
    return list(table.records(rows)), plan


def planned_splits(plan, lines):
    """By key of a record, how many splits make its cell complete."""
    table = RecordTable.of(lines)
    found = plans.planned_splits(plan, table, np.arange(len(table)))
    keys = [line.task.key for line in lines]
    return {key: found[code] for key, code in zip(keys, table.task.tolist(), strict=True)}


FIRST, SECOND = records([0.7, 0.8, 0.9]), records([0.1, 0.2, 0.3], params={"max_bins": 4})


def test_the_plan_says_what_counts_not_the_order_of_the_journal():
    found, plan = current([*FIRST, *SECOND], stated(*FIRST))
    assert found == FIRST
    assert (plan.splits, plan.paper, plan.metric) == (3, None, "auc")
    assert current([*FIRST, *SECOND], stated(*SECOND))[0] == SECOND


def test_records_come_in_the_order_of_the_plan():
    ebm = records([0.9], label="ebm", epsilon=math.inf)
    plan = stated(*ebm, *FIRST)
    assert current([*reversed(FIRST), *ebm], plan)[0] == [*ebm, *FIRST]


def test_nothing_counts_that_the_plan_does_not_ask_for():
    other = records([0.5], label="taken-out")
    assert current([*FIRST, *other], stated(*FIRST))[0] == FIRST
    assert current(other, stated(*FIRST))[0] == []


def test_without_a_plan_the_last_setting_under_a_label_counts():
    assert current([*FIRST, *SECOND]) == (SECOND, None)


def test_an_assumed_plan_counts_if_the_journal_knows_any_of_its_tasks():
    assumed = JournalPlan.stated(stated(*FIRST))
    assert current([*FIRST, *SECOND], assumed=assumed) == (FIRST, assumed)
    assert current(SECOND, assumed=assumed) == (SECOND, replace(assumed, cells=None))
    assert current(FIRST, stated(*FIRST, splits=9), assumed)[1].splits == 9


def test_a_cell_is_complete_with_all_its_keys_even_if_few_are_there():
    plan = JournalPlan.stated(stated(*FIRST))
    assert planned_splits(plan, FIRST[:1]) == {FIRST[0].task.key: 3}
    assert planned_splits(JournalPlan(25, None), FIRST[:1]) == {FIRST[0].task.key: 25}
    other = records([0.5], epsilon=4.0)
    assert set(planned_splits(None, [*FIRST, *other]).values()) == {3}
