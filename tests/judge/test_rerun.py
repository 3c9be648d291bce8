import math
from dataclasses import replace

import pytest

from dprepro.experiment.record import Record
from dprepro.judge.check import compare_records, tolerance_of
from dprepro.methods import registry
from dprepro.methods.entry import REPEATS
from tests.report.journals import records

COMMITTED = records([0.87, 0.88, 0.86])


def shifted(factor):
    return [replace(r, metrics={"auc": r.metrics["auc"] * factor}) for r in COMMITTED]


def test_the_same_records_agree_in_any_order():
    report = compare_records(COMMITTED, reversed(COMMITTED))
    assert report.passes
    assert (report.matched, report.largest) == (3, 0.0)
    assert compare_records(COMMITTED[:1], COMMITTED).passes


@pytest.mark.parametrize(("factor", "passes"), [(1 + 0.9e-6, True), (1 - 1.1e-6, False)])
def test_differences_count_relative_to_the_committed_value(factor, passes):
    report = compare_records(shifted(factor), COMMITTED)
    assert report.passes is passes
    assert report.largest == pytest.approx(abs(factor - 1))
    assert len(report.mismatches) == (0 if passes else 3)


def test_small_metrics_are_not_swallowed():
    small = records([0.004], metric="rmse")
    other = [replace(small[0], metrics={"rmse": 0.00400001})]
    assert not compare_records(other, small).passes


@pytest.mark.parametrize(("fresh", "passes"), [(1e-6, True), (1.5e-6, False)])
def test_a_committed_zero_may_move_by_the_tolerance_itself(fresh, passes):
    zero = records([0.0], metric="rmse")
    assert compare_records([replace(zero[0], metrics={"rmse": fresh})], zero).passes is passes


def test_a_mismatch_names_the_task_and_both_values():
    (first, *_) = compare_records(shifted(1.5), COMMITTED).mismatches
    assert str(first) == "adult, dp-ebm-gdp-2021, epsilon 0.5, split 0: auc 1.305, committed 0.87"


def test_a_task_that_fails_now_is_a_mismatch_with_its_error():
    failed = [Record(COMMITTED[0].task, "failed", message="ValueError: no")]
    report = compare_records(failed, COMMITTED)
    assert not report.passes
    assert "(ValueError: no)" in str(report.mismatches[0])


def test_tasks_without_a_finished_twin_are_missing():
    changed = records([0.87], seed=2)
    report = compare_records([*changed, *COMMITTED], COMMITTED)
    assert (report.passes, report.matched) == (False, 3)
    assert list(report.missing) == changed
    unfinished = [Record(COMMITTED[0].task, "failed")]
    assert len(compare_records(COMMITTED[:1], unfinished).missing) == 1


def test_comparing_nothing_does_not_pass():
    assert not compare_records([], COMMITTED).passes


def test_what_a_solver_finds_that_stops_early_has_to_be_there_and_is_not_compared():
    logistic = records([0.9], label="logistic")
    moved = [replace(logistic[0], metrics={"auc": 0.5})]
    report = compare_records(moved, logistic)
    assert (report.passes, report.largest, report.tolerances) == (True, 0.0, {"logistic": math.inf})
    report = compare_records([replace(logistic[0], status="failed", metrics={})], logistic)
    assert not report.passes


def test_methods_that_lean_on_linear_algebra_have_tolerances_of_their_own():
    logistic = records([0.9], label="dp-logistic-fair")
    for difference, passes in ((9e-4, True), (1.1e-3, False)):
        moved = [replace(logistic[0], metrics={"auc": 0.9 * (1 + difference)})]
        report = compare_records([*moved, *COMMITTED], [*logistic, *COMMITTED])
        assert report.passes is passes
        assert report.tolerances == {"dp-ebm-gdp-2021": REPEATS, "dp-logistic-fair": 1e-3}


def test_only_methods_that_lean_on_linear_algebra_may_differ_by_more():
    assert REPEATS == 1e-6
    larger = {
        name: method.repeats_within
        for name, method in registry.all_methods().items()
        if method.repeats_within != REPEATS
    }
    assert larger == {
        **dict.fromkeys(("cnn", "dp-cnn"), 1e-2),
        **dict.fromkeys(("llm", "dp-llm", "mlp", "dp-bag", "dp-bag-sound"), 1e-3),
        "logistic": math.inf,
        **dict.fromkeys(("ebm", "logistic-fair", "logistic-standardized"), 1e-3),
        **dict.fromkeys(("dp-logistic", "dp-logistic-fair"), 1e-3),
        **dict.fromkeys(("linear", "linear-fair", "dp-linear", "dp-linear-fair"), 1e-5),
        "ada-ssp": 1e-5,
    }
    # Nothing of these goes through a linear algebra library, nor is anything known of the last.
    for method in (
        "dp-ebm-gdp-2021",
        "dp-ebm-plus",
        "dpboost-2021",
        "lazybb-1r",
        "of-a-plug-in",
    ):
        assert tolerance_of(method) == REPEATS
