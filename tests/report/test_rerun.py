from dataclasses import replace

import pytest

from dprepro.experiment.record import Record
from dprepro.report.rerun import OTHER_MACHINE, SAME_MACHINE, compare_records, rerun_tolerance
from tests.report.journals import records

COMMITTED = records([0.87, 0.88, 0.86])
MACHINE = {"cpu": "c", "python": "3.11", "libraries": {"numpy": "2"}, "time": "yesterday"}


def shifted(factor):
    return [replace(r, metrics={"auc": r.metrics["auc"] * factor}) for r in COMMITTED]


def test_the_same_records_agree_in_any_order():
    report = compare_records(COMMITTED, reversed(COMMITTED), SAME_MACHINE)
    assert report.passes
    assert (report.matched, report.largest) == (3, 0.0)


@pytest.mark.parametrize(("factor", "passes"), [(1 + 0.9e-4, True), (1 - 1.1e-4, False)])
def test_differences_count_relative_to_the_committed_value(factor, passes):
    report = compare_records(shifted(factor), COMMITTED, 1e-4)
    assert report.passes is passes
    assert report.largest == pytest.approx(abs(factor - 1))
    assert len(report.mismatches) == (0 if passes else 3)


def test_small_metrics_are_not_swallowed():
    small = records([0.004], metric="rmse")
    other = [replace(small[0], metrics={"rmse": 0.0041})]
    assert not compare_records(other, small, 1e-4).passes


def test_a_mismatch_names_the_task_and_both_values():
    (first, *_) = compare_records(shifted(1.5), COMMITTED, 1e-4).mismatches
    assert str(first) == "adult, dp-ebm-gdp, epsilon 0.5, split 0: auc 1.305, committed 0.87"


def test_a_task_that_fails_now_is_a_mismatch_with_its_error():
    failed = [Record(COMMITTED[0].task, "failed", message="ValueError: no")]
    report = compare_records(failed, COMMITTED, 1e-4)
    assert not report.passes
    assert "(ValueError: no)" in str(report.mismatches[0])


def test_tasks_without_a_finished_twin_are_missing():
    changed = records([0.87], seed=2)
    report = compare_records([*COMMITTED, *changed], COMMITTED, 1e-4)
    assert not report.passes
    assert list(report.missing) == changed
    unfinished = [Record(COMMITTED[0].task, "failed")]
    assert len(compare_records(COMMITTED[:1], unfinished, 1e-4).missing) == 1


def test_comparing_nothing_does_not_pass():
    assert not compare_records([], COMMITTED, 1e-4).passes


def test_one_machine_is_held_to_the_bits_and_another_is_not():
    assert rerun_tolerance([MACHINE], [{**MACHINE, "time": "today"}]) == SAME_MACHINE
    assert SAME_MACHINE < OTHER_MACHINE
    for change in ({"cpu": "d"}, {"libraries": {"numpy": "3"}}, {"python": "3.12"}):
        assert rerun_tolerance([MACHINE], [MACHINE, {**MACHINE, **change}]) == OTHER_MACHINE
    assert rerun_tolerance([MACHINE], []) == OTHER_MACHINE
