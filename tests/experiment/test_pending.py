from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dprepro.experiment.pending import pending_of
from dprepro.experiment.plan import PlannedTask
from dprepro.experiment.record import Record
from tests.experiment.test_record import TASK

PLAN = [PlannedTask(replace(TASK, split=split)) for split in range(3)]


def record(planned: PlannedTask, status: Any = "ok", **fields: Any) -> Record:
    return Record(planned.task, status, **{"metrics": {"auc": 0.9}, **fields})


def known(*records: Record) -> dict[str, Record]:
    return {each.task.key: each for each in records}


def test_what_has_no_record_is_to_run_and_what_has_one_stays() -> None:
    done = record(PLAN[1])
    outlook = pending_of(PLAN, PLAN, known(done), False, ())
    assert outlook.done == (done,)
    assert outlook.todo == (PLAN[0].task, PLAN[2].task)
    assert (outlook.skips, outlook.stale, outlook.others, outlook.again) == ((), 0, (), 0)


@pytest.mark.parametrize("retry", [True, False])
def test_failed_tasks_are_run_again_if_asked(retry: bool) -> None:
    failed = record(PLAN[0], "failed", metrics={}, message="boom")
    outlook = pending_of(PLAN, PLAN[:1], known(failed), retry, ())
    assert (outlook.todo, outlook.done) == (((PLAN[0].task,), ()) if retry else ((), (failed,)))


def test_a_skip_is_written_once_and_taken_back_when_nothing_is_in_the_way() -> None:
    skipped = replace(PLAN[0], skip="no data")
    (skip,) = pending_of([skipped], [skipped], {}, False, ()).skips
    assert (skip.status, skip.message) == ("skipped", "no data")
    again = pending_of([skipped], [skipped], known(skip), False, ())
    assert (again.skips, again.done, again.todo) == ((), (skip,), ())
    assert pending_of(PLAN[:1], PLAN[:1], known(skip), False, ()).todo == (PLAN[0].task,)


def test_a_record_without_a_metric_that_is_asked_for_is_run_again() -> None:
    outlook = pending_of(PLAN, PLAN[:2], known(*map(record, PLAN)), False, ("f1",))
    assert outlook.todo == tuple(planned.task for planned in PLAN[:2])
    assert (outlook.done, outlook.again) == ((), 2)


def test_records_of_the_plan_that_are_not_asked_for_are_told_from_stale_ones() -> None:
    stale = Record(replace(TASK, method="gone"), "ok", metrics={"auc": 0.5})
    outlook = pending_of(PLAN, PLAN[:1], known(*map(record, PLAN), stale), False, ())
    assert outlook.others == tuple(map(record, PLAN[1:]))
    assert outlook.stale == 1
