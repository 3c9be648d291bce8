import json
import math
from dataclasses import replace

import pytest

from dprepro.privacy.ledger import Ledger, slack
from dprepro.results.folder import read_results
from dprepro.results.runs import runs_of
from tests.privacy.entries import cited
from tests.report.journals import records, task, write
from tests.results.test_aggregation import stated

SEED = "fixed seed: repeatable, never for release"


def ledger(epsilon=1.0, spent=0.9, **fields):
    given = {"epsilon": epsilon, "delta": 1e-6, "adjacency": "zero-out", "true_epsilon": spent}
    return {**given, "replace_one_epsilon": 2 * spent, "unpaid": [SEED], "gaps": [], **fields}


def only_spending(folder):
    (spending,) = runs_of(read_results(folder)).spendings
    return spending


def test_spending_is_the_largest_over_splits_at_each_level(tmp_path):
    lines = [
        *records([0.8], ledger=ledger(spent=0.8), epsilon=1.0),
        *records([0.8], ledger=ledger(spent=0.9), epsilon=1.0, split=1),
        *records([0.8], ledger=ledger(0.5, 0.4), epsilon=0.5),
        *records([0.9], label="ebm", epsilon=math.inf),
    ]
    write(tmp_path, "one", lines)
    spending = only_spending(tmp_path)
    assert [(s.stated, s.spent, s.replace_one) for s in spending.levels] == [
        (0.5, 0.4, 0.8),
        (1.0, 0.9, 1.8),
    ]
    assert spending.largest_share == pytest.approx(0.9)
    assert (spending.adjacency, spending.delta) == ("zero-out", 1e-6)


def test_floating_point_is_that_of_all_records_and_unknown_if_one_does_not_say(tmp_path):
    said = [
        *records([0.8], ledger=ledger(floating_point=["b"]), epsilon=1.0),
        *records([0.8], ledger=ledger(floating_point=["a", "b"]), epsilon=1.0, split=1),
    ]
    write(tmp_path, "one", said)
    assert only_spending(tmp_path).floating_point == ("b", "a")
    assert only_spending(tmp_path).stands
    write(tmp_path, "one", records([0.8], ledger=ledger(floating_point=[])))
    assert only_spending(tmp_path).floating_point == ()
    write(tmp_path, "one", [*said, *records([0.8], ledger=ledger(), epsilon=1.0, split=2)])
    assert only_spending(tmp_path).floating_point is None


def test_a_fixed_seed_alone_does_not_break_the_guarantee(tmp_path):
    write(tmp_path, "one", records([0.8], ledger=ledger()))
    spending = only_spending(tmp_path)
    assert spending.stands
    assert spending.is_seeded
    assert spending.unaccounted == ()


@pytest.mark.parametrize(
    "fault",
    [
        {"unpaid": [SEED, "bounds of age"]},
        {"gaps": ["a proof is missing"]},
        {"true_epsilon": 1.01},
        {"true_epsilon": None},
    ],
)
def test_unpaid_reads_gaps_and_overspending_break_it(tmp_path, fault):
    write(tmp_path, "one", records([0.8], ledger=ledger(**fault)))
    assert not only_spending(tmp_path).stands


def test_an_epsilon_beyond_all_bounds_is_infinite(tmp_path):
    write(tmp_path, "one", records([0.8], ledger=ledger(true_epsilon=None)))
    assert only_spending(tmp_path).levels[0].spent == math.inf


def test_two_deltas_are_told_apart(tmp_path):
    lines = records([0.8], ledger=ledger()) + records(
        [0.8], ledger=ledger(delta=1e-5), split=1, delta=1e-5
    )
    write(tmp_path, "one", lines[:1])
    write(tmp_path, "two", lines[1:])
    assert {s.delta for s in runs_of(read_results(tmp_path)).spendings} == {1e-6, 1e-5}


def test_time_is_that_of_finished_tasks(tmp_path):
    first, second, third = records([0.8, 0.8, 0.8])
    lines = [
        replace(first, seconds={"fit": 1.0, "predict": 0.5}),
        replace(second, seconds={"fit": 3.0, "predict": 0.5}),
        replace(third, status="failed", seconds={"fit": 99.0}),
    ]
    write(tmp_path, "one", lines)
    (timing,) = runs_of(read_results(tmp_path)).timings
    assert (timing.dataset, timing.method) == (task().dataset, task().label)
    assert (timing.finished, timing.failed, timing.skipped) == (2, 1, 0)
    assert (timing.fit_mean, timing.fit_longest, timing.total) == (2.0, 3.0, 5.0)


def test_replaced_records_are_left_out_and_every_run_is_named(tmp_path):
    lines = [*records([0.9] * 3), *records([0.8], method_version=2)]
    write(tmp_path, "one", lines, {"cpu": "abacus"})
    found = runs_of(read_results(tmp_path))
    assert found.timings[0].finished == 1
    assert [(run.journal, run.environment["cpu"]) for run in found.runs] == [("one", "abacus")]


def test_what_another_journal_took_over_counts_once(tmp_path):
    first, second = records([0.8, 0.8], ledger=ledger())
    first = replace(first, seconds={"fit": 3600.0})
    write(tmp_path, "one", [first])
    write(tmp_path, "two", [first, replace(second, seconds={"fit": 60.0})], {"taken_from": "one"})
    found = runs_of(read_results(tmp_path))
    (timing,) = found.timings
    assert (timing.finished, timing.total) == (2, 3660.0)
    assert [run.taken_from for run in found.runs] == ["", "one"]


def test_what_two_journals_computed_counts_twice(tmp_path):
    (record,) = records([0.8])
    write(tmp_path, "one", [replace(record, seconds={"fit": 1.5})])
    write(tmp_path, "two", [replace(record, seconds={"fit": 1.25})])
    (timing,) = runs_of(read_results(tmp_path)).timings
    assert timing.total == 2.75


def test_what_the_plan_no_longer_asks_for_has_no_time_and_no_budget(tmp_path):
    old, new = records([0.9] * 3, ledger=ledger()), records([0.8], seed=2, ledger=ledger())
    path = write(tmp_path, "one", [*old, *new])
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(stated(*old).to_json()) + "\n")
    assert [timing.finished for timing in runs_of(read_results(tmp_path)).timings] == [3]


def test_data_of_ones_own_have_a_line_of_their_own(tmp_path):
    write(tmp_path, "one", records([0.9], ledger=ledger()))
    write(tmp_path, "two", records([0.9], ledger=ledger(), data_fingerprint="private-1"))
    names = [timing.dataset for timing in runs_of(read_results(tmp_path)).timings]
    assert names == ["adult", "adult (your card, not the built-in one)"]


@pytest.mark.parametrize(("spent", "is_overspent"), [(1 + 0.9e-6, False), (1 + 1.1e-6, True)])
def test_an_accountant_may_err_by_a_millionth(tmp_path, spent, is_overspent):
    write(tmp_path, "one", records([0.8], ledger=ledger(4.0, 4 * spent), epsilon=4.0))
    spending = only_spending(tmp_path)
    assert (spending.is_overspent, spending.stands) == (is_overspent, not is_overspent)
    assert spending.replace_one_share == pytest.approx(2 * spent)


@pytest.mark.parametrize("stated", [1 / 15, 0.0123457, 0.0123454, 4e-7, 2.0000004])
def test_a_record_may_round_what_was_spent(tmp_path, stated):
    """To six decimals, and the stated epsilon is not rounded."""
    for spent in (stated, round(stated, 6)):
        write(tmp_path, "one", records([0.8], ledger=ledger(stated, spent), epsilon=stated))
        assert not only_spending(tmp_path).is_overspent
    more = round(stated, 6) + 2e-6
    write(tmp_path, "one", records([0.8], ledger=ledger(stated, more), epsilon=stated))
    assert only_spending(tmp_path).is_overspent is (stated < 1)


@pytest.mark.parametrize("stated", [1e-7, 1e-4, 0.0123457, 1 / 15, 0.1, 0.5, 1.0, 7.3, 40.0])
def test_what_holds_by_its_ledger_is_never_overspent(tmp_path, stated):
    """Up to the most that a ledger takes for rounding."""
    spent = stated + 0.999 * slack(stated)
    kept = Ledger(stated, 0.0, "zero-out", [cited(spent)])
    assert kept.holds
    write(tmp_path, "one", records([0.8], ledger=kept.summary(), epsilon=stated, delta=0.0))
    assert only_spending(tmp_path).stands


def test_the_level_at_which_too_much_was_spent_counts(tmp_path):
    """A level with a larger share may be one that was rounded."""
    lines = [
        *records([0.8], ledger=ledger(6e-7, 1e-6), epsilon=6e-7),
        *records([0.8], ledger=ledger(1.0, 1.01), epsilon=1.0),
    ]
    write(tmp_path, "one", lines)
    spending = only_spending(tmp_path)
    assert [level.is_overspent for level in spending.levels] == [False, True]
    assert spending.is_overspent


def test_without_ledgers_the_levels_are_unverified_and_nothing_is_spent(tmp_path):
    lines = [record for e in (2.0, 1.0) for record in records([0.8], epsilon=e, ledger=None)]
    write(tmp_path, "one", lines)
    spending = only_spending(tmp_path)
    assert (spending.unverified, spending.levels, spending.delta) == ((1.0, 2.0), (), 1e-6)
    assert (spending.largest_share, spending.replace_one_share) == (0.0, 0.0)
    assert (spending.stands, spending.is_overspent, spending.is_seeded) == (False, False, False)


@pytest.mark.parametrize("epsilon", [None, 0.0])
def test_a_ledger_without_an_epsilon_spends_nothing(tmp_path, epsilon):
    write(tmp_path, "one", records([0.8], ledger=ledger(epsilon)))
    assert runs_of(read_results(tmp_path)).spendings == ()


def test_tasks_that_all_failed_took_no_time(tmp_path):
    (record,) = records([0.8])
    write(tmp_path, "one", [replace(record, status="failed", seconds={"fit": 9.0})])
    (timing,) = runs_of(read_results(tmp_path)).timings
    assert (timing.fit_mean, timing.fit_longest, timing.total) == (0.0, 0.0, 0.0)
