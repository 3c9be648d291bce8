"""Tasks that were run again, and the records that they are compared with."""

import math
from dataclasses import replace

import pytest

from dprepro.experiment.journal import JournalContents
from dprepro.experiment.record import Record
from dprepro.judge.rerun import (
    Mismatch,
    compare_records,
    compare_sample,
    sample_of,
    tolerance_of,
    version_changes,
)
from dprepro.methods import registry
from dprepro.methods.entry import REPEATS
from dprepro.results.folder import read_journals
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, spread, write

COMMITTED = records([0.87, 0.88, 0.86])


def shifted_records(factor):
    return [replace(r, metrics={"auc": r.metrics["auc"] * factor}) for r in COMMITTED]


def test_the_same_records_agree_in_any_order():
    report = compare_records(COMMITTED, reversed(COMMITTED))
    assert report.passes
    assert (report.matched, report.largest) == (3, 0.0)
    assert compare_records(COMMITTED[:1], COMMITTED).passes


@pytest.mark.parametrize(("factor", "passes"), [(1 + 0.9e-6, True), (1 - 1.1e-6, False)])
def test_differences_count_relative_to_the_committed_value(factor, passes):
    report = compare_records(shifted_records(factor), COMMITTED)
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
    (first, *_) = compare_records(shifted_records(1.5), COMMITTED).mismatches
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
        **dict.fromkeys(("llm", "dp-llm", "mlp", "dp-bag", "dp-bag-sound", "dp-sgd-mlp"), 1e-3),
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


def test_one_absolute_tolerance_counts_for_all_methods_that_repeat():
    for given, passes in ((0.0, False), (1e-9, True)):
        moved = [replace(r, metrics={"auc": r.metrics["auc"] + 1e-10}) for r in COMMITTED]
        report = compare_records(moved, COMMITTED, given)
        assert (report.passes, report.tolerances) == (passes, {"dp-ebm-gdp-2021": given})
        assert report.largest == pytest.approx(1e-10, rel=1e-3)
    assert compare_records(COMMITTED, COMMITTED, 0.0).passes
    large = records([100.0], metric="rmse")
    assert not compare_records(records([100.01], metric="rmse"), large, 1e-3).passes
    logistic = records([0.9], label="logistic")
    assert compare_records(records([0.5], label="logistic"), logistic, 0.0).passes


def test_values_that_differ_in_the_last_digits_are_told_apart():
    far, near = (Mismatch(COMMITTED[0], "auc", 0.5, fresh) for fresh in (0.6, 0.5 + 1e-16 * 2))
    assert far.in_words("recorded") == "auc 0.6, recorded 0.5"
    assert near.in_words("recorded") == "auc 0.5000000000000002, recorded 0.5"


def held(folder, lines):
    write(folder, "mine", lines)
    (journal,) = read_journals(folder, ["mine"])
    return journal


def test_a_sample_has_two_splits_of_each_method_at_its_lowest_and_highest_level(tmp_path):
    lines = [
        record
        for label, levels in (("a", (0.5, 1.0, 8.0)), ("b", (2.0,)), ("c", (math.inf,)))
        for epsilon in levels
        for record in records(spread(0.9, 0.01, 4), label, epsilon)
    ]
    sample = sample_of(held(tmp_path, lines))
    assert [(t.label, t.epsilon, t.split) for t in sample.tasks] == [
        (label, epsilon, split)
        for label, epsilon in (("a", 0.5), ("a", 8.0), ("b", 2.0), ("c", math.inf))
        for split in (0, 1)
    ]
    assert (sample.config, sample.finished, len(sample.cells)) == ("mine", 4 * 5, 4)
    assert set(sample.cells.values()) == {2}


def test_only_finished_tasks_are_in_a_sample(tmp_path):
    failed = [replace(record, status="failed", metrics={}) for record in records([0.9], "a", 8.0)]
    lines = [*records([0.9] * 3, "a", 1.0)[:1], *failed]
    sample = sample_of(held(tmp_path, lines))
    assert [(task.epsilon, task.split) for task in sample.tasks] == [(1.0, 0)]
    assert sample.cells == {("a", 1.0): 1}
    with pytest.raises(DpreproError, match=r"0 and 1 has finished, .*/mine\.yaml"):
        sample_of(held(tmp_path, failed))
    with pytest.raises(DpreproError, match="no task of splits 0 and 1"):
        sample_of(held(tmp_path, records([0.9] * 3)[2:]))


def test_what_has_no_seed_is_not_in_a_sample(tmp_path):
    seeded, other = records([0.9], "a"), records([0.9], "b", seed=None)
    assert [t.label for t in sample_of(held(tmp_path, [*seeded, *other])).tasks] == ["a"]
    with pytest.raises(DpreproError, match="has `seed: null`"):
        sample_of(held(tmp_path, other))


def contents(lines, environment):
    keys = [record.task.key for record in lines]
    return JournalContents([environment], list(lines), dict.fromkeys(keys, environment))


THEN = {"python": "3.11.7", "libraries": {"numpy": "1.26.4", "numba": "0.59"}, "cpu": "old"}
NOW = {"python": "3.11.7", "libraries": {"numpy": "2.0.1", "scipy": "1.13"}, "cpu": "new"}


def test_versions_are_named_of_what_differs_alone(tmp_path):
    lines = records([0.9, 0.8])
    sample = sample_of(held(tmp_path, lines))
    same = compare_sample(sample, contents(lines, THEN), contents(lines, NOW), 0.0)
    assert (same.rerun.passes, same.versions) == (True, ())
    moved = [replace(lines[0], metrics={"auc": 0.91}), lines[1]]
    found = compare_sample(sample, contents(lines, THEN), contents(moved, NOW), 0.0)
    assert len(found.rerun.mismatches) == 1
    assert found.versions == (
        "processor old then, new now",
        "numpy 1.26.4 then, 2.0.1 now",
        "numba 0.59 then, not installed now",
        "scipy not installed then, 1.13 now",
    )


def test_what_a_journal_does_not_state_is_no_change():
    assert list(version_changes({}, NOW)) == []
    commit = {"git": {"commit": "0123456789abcdef", "dirty": False}}
    other = {"git": {"commit": "f" * 40, "dirty": False}, "blas": ["openblas Haswell"]}
    assert list(version_changes(commit, other)) == ["commit 0123456789 then, ffffffffff now"]
    assert list(version_changes({"git": None}, other)) == []


def test_a_task_that_the_config_no_longer_asks_for_is_missing(tmp_path):
    lines = records([0.9, 0.8])
    sample = sample_of(held(tmp_path, lines))
    other = [lines[0], *records([0.7, 0.7], params={"depth": 3})]
    found = compare_sample(sample, contents(lines, THEN), contents(other, NOW), 0.0)
    assert [record.task.split for record in found.rerun.missing] == [1]
    assert (found.rerun.matched, found.rerun.passes, found.versions) == (1, False, ())
